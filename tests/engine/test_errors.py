"""Exceptions subclass the builtin a caller would catch, and their helpers phrase remedies."""

import pickle

import pytest

from sktransformer._engine import errors


@pytest.mark.parametrize(
    ("name", "builtins"),
    [
        ("CheckpointNotFoundError", (FileNotFoundError, OSError, ValueError)),
        ("CheckpointCorruptError", (ValueError,)),
        ("WrongTaskError", (ValueError,)),
        ("NonFiniteLossError", (FloatingPointError, ArithmeticError)),
        ("MissingExtraError", (ImportError,)),
        ("PersistenceError", (ValueError,)),
        ("VersionMismatchWarning", (UserWarning,)),
        ("TruncationWarning", (UserWarning,)),
        ("OutOfMemoryBackoffWarning", (UserWarning,)),
    ],
)
def test_classes_subclass_builtins_and_survive_pickling(name, builtins):
    kind = getattr(errors, name)
    for builtin in builtins:
        assert issubclass(kind, builtin)
    # joblib sends exceptions of its workers back by pickle
    copy = pickle.loads(pickle.dumps(kind("what, where, remedy")))
    assert type(copy) is kind
    assert str(copy) == "what, where, remedy"


def test_a_truncation_warning_carries_its_counts_through_a_pickle():
    warning = errors.TruncationWarning("some are cut", n_cut=2, n_documents=5)
    copy = pickle.loads(pickle.dumps(warning))
    assert (str(copy), copy.n_cut, copy.n_documents) == ("some are cut", 2, 5)
    assert errors.TruncationWarning("of somebody else").n_documents == 0


@pytest.mark.parametrize(
    ("name", "choices", "expected"),
    [
        ("haed", ["head", "tail"], " Did you mean 'head'?"),
        ("HEAD_TAIL", ["head", "head_tail"], " Did you mean 'head_tail'?"),
        ("xyz", ["head", "tail"], ""),
        ("head", [], ""),
    ],
)
def test_did_you_mean(name, choices, expected):
    assert errors.did_you_mean(name, choices) == expected


def test_optional_import_returns_the_module():
    import json

    assert errors.optional_import("json", "email") is json


def test_optional_import_names_the_install_line():
    with pytest.raises(errors.MissingExtraError) as caught:
        errors.optional_import("surely_not_installed.part", "search")
    assert 'pip install "sktransformer-text[search]"' in str(caught.value)
    assert caught.value.name == "surely_not_installed"


def test_optional_import_names_what_the_module_itself_lacks(tmp_path, monkeypatch):
    (tmp_path / "needs_more.py").write_text("import surely_not_installed\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        errors.MissingExtraError, match=r"'surely_not_installed' \(which 'needs_more' imports\)"
    ):
        errors.optional_import("needs_more", "search")


def test_optional_import_does_not_hide_other_faults(tmp_path, monkeypatch):
    (tmp_path / "broken_inside.py").write_text("raise ZeroDivisionError('inside')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ZeroDivisionError, match="inside"):
        errors.optional_import("broken_inside", "search")
