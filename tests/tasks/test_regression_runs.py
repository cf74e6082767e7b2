"""TransformerRegressor: targets that are refused, the validation part, going on, and folders."""

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.metrics import root_mean_squared_error
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from sktransformer import TransformerClassifier, TransformerRegressor
from sktransformer.exceptions import CheckpointCorruptError, WrongTaskError
from sktransformer.tasks._holdout import held_out
from sktransformer.tasks._values import as_values, bins
from sktransformer.testing import tiny_checkpoint

Maker = Callable[..., TransformerRegressor]
# a random model of one epoch may give every mail the mean, and says so
pytestmark = pytest.mark.filterwarnings("ignore:training collapsed:sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def quick(learning: dict[str, Any]) -> Maker:
    def make(name: str = "camembert", **parameters: Any) -> TransformerRegressor:
        settings = {**learning, "max_epochs": 1, "batch_size": 8, "learning_rate": 1e-3, **parameters}
        return TransformerRegressor(tiny_checkpoint(name), **settings)

    return make


@pytest.fixture
def stars(mails: list[str]) -> np.ndarray:
    return np.array([1.0 + i % 5 for i in range(len(mails))])


HOLES = [1.0, 2.0, float("nan"), *[1.0] * 21]


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (None, ValueError, "requires y to be passed, but the target y is None; pass one number a document"),
        (HOLES, ValueError, r"Input y contains NaN in row\(s\) 2; drop those rows"),
        ([None, *[1.0] * 22, None], ValueError, r"contains NaN in row\(s\) 0, 23;"),
        (pd.Series([1, pd.NA] * 12, dtype="Int64"), ValueError, r"NaN in row\(s\) 1, 3, 5, .*, 19, \.\.\.;"),
        ([-np.inf, *[1.0] * 23], ValueError, r"Input y contains infinity in row\(s\) 0;"),
        (np.where(np.eye(24)[:, :2], np.inf, 0.0), ValueError, r"infinity in row\(s\) 0, 1;"),
        (
            ["bon", "mauvais"] * 12,
            TypeError,
            r"y\[0\] must be a number, got str \('bon'\); convert y to floats",
        ),
        ([1.0, "2.0"] * 12, TypeError, r"y\[1\] must be a number, got str \('2.0'\)"),
        (pd.Series(["3"] * 24), TypeError, r"y\[0\] must be a number, got str"),
        ([[1.0, "a"]] * 24, TypeError, r"y\[0, 1\] must be a number, got str \('a'\)"),
        ([[1.0, 2.0]] * 23 + [[1.0]], TypeError, r"y\[0\] must be a number, got list .* shape \(n, K\)"),
        (np.full(24, np.datetime64("2026-01-01")), TypeError, r"y\[0\] must be a number, got datetime64"),
        (np.full(24, np.timedelta64(3, "D")), TypeError, r"y\[0\] must be a number, got timedelta64"),
        ([10**400, *[1.0] * 23], ValueError, r"Input y contains infinity in row\(s\) 0;"),
        (np.full(24, 1j), TypeError, r"y\[0\] must be a number, got complex"),
        (csr_matrix(np.ones((24, 2))), TypeError, r"y is a sparse matrix, .*; pass y.toarray\(\)"),
        (np.ones((24, 2, 1)), ValueError, r"\(n,\), or a column an output, \(n, K\); got shape \(24, 2, 1\)"),
        (np.ones((24, 0)), ValueError, r"got shape \(24, 0\)"),
        (np.ones(23), ValueError, r"inconsistent numbers of samples: \[24, 23\]"),
        (
            [1e200, -1e200] * 12,
            ValueError,
            r"reach 1e\+200, and their squares overflow; divide y by a constant",
        ),
    ],
)
def test_targets_that_are_refused(quick: Maker, mails: list[str], y: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        quick().fit(mails, y)


def test_numbers_of_every_kind_are_read() -> None:
    given = [Decimal("1.5"), np.float32(2), 3, True, np.int8(4)]
    assert as_values(given).original.tolist() == [1.5, 2.0, 3.0, 1.0, 4.0]
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})
    assert as_values(frame).original.tolist() == [[1.0, 0.5], [2.0, 1.5]]
    assert as_values(frame).names == ("a", "b")


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"loss": "squared_eror"}, ValueError, r"loss='squared_eror' is not known; .* 'squared_error'\?"),
        ({"epsilon": 0.0}, ValueError, "epsilon must be above 0, got 0.0"),
        ({"epsilon": "1"}, TypeError, "epsilon must be a number, got str"),
        ({"aggregation": "meen"}, ValueError, r"aggregation='meen' is not known"),
    ],
)
def test_parameters_that_are_refused(
    quick: Maker, mails: list[str], stars: np.ndarray, parameters: dict[str, Any], error: type, message: str
) -> None:
    with pytest.raises(error, match=message):
        quick(**parameters).fit(mails, stars)


