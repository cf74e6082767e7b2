"""TransformerClassifier: what it learns, from which labels, under which weights."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from scipy.special import expit, log_softmax, softmax
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import f1_score
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import type_of_target

from sktransformer.tasks._holdout import held_out
from sktransformer.tasks.classification import TransformerClassifier
from sktransformer.testing.checkpoints import tiny_checkpoint

Maker = Callable[..., TransformerClassifier]
# a random model of one epoch takes every mail for one class, and says so
collapses = pytest.mark.filterwarnings("ignore:training collapsed:sklearn.exceptions.ConvergenceWarning")


def test_two_classes(classifier: Maker, mails: list[str], labels: list[str]) -> None:
    fitted = classifier().fit(mails, labels)
    assert is_classifier(fitted)
    assert fitted.classes_.tolist() == ["facture", "livraison"]
    assert fitted.score(mails, labels) == 1.0

    probabilities = fitted.predict_proba(mails)
    assert probabilities.shape == (24, 2)
    assert probabilities.dtype == np.float32
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-5)
    assert fitted.predict(mails).tolist() == fitted.classes_[probabilities.argmax(axis=1)].tolist() == labels

    margin = fitted.decision_function(mails)
    assert margin.shape == (24,)
    np.testing.assert_allclose(expit(margin), probabilities[:, 1], atol=1e-6)


def test_three_classes(classifier: Maker, three_mails: list[str], three_labels: list[str]) -> None:
    fitted = classifier("modernbert").fit(three_mails, three_labels)
    assert fitted.score(three_mails, three_labels) == 1.0
    logits = fitted.decision_function(three_mails)
    assert logits.shape == (18, 3)
    np.testing.assert_allclose(softmax(logits, axis=1), fitted.predict_proba(three_mails), atol=1e-6)


def test_several_labels_a_mail(classifier: Maker, three_mails: list[str], three_labels: list[str]) -> None:
    names = ["facture", "livraison", "urgent"]
    y = pd.DataFrame(
        {
            "facture": [int(label == "facture") for label in three_labels],
            "livraison": [int(label == "livraison") for label in three_labels],
            "urgent": [int(label != "facture") for label in three_labels],
        }
    )
    fitted = classifier("modernbert").fit(three_mails, y)
    assert fitted.classes_.tolist() == names
    predicted, probabilities = fitted.predict(three_mails), fitted.predict_proba(three_mails)
    assert predicted.shape == probabilities.shape == (18, 3)
    assert type_of_target(predicted) == "multilabel-indicator"
    np.testing.assert_array_equal(predicted, (probabilities > 0.5).astype(int))
    np.testing.assert_allclose(probabilities, expit(fitted.decision_function(three_mails)), atol=1e-6)
    assert f1_score(y, predicted, average="macro") > 0.9
    assert fitted.score(three_mails, y) == np.mean((predicted == y.to_numpy()).all(axis=1))
    assert fitted.predict([]).shape == (0, 3)
    sparse = classifier("modernbert").fit(three_mails, csr_matrix(y.to_numpy()))
    np.testing.assert_array_equal(sparse.predict_proba(three_mails), probabilities)
    assert sparse.classes_.tolist() == [0, 1, 2]


@collapses
def test_soft_labels_are_targets_as_they_stand(quick: Maker, mails: list[str], labels: list[str]) -> None:
    """Smoothing by s is the distribution (1 - s) y + s / C, so both fits are one and the same."""
    s = 0.3
    hard = np.array([[label == "facture", label == "livraison"] for label in labels], dtype=float)
    soft = pd.DataFrame((1 - s) * hard + s / 2, columns=["facture", "livraison"])
    by_rows = quick(max_epochs=3).fit(mails, soft)
    smoothed = quick(max_epochs=3, label_smoothing=s).fit(mails, labels)
    np.testing.assert_allclose(by_rows.predict_proba(mails), smoothed.predict_proba(mails), atol=1e-6)
    np.testing.assert_allclose(by_rows.history_.train_loss, smoothed.history_.train_loss, rtol=1e-6)
    assert by_rows.classes_.tolist() == ["facture", "livraison"]
    unsmoothed = quick(max_epochs=3).fit(mails, labels)
    assert np.abs(unsmoothed.predict_proba(mails) - smoothed.predict_proba(mails)).max() > 1e-4


def test_soft_labels_that_are_no_distribution_name_the_row(quick: Maker, mails: list[str]) -> None:
    y = np.full((24, 2), 0.5)
    y[7] = [0.5, 0.7]
    with pytest.raises(ValueError, match=r"row 7 is \[0.5, 0.7\], which sums to 1.2"):
        quick().fit(mails, y)


@collapses
def test_pairs(quick: Maker, mails: list[str], labels: list[str]) -> None:
    seconds = [f"objet {i % 5}" for i in range(24)]
    pairs = list(zip(mails, seconds, strict=True))
    frame = pd.DataFrame({"body": mails, "subject": seconds}, index=range(100, 124))
    fitted = quick("bert").fit(pairs, labels)
    expected = fitted.predict_proba(pairs)
    for X in (frame.to_numpy(), frame.set_axis([0, 1], axis=1), np.array(pairs)):
        np.testing.assert_array_equal(quick("bert").fit(X, labels).predict_proba(X), expected)
    swapped = fitted.predict_proba([(second, first) for first, second in pairs])
    assert np.abs(swapped - expected).max() > 1e-4
    with pytest.raises(
        ValueError, match="X has single texts, but TransformerClassifier was fitted on pairs of"
    ):
        fitted.predict(mails)
    with pytest.raises(
        ValueError, match="X has pairs of texts, but TransformerClassifier was fitted on single"
    ):
        quick("bert").fit(mails, labels).predict(pairs)


@collapses
@pytest.mark.parametrize(
    ("values", "y"),
    [
        (["a", "b"], lambda v: v),
        ([-7, 40], lambda v: v),
        ([False, True], lambda v: v),
        ([-7, 40], lambda v: np.array(v, dtype=object)),
        (["a", "b"], lambda v: np.array(v, dtype=object)),
        (["a", "b"], lambda v: pd.Series(v, index=range(50, 74), dtype="category")),
        ([-7, 40], lambda v: pd.Series(v, dtype="category")),
        (["a", "b"], lambda v: pd.Series(v, dtype="string")),
        ([False, True], lambda v: pd.Series(v, dtype="boolean")),
        ([2.0, 3.0], lambda v: np.array(v)),
        (["a", "b"], lambda v: np.array(v, dtype=np.dtypes.StringDType())),
    ],
    ids=[
        "str", "int", "bool", "object-int", "object-str", "category-str", "category-int", "string", "boolean",
        "float", "StringDType",
    ],
)  # fmt: skip
def test_labels_of_every_type_come_back(
    quick: Maker, mails: list[str], values: list[Any], y: Callable[[list[Any]], Any]
) -> None:
    given = y([values[1], values[0]] * 12)
    fitted = quick().fit(mails, given)
    assert fitted.classes_.tolist() == values
    predicted = fitted.predict(mails)
    assert set(predicted.tolist()) <= set(values)
    assert fitted.classes_[fitted.predict_proba(mails).argmax(axis=1)].tolist() == predicted.tolist()
    assert fitted.score(mails, [values[1], values[0]] * 12) == np.mean(
        predicted == np.array([values[1], values[0]] * 12)
    )
    again = pickle.loads(pickle.dumps(fitted))
    assert again.classes_.dtype == fitted.classes_.dtype
    assert again.predict(mails).tolist() == predicted.tolist()


@collapses
def test_class_weight_is_a_sample_weight(quick: Maker, mails: list[str]) -> None:
    y = np.array([*["facture"] * 6, *["livraison"] * 18])
    by_class = {"facture": 5.0, "livraison": 0.5}
    for class_weight in ("balanced", by_class):
        weights = compute_sample_weight(class_weight, y)
        expected = quick().fit(mails, y, sample_weight=weights).predict_proba(mails)
        got = quick(class_weight=class_weight).fit(mails, y).predict_proba(mails)
        np.testing.assert_array_equal(got, expected)
        assert np.abs(got - quick().fit(mails, y).predict_proba(mails)).max() > 1e-5
    both = quick(class_weight=by_class).fit(mails, y, sample_weight=np.arange(1.0, 25.0))
    product = quick().fit(mails, y, sample_weight=np.arange(1.0, 25.0) * compute_sample_weight(by_class, y))
    np.testing.assert_allclose(both.predict_proba(mails), product.predict_proba(mails), atol=1e-7)


@collapses
def test_balanced_weights_come_from_the_training_part_alone(quick: Maker, mails: list[str]) -> None:
    y = np.array([*["facture"] * 5, *["livraison"] * 19])
    split = {"early_stopping": True, "validation_fraction": 0.3}
    index = (y == "livraison").astype(np.int64)
    training, _ = held_out(index, np.array(["facture", "livraison"]), 0.3, 0)
    weights = np.ones(24)
    weights[training] = compute_sample_weight("balanced", y[training])
    assert not np.allclose(weights[training], compute_sample_weight("balanced", y)[training], rtol=1e-3)
    expected = quick(**split).fit(mails, y, sample_weight=weights).predict_proba(mails)
    got = quick(**split, class_weight="balanced").fit(mails, y).predict_proba(mails)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("class_weight", "error", "message"),
    [
        (
            "balancd",
            ValueError,
            "class_weight must be None, \"balanced\" or a dict of classes, got 'balancd'",
        ),
        (
            {"facture": 1.0, "colis": 2.0},
            ValueError,
            r"'colis', which is not among the classes \['facture', ",
        ),
    ],
)
def test_class_weight_of_another_kind(
    quick: Maker, mails: list[str], labels: list[str], class_weight: Any, error: type, message: str
) -> None:
    with pytest.raises(error, match=message):
        quick(class_weight=class_weight).fit(mails, labels)


@collapses
def test_equal_weights_are_no_weights(quick: Maker, mails: list[str], labels: list[str]) -> None:
    expected = quick().fit(mails, labels).predict_proba(mails)
    for weights in (np.ones(24), np.full(24, 7.0), [1] * 24):
        got = quick().fit(mails, labels, sample_weight=weights).predict_proba(mails)
        np.testing.assert_array_equal(got, expected)


@collapses
def test_zero_weight_drops_a_row(quick: Maker, mails: list[str], labels: list[str]) -> None:
    """In one step over all rows; in several, the dropped rows would change which rows share a step."""
    weights = np.ones(24)
    dropped = [0, 1, 5, 10]
    weights[dropped] = 0.0
    kept = np.setdiff1d(np.arange(24), dropped)
    full = {"batch_size": 24, "max_epochs": 3}
    weighted = quick(**full).fit(mails, labels, sample_weight=weights)
    without = quick(**full).fit([mails[i] for i in kept], [labels[i] for i in kept])
    np.testing.assert_allclose(weighted.predict_proba(mails), without.predict_proba(mails), atol=1e-6)
    np.testing.assert_allclose(weighted.history_.train_loss, without.history_.train_loss, rtol=1e-5)
    unweighted = quick(**full).fit(mails, labels)
    assert np.abs(unweighted.predict_proba(mails) - without.predict_proba(mails)).max() > 1e-5


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.zeros(24), "weight"),
        (np.full(24, np.nan), "NaN"),
        (np.r_[-1.0, np.ones(23)], "[Nn]egative"),
        (np.ones(23), "sample_weight.shape == "),
    ],
)
def test_impossible_weights(
    quick: Maker, mails: list[str], labels: list[str], weights: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        quick().fit(mails, labels, sample_weight=weights)


def test_loss_of_the_first_step_is_the_cross_entropy(
    classifier: Maker, mails: list[str], labels: list[str]
) -> None:
    """With a rate of 0 the model stays; its logits then give the recorded loss by the textbook formula."""
    still = classifier(learning_rate=0.0, max_epochs=1, weight_decay=0.0, max_grad_norm=None)
    with pytest.warns(UserWarning, match="collapsed"):
        still.fit(mails, labels)
    logits = np.stack([-0.5 * still.decision_function(mails), 0.5 * still.decision_function(mails)], axis=1)
    chosen = (np.array(labels) == "livraison").astype(int)
    expected = -log_softmax(logits, axis=1)[np.arange(24), chosen].mean()
    assert still.history_.train_loss.tolist() == pytest.approx([expected], rel=1e-5)


@collapses
def test_empty_input_gives_empty_output(quick: Maker, mails: list[str], labels: list[str]) -> None:
    fitted = quick().fit(mails, labels)
    assert fitted.predict([]).shape == (0,)
    assert fitted.predict([]).dtype == fitted.classes_.dtype
    assert fitted.predict_proba([]).shape == (0, 2)
    assert fitted.decision_function([]).shape == (0,)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_unfitted(quick: Maker, mails: list[str], method: str) -> None:
    with pytest.raises(NotFittedError, match="This TransformerClassifier instance is not fitted yet"):
        getattr(quick(), method)(mails)


def test_parameters_stay_as_they_were_given(
    mails: list[str], labels: list[str], learning: dict[str, Any]
) -> None:
    folder = tiny_checkpoint("camembert")
    weights = {"facture": 2.0}
    estimator = TransformerClassifier(folder, class_weight=weights, **learning)
    before = estimator.get_params()
    estimator.fit(mails, labels)
    after = estimator.get_params()
    assert after == before
    assert after["class_weight"] is weights
    assert weights == {"facture": 2.0}


@collapses
def test_fit_mutates_nothing(quick: Maker, mails: list[str], labels: list[str]) -> None:
    frame = pd.DataFrame({"body": mails}, index=range(24, 0, -1))
    y = pd.Series(labels, index=frame.index, dtype="category")
    weights = np.ones(24)
    originals = frame.copy(deep=True), y.copy(deep=True), weights.copy()
    quick(early_stopping=True).fit(frame, y, sample_weight=weights).predict(frame)
    pd.testing.assert_frame_equal(frame, originals[0])
    pd.testing.assert_series_equal(y, originals[1])
    np.testing.assert_array_equal(weights, originals[2])
