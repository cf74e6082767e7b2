"""What an import loads: no torch for the root and the rooms that stand apart; names on first use."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import sktransformer

HEAVY = ("torch", "transformers", "tokenizers", "skorch", "optuna")


def loaded_after(statement: str) -> set[str]:
    """Run `statement` in a fresh interpreter and return the top-level modules that are loaded afterwards."""
    report = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", report], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import sktransformer",
        "import sktransformer.email",
        "import sktransformer.datasets",
        "import sktransformer.baselines",
        "import sktransformer; sktransformer.email; dir(sktransformer); hasattr(sktransformer, 'nothing')",
        "from sktransformer import EmailCleaner; EmailCleaner()",
        "from sktransformer import load_french_emails; load_french_emails()",
        "from sktransformer import tfidf_svm; tfidf_svm()",
        "from sktransformer import SemanticSearch; SemanticSearch(mode='sparse').fit(['a text']).search(['a text'])",
        "from sktransformer import compare_models, ComparisonDisplay, ComparisonResult",
        "from sktransformer.ensemble import *; SeedEnsemble(None); soft_vote([('a', 1), ('b', 2)], weights='fit')",
    ],
)
def test_loads_no_torch(statement):
    assert loaded_after(statement).isdisjoint(HEAVY)


def test_the_root_loads_not_even_scikit_learn():
    assert loaded_after("import sktransformer").isdisjoint({"numpy", "pandas", "sklearn", "scipy"})


def test_the_probe_sees_a_heavy_import():
    assert "optuna" in loaded_after("import optuna")


@pytest.mark.parametrize("name", sorted(set(sktransformer.__all__) - {"__version__"}))
def test_every_public_name_is_found_once(name):
    value = getattr(sktransformer, name)
    assert value.__name__ == name
    assert value.__module__.startswith(f"sktransformer.{sktransformer._ROOMS[name]}")
    assert vars(sktransformer)[name] is value


def test_the_lists_of_names_agree():
    assert sktransformer.__all__ == sorted({*sktransformer._ROOMS, "__version__"})
    assert {*sktransformer.__all__, "email"} <= set(dir(sktransformer))


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("TransformersClassifier", "TransformerClassifier"),
        ("emailcleaner", "EmailCleaner"),
        ("dataset", "datasets"),
    ],
)
def test_unknown_name_suggests_the_near_one(wrong, meant):
    with pytest.raises(AttributeError, match=f"no attribute '{wrong}'; did you mean '{meant}'"):
        getattr(sktransformer, wrong)


def test_unknown_name_without_a_near_one_suggests_nothing():
    with pytest.raises(AttributeError, match=r"no attribute 'quux'$"):
        sktransformer.quux  # noqa: B018
    with pytest.raises(ImportError, match="quux"):
        from sktransformer import quux  # noqa: F401


def test_everything_imported_is_declared():
    """A package that comes along with another today may stop doing so tomorrow."""
    repository = Path(__file__).parents[1]
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    declared = {re.match(r"[\w.-]+", line).group().lower() for line in lines}
    imported = set()
    for file in (repository / "sktransformer").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            imported |= {name.partition(".")[0] for name in names}
    distributions = packages_distributions()
    missing = {
        name
        for name in imported - {"sktransformer", *sys.stdlib_module_names}
        if declared.isdisjoint(found.lower().replace("_", "-") for found in distributions.get(name, [name]))
    }
    assert missing == set()