def test_the_validation_part_spreads_over_the_targets() -> None:
    y = np.random.default_rng(0).lognormal(sigma=3.0, size=200)
    strata, names = bins(as_values(y))
    assert np.bincount(strata).tolist() == [20] * 10
    assert all(y[strata == i].max() <= y[strata == i + 1].min() for i in range(9))
    training, held = held_out(strata, names, 0.1, 0)
    assert np.bincount(strata[held]).tolist() == [2] * 10
    assert len(training) == 180
    # ties share bins, and a handful of rows is enough
    assert np.bincount(bins(as_values(np.ones(7)))[0]).tolist() == [3, 2, 2]
    with pytest.raises(ValueError, match="needs at least two documents, to hold one out, got n_samples=1"):
        bins(as_values([1.0]))


def test_the_scaler_does_not_see_the_validation_part(
    quick: Maker, mails: list[str], stars: np.ndarray
) -> None:
    fitted = quick(early_stopping=True, validation_fraction=0.25).fit(mails, stars)
    training, held = held_out(*bins(as_values(stars)), 0.25, 0)
    assert len(held) == 6
    assert fitted.target_mean_ == pytest.approx([stars[training].mean()])
    assert fitted.target_mean_ != pytest.approx([stars.mean()])
    assert fitted.target_scale_ == pytest.approx([stars[training].std()])


def test_the_default_scorer(quick: Maker, mails: list[str], stars: np.ndarray) -> None:
    stopping = {"early_stopping": True, "validation_fraction": 0.25}
    fitted = quick(**stopping).fit(mails, stars)
    _, held = held_out(*bins(as_values(stars)), 0.25, 0)
    asked = [mails[i] for i in held]
    error = root_mean_squared_error(stars[held], fitted.predict(asked))
    assert fitted.history_.valid_score.tolist() == pytest.approx([-error])
    named = quick(**stopping, scoring="neg_root_mean_squared_error").fit(mails, stars)
    assert named.history_.valid_score.tolist() == pytest.approx([-error])
    y = np.stack([stars, 1000 * stars[::-1]], axis=1)
    several = quick(**stopping).fit(mails, y)
    errors = root_mean_squared_error(y[held], several.predict(asked), multioutput="raw_values")
    assert several.history_.valid_score.tolist() == pytest.approx([-np.mean(errors / several.target_scale_)])


def test_a_warm_start_keeps_the_units(quick: Maker, mails: list[str], stars: np.ndarray) -> None:
    fitted = quick(warm_start=True).fit(mails, stars)
    mean, before = fitted.target_mean_.copy(), fitted.predict(mails)
    fitted.set_params(learning_rate=0.0).fit(mails, 100 * stars)
    np.testing.assert_array_equal(fitted.target_mean_, mean)
    np.testing.assert_array_equal(fitted.predict(mails), before)
    cold = quick(learning_rate=0.0).fit(mails, 100 * stars)
    assert cold.target_mean_ == pytest.approx(100 * mean)


