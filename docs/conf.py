"""Sphinx configuration. Nothing here reaches the network: no intersphinx, no remote images."""

from importlib import import_module
from itertools import groupby
from pathlib import Path

import sktransformer

HERE = Path(__file__).parent

project = "sktransformer"
author = "The sktransformer developers"
copyright = "the sktransformer developers, BSD 3-Clause"
version = release = sktransformer.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
default_role = "literal"
suppress_warnings = [
    "config.cache"
]  # sphinx_gallery_conf holds a function-like object that is not pickled; harmless

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's types are written for readers
numpydoc_show_class_members = False  # the class template lists them
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "sktransformer"
html_static_path = []
html_show_sourcelink = False
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"install": [], "quickstart": [], "architecture": [], "changelog": []}

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",  # the quick ones run; the others are shown as they are
    "ignore_pattern": r"__init__\.py",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
}

# Files of `sktransformer.nn` whose parts are no public names of their own, and are looked for by who reads the paper.
LEAVES = "masks positions attention norms residual feed_forward experts embeddings"
INSIDE = f"{LEAVES} layer stack schedules packed_attention crf".split()

HEADINGS = {  # in this order; a room without a line here comes last, under its own name
    "tasks": "Estimators",
    "model_selection": "Comparing and tuning",
    "ensemble": "Ensembles",
    "export": "Export",
    "baselines": "Baselines",
    "email": "E-mail",
    "datasets": "Sample data",
    "nn": "The architecture",
    "testing": "Testing an estimator of your own",
}


def write_api_page() -> None:
    """Write one page that lists every public name under its room; autosummary makes a page of each."""

    def door(name: str) -> str:
        return sktransformer._ROOMS[name].partition(".")[0]

    order = [*HEADINGS, *sorted({door(name) for name in sktransformer._ROOMS} - set(HEADINGS))]
    names = sorted(sktransformer._ROOMS, key=lambda name: (order.index(door(name)), name))
    text = "API\n===\n\nEvery name can be imported from ``sktransformer`` itself. "
    text += "Estimators also have the methods of scikit-learn's base classes: "
    text += "``get_params``, ``set_params``, ``set_output``, ``score`` and the like.\n\n"
    text += ".. currentmodule:: sktransformer\n"
    for room, group in groupby(names, key=door):
        heading = HEADINGS.get(room, room)
        text += f"\n{heading}\n{'-' * len(heading)}\n\n.. autosummary::\n   :toctree: .\n\n"
        text += "".join(f"   {name}\n" for name in group)
    text += _parts_of_nn()
    page = HERE / "api" / "generated" / "index.rst"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8")
    page.with_name("inside_nn.rst").write_text(_inside_nn(), encoding="utf-8")


def _parts_of_nn() -> str:
    """List what `sktransformer.nn` has beside the names that the root has too."""
    from sktransformer import nn

    names = sorted(set(nn.__all__) - set(sktransformer._ROOMS))
    listed = "".join(f"   nn.{name}\n" for name in names)
    heading = "Parts of the architecture, imported from ``sktransformer.nn``"
    inside = "\nWhat they are made of, file by file:\n\n.. toctree::\n\n   inside_nn\n"
    return f"\n{heading}\n{'-' * len(heading)}\n\n.. autosummary::\n   :toctree: .\n\n{listed}{inside}"


def _inside_nn() -> str:
    """Show the files of `sktransformer.nn` from leaf to root: what each says of itself, and its parts."""
    text = "Inside the architecture, from leaf to root\n==========================================\n"
    for name in INSIDE:
        room = import_module(f"sktransformer.nn.{name}")
        parts = [
            part
            for part, value in vars(room).items()
            if not part.startswith("_") and getattr(value, "__module__", "") == room.__name__
        ]
        heading = f"``{name}.py``"
        text += f"\n{heading}\n{'-' * len(heading)}\n\n.. automodule:: {room.__name__}\n   :no-members:\n\n"
        text += ".. autosummary::\n   :toctree: .\n\n" + "".join(f"   {part}\n" for part in parts)
    return text


def skip_inherited(app, what, name, member, skip, options):
    """Leave out what scikit-learn, torch and Transformers define: they refer to pages that only their manuals have."""
    foreign = ("huggingface_hub.", "sklearn.", "torch.", "transformers.")
    return True if (getattr(member, "__module__", None) or "").startswith(foreign) else None


def setup(app):
    write_api_page()  # before Sphinx looks for its sources
    app.connect("autodoc-skip-member", skip_inherited)
