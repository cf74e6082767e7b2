"""What a reader is owed: numpydoc on every public name, and files and functions short enough to be read."""

import ast
import inspect
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from numpydoc.validate import validate

import sktransformer

REPOSITORY = Path(__file__).parents[1]
SETTINGS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
CHECKS = set(SETTINGS["numpydoc_validation"]["checks"])
FILE_LINES, FUNCTION_LINES = 400, 40


def public_objects():
    """Map the dotted name of every public class, function and method to the checks it has to pass."""
    rooms = [
        sktransformer,
        *(import_module(f"sktransformer.{door}") for door in sorted(sktransformer._DOORS)),
    ]
    objects = {}
    for value in (getattr(room, name) for room in rooms for name in getattr(room, "__all__", ())):
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        if inspect.isclass(value) and issubclass(
            value, Exception
        ):  # raised by others: one sentence says when
            objects[f"{value.__module__}.{value.__qualname__}"] = CHECKS - {"EX01"}
            continue
        objects[f"{value.__module__}.{value.__qualname__}"] = CHECKS
        for name, method in inspect.getmembers(value, inspect.isroutine) if inspect.isclass(value) else ():
            # What scikit-learn defines, scikit-learn documents. A method's examples are the class's.
            if not name.startswith("_") and str(getattr(method, "__module__", "")).startswith(
                "sktransformer."
            ):
                objects[f"{method.__module__}.{method.__qualname__}"] = CHECKS - {"EX01"}
    return objects


OBJECTS = public_objects()


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_docstring_is_complete(name):
    errors = [f"{code}: {text}" for code, text in validate(name)["errors"] if code in OBJECTS[name]]
    assert errors == []


def test_every_estimator_is_among_them():
    assert {"TransformerClassifier", "TransformerEmbedder", "EmailCleaner"} <= {
        name.rpartition(".")[2] for name in OBJECTS
    }


def too_long(name: str, source: str) -> list[str]:
    """List the file and the functions over their limit that give no reason in a `# long: reason` comment."""
    lines = source.splitlines()
    found = []
    if len(lines) >= FILE_LINES and not any(line.startswith("# long: ") for line in lines):
        found.append(f"{name}: {len(lines)} lines")
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
        length = body[-1].end_lineno - body[0].lineno + 1 if body else 0
        head = lines[node.lineno - 1 : node.body[0].lineno]  # the signature, to its first statement
        if length >= FUNCTION_LINES and not any("# long: " in line for line in head):
            found.append(f"{name}:{node.lineno}: {node.name} has {length} lines")
    return found


@pytest.mark.parametrize("folder", ["sktransformer", "tests", "examples", "benchmarks"])
def test_files_and_functions_are_short(folder):
    files = sorted((REPOSITORY / folder).rglob("*.py"))
    sources = {str(file.relative_to(REPOSITORY)): file.read_text(encoding="utf-8") for file in files}
    assert [line for name, source in sources.items() for line in too_long(name, source)] == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("x = 1\n" * 399, []),
        ("x = 1\n" * 400, ["a.py: 400 lines"]),
        ("# long: a table\n" + "x = 1\n" * 400, []),
        ("def f():\n    '''Doc.\n" + "\n" * 50 + "    '''\n" + "    x = 1\n" * 39, []),
        ("def f():\n    '''Doc.'''\n" + "    x = 1\n" * 40, ["a.py:1: f has 40 lines"]),
        ("def f():  # long: one case a line\n" + "    x = 1\n" * 40, []),
        ("def f(" + "".join(f"a{i},\n" for i in range(50)) + "):\n    return a1", []),
        ("class A:\n    async def f(self):\n" + "        x = 1\n" * 41, ["a.py:2: f has 41 lines"]),
    ],
)
def test_a_long_one_is_found(source, found):
    assert too_long("a.py", source) == found


def test_the_installation_page_names_every_extra():
    page = (REPOSITORY / "docs" / "install.rst").read_text(encoding="utf-8")
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    missing = [name for name in project["optional-dependencies"] if f"``{name}``" not in page]
    assert not missing, missing