def test_a_folder_gives_the_users_units_back(
    quick: Maker, mails: list[str], stars: np.ndarray, tmp_path: Path
) -> None:
    y = pd.DataFrame({"note": stars, "prix": 1000 * stars[::-1]})
    fitted = quick(max_epochs=2).fit(mails, y)
    fitted.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    assert config["problem_type"] == "regression"
    assert config["id2label"] == {"0": "note", "1": "prix"}
    assert config["target_mean"] == fitted.target_mean_.tolist()
    again = TransformerRegressor.from_pretrained(tmp_path, precision="float32", device="cpu")
    np.testing.assert_allclose(again.predict(mails), fitted.predict(mails), rtol=1e-6)
    assert again.predict([]).shape == (0, 2)
    # in plain Transformers the logits are standardised
    model, tokenizer = (
        auto.from_pretrained(tmp_path) for auto in (AutoModelForSequenceClassification, AutoTokenizer)
    )
    with torch.inference_mode():
        z = model(**tokenizer(mails[:1], return_tensors="pt")).logits.numpy()
    by_hand = z * np.array(model.config.target_scale) + np.array(model.config.target_mean)
    np.testing.assert_allclose(by_hand, fitted.predict(mails[:1]), rtol=1e-4)
    # and the folder is a start for another fit, with units of its own
    other = TransformerRegressor(tmp_path, max_epochs=1, precision="float32", random_state=0)
    assert other.fit(mails, stars).target_mean_ == pytest.approx([stars.mean()])


def test_a_folder_of_somebody_else(quick: Maker, mails: list[str], stars: np.ndarray, tmp_path: Path) -> None:
    fitted = quick().fit(mails, stars)
    fitted.save_pretrained(tmp_path)
    z = (fitted.predict(mails) - fitted.target_mean_) / fitted.target_scale_
    _change(tmp_path, target_mean=None, target_scale=None, problem_type=None)
    foreign = TransformerRegressor.from_pretrained(tmp_path, precision="float32", device="cpu")
    assert (foreign.target_mean_.tolist(), foreign.target_scale_.tolist()) == ([0.0], [1.0])
    np.testing.assert_allclose(foreign.predict(mails), z, atol=1e-5)
    for wrong in ([1.0, 2.0], ["1"], 1.0, [float("nan")], [0.0]):
        _change(tmp_path, target_mean=[0.0], target_scale=wrong)
        with pytest.raises(CheckpointCorruptError, match=r"must each hold 1 finite number\(s\)"):
            TransformerRegressor.from_pretrained(tmp_path)


def _change(folder: Path, **fields: Any) -> None:
    path = folder / "config.json"
    config = {**json.loads(path.read_text(encoding="utf-8")), **fields}
    kept = {name: value for name, value in config.items() if value is not None}
    path.write_text(json.dumps(kept), encoding="utf-8")


def test_a_folder_of_another_task(quick: Maker, mails: list[str], stars: np.ndarray, tmp_path: Path) -> None:
    with pytest.raises(WrongTaskError, match="holds no trained classification head"):
        TransformerRegressor.from_pretrained(tiny_checkpoint("camembert"))
    router = TransformerClassifier(tiny_checkpoint("camembert"), max_epochs=1, random_state=0)
    router.fit(mails, ["facture", "colis", "autre"] * 8).save_pretrained(tmp_path)
    with pytest.raises(WrongTaskError, match=r"has a head of 3 output\(s\) for classes, not for numbers"):
        TransformerRegressor.from_pretrained(tmp_path)
    # a head of three outputs is no hindrance to training another
    assert TransformerRegressor(tmp_path, max_epochs=1, random_state=0).fit(mails, stars).n_outputs_ == 1
    quick().fit(mails, stars).save_pretrained(tmp_path / "numbers")
    with pytest.raises(WrongTaskError, match=r"for regression, not for classes"):
        TransformerClassifier.from_pretrained(tmp_path / "numbers")
