"""The floors: an import points down, never into another room's privates, never at the package root."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "sktransformer"
FLOORS = {  # room -> floor; the longest match counts
    "testing": 6,
    "ensemble": 5,
    "export": 5,
    "model_selection": 5,
    "tasks": 4,
    "tasks._*": 3,  # `_base` and its helpers, one room: private to `tasks`, open to each of its files
    "_engine.inference": 2,
    "_engine.training": 2,
    "_engine.checkpoints": 1,
    "_engine.cpu": 1,
    "_engine.text": 1,
    "nn": 1,
    "_engine": 0,
    "baselines": 0,
    "datasets": 0,
    "email": 0,
    "exceptions": 0,
}
APART = {
    "baselines",
    "datasets",
    "email",
}  # of the package they may use these three files, and of the rest no torch
FOR_ALL = {"_engine.compat", "_engine.errors", "_engine.validation", "_engine.version"}
HEAVY = {
    "accelerate",
    "huggingface_hub",
    "optuna",
    "safetensors",
    "skorch",
    "tokenizers",
    "torch",
    "transformers",
}


def row(module: str) -> str:
    if module.startswith("tasks._"):
        return "tasks._*"
    return max((row for row in FLOORS if f"{module}.".startswith(f"{row}.")), key=len, default="")


def room(module: str) -> str:
    """The row that `module` lies in; a file of `tasks` or of `_engine` itself is a room of its own."""
    return ".".join(module.split(".")[:2]) if row(module) in {"tasks", "_engine"} else row(module)


def imports(path: Path, module: str):
    """Yield (line, dotted name) of all that a file imports, in functions too; `from a import b` is `a.b`."""
    package = [PACKAGE.name, *module.split(".")][: None if path.name == "__init__.py" else -1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{start}.{alias.name}") for alias in node.names)


def broken(module: str, name: str, target: str):
    """Yield what is wrong with `module` importing `name`, which `target`, a module of the package, holds."""
    private = [part for part in name.split(".") if part.startswith("_") and not part.startswith("__")]
    if not name.startswith(PACKAGE.name):
        if room(module) in APART and name.split(".")[0] in HEAVY:
            yield "too heavy for a room that stands apart"
        if name.startswith("sklearn.") and private and module != "_engine.compat":
            yield "private in scikit-learn, and this is not compat"
    elif not target:
        yield "the package root"
    else:
        if FLOORS[row(target)] > FLOORS[row(module)]:
            yield f"floor {FLOORS[row(target)]} from floor {FLOORS[row(module)]}"
        if room(module) in APART and room(target) != room(module) and target not in FOR_ALL:
            yield "more than a room that stands apart may know"
        shared = row(module) == "tasks" and row(target) == "tasks._*"
        if [part for part in private if part != "_engine"] and room(target) != room(module) and not shared:
            yield "private in another room"


def violations(root: Path) -> list[str]:
    """Every import under `root` that breaks a rule, and the first cycle."""
    places = {path: path.relative_to(root).with_suffix("").parts for path in root.rglob("*.py")}
    modules = {".".join(p[:-1] if p[-1] == "__init__" else p): path for path, p in places.items()}
    found, graph = [], {}
    for module in filter(None, modules):  # the root itself is the one file that may look everywhere
        if not row(module):
            found.append(f"{module}: a new door, without a floor in FLOORS")
            continue
        for line, name in imports(modules[module], module):
            inside = name.split(".")[1:] if name.split(".")[0] == PACKAGE.name else []
            target = next(
                (t for n in range(len(inside), 0, -1) if (t := ".".join(inside[:n])) in modules), ""
            )
            found += [f"{module}:{line}: {name}: {what}" for what in broken(module, name, target)]
            if target not in {"", module}:
                graph.setdefault(module, set()).add(target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found.append(f"cycle: {' -> '.join(error.args[1])}")
    return found


def test_the_package_keeps_the_floors():
    assert violations(PACKAGE) == []


FINE = {
    "__init__.py": "from .tasks.classification import A",
    "_engine/__init__.py": "",
    "_engine/errors.py": "import torch",
    "_engine/text/__init__.py": "from ..errors import E",
    "_engine/text/_cut.py": "from sktransformer._engine.errors import E",
    "_engine/training/__init__.py": "from .. import errors\nfrom ..text import windows",
    "tasks/__init__.py": "from .classification import A",
    "tasks/_base.py": "from .._engine.training import loop",
    "tasks/_labels.py": "",
    "tasks/classification.py": "from ._base import _Base\nfrom sklearn.base import BaseEstimator",
    "email/__init__.py": "from .._engine.errors import E\nfrom ._cut import cut\nimport sklearn",
    "email/_cut.py": "",
    "datasets/__init__.py": "",
    "testing/__init__.py": "from ..tasks.classification import A\nfrom ..email import B",
}


@pytest.mark.parametrize(
    ("file", "text", "what"),
    [
        ("email/_cut.py", "", None),
        ("_engine/errors.py", "from .text import cut", "floor 1 from floor 0"),
        ("_engine/text/_cut.py", "def f():\n    from ...tasks import A", "floor 4 from floor 1"),
        ("tasks/_base.py", "from .classification import A", "floor 4 from floor 3"),
        ("tasks/embedding.py", "from ..testing import A", "floor 6 from floor 4"),
        ("tasks/embedding.py", "from .classification import _helper", "private in another room"),
        ("_engine/training/loop.py", "from ..text._cut import cut", "private in another room"),
        ("testing/grid.py", "from sktransformer.tasks._base import Base", "private in another room"),
        ("tasks/embedding.py", "from ._labels import _encode", None),
        ("tasks/_training.py", "from ._labels import _encode", None),
        ("tasks/_training.py", "from .embedding import embed", "floor 4 from floor 3"),
        ("tasks/embedding.py", "import sktransformer", "the package root"),
        ("tasks/embedding.py", "from .. import A", "the package root"),
        ("tasks/embedding.py", "from sktransformer import __version__", "the package root"),
        ("tasks/embedding.py", "from sklearn.utils._tags import Tags", "private in scikit-learn"),
        ("email/_cut.py", "import torch.nn", "too heavy"),
        ("email/_cut.py", "from ..datasets import load", "more than a room that stands apart may know"),
        ("email/_cut.py", "from .._engine.text import cut", "more than a room that stands apart may know"),
        ("email/_cut.py", "from . import cut", "cycle: "),
        ("helpers.py", "", "without a floor"),
    ],
)
def test_a_broken_rule_is_found(tmp_path, file, text, what):
    for name, content in {**FINE, file: text}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    found = violations(tmp_path)
    assert (found == []) if what is None else any(what in line for line in found), found
