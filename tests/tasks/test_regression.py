"""TransformerRegressor: what it learns, in which units, under which losses and weights."""

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from sklearn.base import is_regressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import r2_score, root_mean_squared_error
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from sktransformer import TransformerRegressor
from sktransformer._engine.training.losses import ValueLoss
from sktransformer.testing import tiny_checkpoint

Maker = Callable[..., TransformerRegressor]
# a random model of one epoch may give every mail the mean, and says so
flat = pytest.mark.filterwarnings("ignore:training collapsed:sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def regressor(learning: dict[str, Any]) -> Maker:
    def make(name: str = "camembert", **parameters: Any) -> TransformerRegressor:
        return TransformerRegressor(tiny_checkpoint(name), **{**learning, **parameters})

    return make


@pytest.fixture
def quick(regressor: Maker) -> Maker:
    def make(name: str = "camembert", **parameters: Any) -> TransformerRegressor:
        return regressor(name, **{"max_epochs": 1, "batch_size": 8, "learning_rate": 1e-3, **parameters})

    return make


@pytest.fixture
def prices(mails: list[str]) -> np.ndarray:
    """A number that the first word decides, and a little more that the length does."""
    return np.array([1200.0 * ("colis" in mail or "livr" in mail) + len(mail) / 10 + 5000 for mail in mails])


def test_a_number_a_document(regressor: Maker, mails: list[str], prices: np.ndarray) -> None:
    fitted = regressor().fit(mails, prices)
    assert is_regressor(fitted)
    predicted = fitted.predict(mails)
    assert predicted.shape == (24,)
    assert predicted.dtype == np.float64
    assert fitted.score(mails, prices) == r2_score(prices, predicted) > 0.9
    scaler = StandardScaler().fit(prices[:, None])
    assert fitted.target_mean_ == pytest.approx(scaler.mean_)
    assert fitted.target_scale_ == pytest.approx(scaler.scale_)
    assert (fitted.n_outputs_, fitted.target_shape_) == (1, ())


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber"])
def test_several_outputs(regressor: Maker, mails: list[str], prices: np.ndarray, loss: str) -> None:
    y = np.stack([prices, -1e-3 * prices], axis=1)
    fitted = regressor("modernbert", loss=loss).fit(mails, y)
    predicted = fitted.predict(mails)
    assert predicted.shape == (24, 2)
    for column in range(2):
        assert r2_score(y[:, column], predicted[:, column]) > 0.9
    assert fitted.predict([]).shape == (0, 2)
    assert get_tags(fitted).target_tags.multi_output
    with pytest.raises(
        ValueError, match="as many outputs as the first fit had, 2, got 1; pass warm_start=False"
    ):
        fitted.set_params(warm_start=True).fit(mails, prices)


@flat
def test_shapes_and_dtypes_come_back(quick: Maker, mails: list[str], prices: np.ndarray) -> None:
    expected = quick().fit(mails, prices).predict(mails)
    index = range(50, 74)
    same = {
        "list": prices.tolist(),
        "tuple": tuple(prices.tolist()),
        "object": prices.astype(object),
        "Series": pd.Series(prices, index=index),
        "Float64": pd.Series(prices, index=index, dtype="Float64"),
        "column": prices[:, None],
        "frame": pd.DataFrame({"price": prices}, index=index),
    }
    for kind, y in same.items():
        fitted = quick().fit(mails, y)
        predicted = fitted.predict(mails)
        assert predicted.shape == ((24, 1) if kind in ("column", "frame") else (24,)), kind
        np.testing.assert_array_equal(predicted.ravel(), expected, err_msg=kind)
        assert fitted.predict([]).shape == (0, *predicted.shape[1:])
    half = quick().fit(mails, prices.astype(np.float32)).predict(mails)
    assert half.dtype == np.float32
    np.testing.assert_allclose(half, expected, rtol=1e-6)
    whole = quick().fit(mails, prices.astype(int)).predict(mails)
    np.testing.assert_array_equal(whole, quick().fit(mails, np.floor(prices)).predict(mails))
    assert quick().fit(mails, prices > 5600).predict(mails).dtype == np.float64
    assert quick().fit(mails, pd.DataFrame({"a": prices, "b": prices})).model_.config.id2label == {
        0: "a",
        1: "b",
    }


@flat
def test_units_do_not_matter(quick: Maker, mails: list[str], prices: np.ndarray) -> None:
    expected = quick(max_epochs=3).fit(mails, prices)
    z = (expected.predict(mails) - expected.target_mean_) / expected.target_scale_
    assert np.ptp(z) > 1e-4
    for factor, shift in ((1e-6, 0.0), (1e4, 3.0), (1.0, 1e6)):
        other = quick(max_epochs=3).fit(mails, prices * factor + shift)
        np.testing.assert_allclose(other.target_scale_, factor * expected.target_scale_, rtol=1e-9)
        again = (other.predict(mails) - other.target_mean_) / other.target_scale_
        np.testing.assert_allclose(again, z, atol=1e-6)


@flat
def test_a_constant_target_is_predicted(quick: Maker, mails: list[str], prices: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = quick(max_epochs=2, learning_rate=1e-4).fit(mails, np.full(24, 0.1))
    assert fitted.target_scale_.tolist() == [1.0]
    assert np.abs(fitted.predict(mails) - 0.1).max() < 1.0
    beside = quick().fit(mails, np.stack([prices, np.full(24, 7.0)], axis=1))
    assert beside.target_scale_[1] == 1.0
    assert np.isfinite(beside.predict(mails)).all()


@flat
@pytest.mark.parametrize(("loss", "torchs"), [
    ("squared_error", lambda z, y: F.mse_loss(z, y)),
    ("absolute_error", lambda z, y: F.l1_loss(z, y)),
    ("huber", lambda z, y: F.huber_loss(z, y, delta=0.7)),
])  # fmt: skip
def test_the_recorded_loss_is_torchs_on_standardised_targets(
    regressor: Maker, mails: list[str], prices: np.ndarray, loss: str, torchs: Callable[..., torch.Tensor]
) -> None:
    """With a rate of 0 the model stays; its predictions then give the recorded loss."""
    y = np.stack([prices, np.arange(24.0)], axis=1)
    still = regressor(learning_rate=0.0, max_epochs=1, loss=loss, epsilon=0.7).fit(mails, y)
    z, targets = (
        torch.from_numpy((values - still.target_mean_) / still.target_scale_)
        for values in (still.predict(mails), y)
    )
    assert still.history_.train_loss.tolist() == pytest.approx([float(torchs(z, targets))], rel=1e-5)


def test_huber_by_hand() -> None:
    errors = torch.tensor([[0.5, -3.0], [2.0, 0.0]])
    losses = ValueLoss("huber", 1.5)(errors, torch.zeros(2, 2))
    inside, outside = 0.5 * 0.5**2, 1.5 * (3.0 - 0.75)
    assert losses.tolist() == pytest.approx([(inside + outside) / 2, 1.5 * (2.0 - 0.75) / 2])


def test_an_outlier_pulls_less_under_absolute_error(
    regressor: Maker, mails: list[str], prices: np.ndarray
) -> None:
    y = prices.copy()
    y[0] = 50_000.0
    errors = {
        loss: root_mean_squared_error(
            prices[1:], regressor(loss=loss, max_epochs=6).fit(mails, y).predict(mails)[1:]
        )
        for loss in ("squared_error", "absolute_error")
    }
    assert errors["absolute_error"] < 0.9 * errors["squared_error"]


@flat
def test_weights_reach_the_loss_and_the_scaler(quick: Maker, mails: list[str], prices: np.ndarray) -> None:
    plain = quick().fit(mails, prices).predict(mails)
    for equal in (np.ones(24), np.full(24, 7.0)):
        np.testing.assert_array_equal(quick().fit(mails, prices, equal).predict(mails), plain)
    weights = np.linspace(0.5, 3.0, 24)
    weighted = quick().fit(mails, prices, sample_weight=weights)
    scaler = StandardScaler().fit(prices[:, None], sample_weight=weights)
    np.testing.assert_allclose(weighted.target_mean_, scaler.mean_, rtol=1e-6)
    np.testing.assert_allclose(weighted.target_scale_, scaler.scale_, rtol=1e-6)
    assert np.abs(weighted.predict(mails) - plain).max() > 1.0


@flat
def test_a_row_of_weight_zero_has_no_say(quick: Maker, mails: list[str], prices: np.ndarray) -> None:
    weights = np.ones(24)
    weights[[3, 8]] = 0.0
    kept = np.flatnonzero(weights)
    wild = np.where(weights == 0, 1e36, prices)
    full = {"batch_size": 24, "max_epochs": 3}
    weighted = quick(**full).fit(mails, wild, sample_weight=weights)
    without = quick(**full).fit([mails[i] for i in kept], prices[kept])
    np.testing.assert_allclose(weighted.predict(mails), without.predict(mails), rtol=1e-6)
    np.testing.assert_allclose(weighted.history_.train_loss, without.history_.train_loss, rtol=1e-5)


@flat
def test_pairs(quick: Maker, mails: list[str], prices: np.ndarray) -> None:
    pairs = list(zip(mails, mails[5:] + mails[:5], strict=True))
    fitted = quick("bert").fit(pairs, prices)
    frame = pd.DataFrame(pairs, columns=["first", "second"])
    np.testing.assert_array_equal(fitted.predict(frame), fitted.predict(pairs))
    swapped = fitted.predict([(second, first) for first, second in pairs])
    assert np.abs(swapped - fitted.predict(pairs)).max() > 1e-3
    with pytest.raises(
        ValueError, match="X has single texts, but TransformerRegressor was fitted on pairs of"
    ):
        fitted.predict(mails)


@flat
@pytest.mark.parametrize("aggregation", ["mean", "length"])
def test_long_documents(quick: Maker, mails: list[str], prices: np.ndarray, aggregation: str) -> None:
    """A document of several windows gets the mean of what its windows get alone."""
    chunked = quick("bert", truncation="chunk", max_length=12, stride=2, aggregation=aggregation)
    chunked.fit(mails, prices)
    document = " ".join(mails[:3])
    windows = chunked._encode_again([document])
    assert len(windows.document) > 2
    alone = chunked._units.restored(
        np.concatenate([rows.numpy() for _, rows in _windows_in_turn(chunked, windows)])
    )
    shares = windows.lengths if aggregation == "length" else None
    assert chunked.predict([document])[0] == pytest.approx(np.average(alone[:, 0], weights=shares), rel=1e-6)
    with pytest.raises(
        ValueError, match=r'aggregation="max" is for classes: .* biased upwards; choose one of'
    ):
        quick(aggregation="max").fit(mails, prices)


def _windows_in_turn(fitted: TransformerRegressor, windows: Any) -> Any:
    from sktransformer._engine.inference.forward import read_logits

    found = list(fitted._passes().run(windows, read_logits))
    order = np.argsort(np.concatenate([rows for rows, _ in found]))
    return [(None, torch.cat([rows for _, rows in found])[order])]


@pytest.mark.parametrize("name", ["bert", "camembert"])
def test_packed_is_padded(
    regressor: Maker, mails: list[str], prices: np.ndarray, padded: Callable[[], None], name: str
) -> None:
    cut = {"max_epochs": 6, "learning_rate": 1e-2}
    packed = regressor(name, **cut).fit(mails, prices)
    expected, scale = packed.predict(mails), packed.target_scale_[0]
    assert np.ptp(expected) > 0.1 * scale
    np.testing.assert_allclose(packed.set_params(token_budget=16).predict(mails), expected, atol=1e-5 * scale)
    padded()
    np.testing.assert_allclose(packed.predict(mails), expected, atol=1e-5 * scale)
    other = regressor(name, **cut, token_budget=32).fit(mails, prices)
    np.testing.assert_allclose(other.predict(mails), expected, atol=1e-3 * scale)


def test_a_collapse_warns(regressor: Maker, mails: list[str], prices: np.ndarray) -> None:
    with pytest.warns(
        ConvergenceWarning, match=r"training collapsed: every document gets -?[\d.]+, whatever"
    ):
        regressor(freeze="all", learning_rate=0.0, max_epochs=1, callbacks=[_zero_head()]).fit(mails, prices)
    y = np.stack([prices, np.full(24, 2.0)], axis=1)  # a constant output has nothing to collapse from
    with pytest.warns(
        ConvergenceWarning, match=r"in output\(s\) 0, whatever its target; lower learning_rate"
    ):
        regressor(freeze="all", learning_rate=0.0, max_epochs=1, callbacks=[_zero_head()]).fit(mails, y)


def _zero_head() -> Any:
    from skorch.callbacks import Callback

    class ZeroHead(Callback):
        def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
            with torch.no_grad():
                net.module_.classifier.out_proj.weight.zero_()

    return ZeroHead()


def test_unfitted(quick: Maker, mails: list[str]) -> None:
    with pytest.raises(NotFittedError, match="This TransformerRegressor instance is not fitted yet"):
        quick().predict(mails)


@flat
def test_a_pickle_gives_the_same(quick: Maker, mails: list[str], prices: np.ndarray) -> None:
    fitted = quick().fit(mails, prices.astype(np.float32)[:, None])
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(mails), fitted.predict(mails))
    assert again.predict(mails).dtype == np.float32
