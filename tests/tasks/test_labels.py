"""What comes as y: faults are told with their row, and nothing is taken for something else."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from sktransformer import TransformerClassifier, TransformerEmbedder
from sktransformer.exceptions import CheckpointCorruptError
from sktransformer.testing import tiny_checkpoint

pytestmark = pytest.mark.filterwarnings("ignore:training collapsed:sklearn.exceptions.ConvergenceWarning")
X = ["où est ma facture ?", "le colis est en retard"] * 6


def classifier(**changes):
    settings = {"max_epochs": 1, "random_state": 0, "precision": "float32", "learning_rate": 1e-2}
    return TransformerClassifier(tiny_checkpoint("bert"), **{**settings, **changes})


@pytest.mark.parametrize("rows", [[[1, -1], [-1, 1]], [[1, 2], [2, 1]]])
def test_two_integers_that_are_not_0_and_1_are_no_indicator(rows):
    with pytest.raises(ValueError, match="must be a 0/1 indicator matrix"):
        classifier().fit(X, rows * 6)


@pytest.mark.parametrize(
    "y",
    [
        ("a", float("nan")) * 6,
        pd.Series(pd.to_datetime(["2024-01-01", None] * 6)),
        ["a", None] * 6,
    ],
    ids=["tuple", "dates", "list"],
)
def test_missing_labels_are_listed(y):
    with pytest.raises(ValueError, match=r"y has 6 missing label\(s\).*1, 3, 5"):
        classifier().fit(X, y)


def test_a_tuple_of_mixed_labels_raises_as_a_list_does():
    for y in (("a", 1) * 6, ["a", 1] * 6):
        with pytest.raises(TypeError, match="y mixes labels of type int and str"):
            classifier().fit(X, y)


def test_texts_of_numpy_and_of_python_are_one_kind():
    y = pd.Series(["a", np.str_("b")] * 6, dtype=object)
    assert classifier().fit(X, y).classes_.tolist() == ["a", "b"]


def test_collections_as_labels_name_the_row_and_the_way():
    tuples = np.empty(12, dtype=object)
    tuples[:] = [(1, 2), (2, 3)] * 6
    for y in (tuples, [["a"], ["a", "b"]] * 6, [{"a"}, {"b"}] * 6):
        with pytest.raises(TypeError, match=r"y\[0\] must be one label.*MultiLabelBinarizer"):
            classifier().fit(X, y)


def test_a_part_of_soft_labels_stays_soft():
    y = np.array([[0.5, 0.5], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]] * 3)
    assert classifier().fit(X, y).label_kind_ == "soft"
    part = classifier().fit(X[1:4], y[1:4])
    assert part.label_kind_ == "soft"
    assert classifier().fit(X, (y > 0).astype(int)).label_kind_ == "multilabel"


def test_score_of_soft_labels_takes_the_most_probable_class_for_right():
    y = pd.DataFrame({"f": [0.9, 0.2] * 6, "c": [0.1, 0.8] * 6})
    fitted = classifier(max_epochs=10).fit(X, y)
    hard = np.array(["f", "c"] * 6)
    said = fitted.predict(X)
    weights = np.arange(12.0)
    assert fitted.score(X, y) == np.mean(said == hard) == 1.0
    assert fitted.score(X, y[["c", "f"]]) == fitted.score(X, hard) == fitted.score(X, y.to_numpy()) == 1.0
    moved = y.copy()
    moved.iloc[:3] = 1 - moved.iloc[:3]
    expected = np.average(moved.idxmax(axis=1) == said, weights=weights)
    assert fitted.score(X, moved, sample_weight=weights) == expected == 1 - (0 + 1 + 2) / 66
    assert classifier(max_epochs=10).fit(X, hard).score(X, y) == 1.0


def test_score_refuses_other_columns_and_several_labels():
    fitted = classifier().fit(X, [[0.9, 0.1], [0.2, 0.8]] * 6)
    for wrong, said in (
        (np.full((12, 3), 1 / 3), r"must be the 2 classes \[0, 1\], got 3"),
        (pd.DataFrame(np.full((12, 2), 0.5), columns=["a", "b"]), r"got \['a', 'b'\]"),
        (np.ones((12, 2), dtype=int), "marks several classes a document"),
        (np.full((12, 2), 0.7), "row 0 is .* which sums to 1.4"),
        ([["a", "b"]] * 12, "holds labels, not numbers"),
    ):
        with pytest.raises(ValueError, match=said):
            fitted.score(X, wrong)
    with pytest.raises(NotFittedError):
        classifier().score(X, ["f", "c"] * 6)


def test_scorers_get_the_texts():
    seen = []

    def longest(estimator, rows, labels):
        seen.append(rows)
        return float(max(len(text) for text in rows))

    classifier(early_stopping=True, validation_fraction=0.4, scoring=longest).fit(X, ["f", "c"] * 6)
    assert set(seen[0]) == set(X)

    def infinite(estimator, rows, labels):
        return float("inf")

    with pytest.raises(ValueError, match="it is no finite number"):
        classifier(early_stopping=True, validation_fraction=0.4, scoring=infinite).fit(X, ["f", "c"] * 6)


def test_a_warm_start_does_not_pretend_to_have_changed_the_model():
    fitted = classifier(warm_start=True, dropout=0.0).fit(X, ["f", "c"] * 6)
    with pytest.raises(ValueError, match="model, dropout or attention_dropout was changed"):
        fitted.set_params(dropout=0.9).fit(X, ["f", "c"] * 6)
    assert fitted.set_params(dropout=0.0).fit(X, ["f", "c"] * 6).n_epochs_ == 1


def test_a_device_that_computes_nothing_is_refused_and_the_model_kept():
    fitted = classifier().fit(X, ["f", "c"] * 6)
    before = fitted.predict_proba(X)
    with pytest.raises(ValueError, match="device='meta' is not a device"):
        fitted.set_params(device="meta").predict(X)
    np.testing.assert_array_equal(fitted.set_params(device="cpu").predict_proba(X), before)


@pytest.mark.parametrize(
    ("changes", "error"),
    [({"pooling": "x"}, ValueError), ({"prompt": 5}, TypeError), ({"token_budget": 0}, ValueError)],
)
def test_parameters_set_after_the_fit_are_checked(changes, error):
    embedder = TransformerEmbedder(tiny_checkpoint("bert")).fit(X)
    with pytest.raises(error, match=next(iter(changes))):
        embedder.set_params(**changes).transform(X)


def test_columns_of_one_name_raise():
    with pytest.raises(ValueError, match=r"X has several columns of one name, .*rename them"):
        classifier().fit(pd.DataFrame([[text, text] for text in X], columns=["a", "a"]), ["f", "c"] * 6)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("num_hidden_layers", 1, "config.json says 1 layers, but there are weights of more"),
        ("id2label", {"0": "a", "5": "b"}, "must give ids from 0 different names"),
        ("id2label", {"0": "a", "1": "a"}, "must give ids from 0 different names"),
    ],
)
def test_a_config_that_does_not_fit_its_weights_raises(field, value, message, tmp_path):
    classifier().fit(X, ["f", "c"] * 6).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    config[field] = value
    path.write_text(json.dumps(config))
    with pytest.raises(CheckpointCorruptError, match=message):
        TransformerClassifier.from_pretrained(tmp_path)
