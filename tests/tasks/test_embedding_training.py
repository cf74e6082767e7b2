"""Fine-tuning an embedder: on labels, on pairs, on graded pairs; held-out scores; what can't be learned from."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from skorch.callbacks import Callback

from sktransformer._engine.errors import NonFiniteLossError
from sktransformer._engine.text.documents import Documents
from sktransformer.tasks._embedding.targets import as_targets, default_score, held_out
from sktransformer.tasks.embedding import TransformerEmbedder
from sktransformer.testing.checkpoints import tiny_checkpoint

SHORT: dict[str, Any] = {"max_epochs": 1, "learning_rate": 1e-3, "batch_size": 8, "random_state": 0}


@pytest.fixture
def tuned(learning: dict[str, Any]) -> Callable[..., TransformerEmbedder]:
    """Make an embedder that learns the mails."""

    def make(fine_tune: str, name: str = "camembert", **parameters: Any) -> TransformerEmbedder:
        settings = {**learning, "batch_size": 12, "max_epochs": 10, "fine_tune": fine_tune, **parameters}
        return TransformerEmbedder(tiny_checkpoint(name), **settings)

    return make


def pairs_of(mails: list[str]) -> list[tuple[str, str]]:
    return list(zip(mails[:6], mails[6:12], strict=True))


def test_labels_draw_documents_together(
    tuned: Callable[..., TransformerEmbedder], mails: list[str], labels: list[str]
) -> None:
    mails, labels = mails[:12], labels[:12]
    same = np.equal.outer(labels, labels)

    def gap(embedder: TransformerEmbedder) -> float:
        vectors = embedder.transform(mails)
        cosines = vectors @ vectors.T
        return float(cosines[same].mean() - cosines[~same].mean())

    embedder = tuned("labels").fit(mails, labels)
    assert gap(embedder) > 0.4
    assert gap(TransformerEmbedder(tiny_checkpoint("camembert")).fit(mails)) < 0.2
    assert embedder.classes_.tolist() == ["facture", "livraison"]
    losses = embedder.history_["train_loss"]
    assert losses.iloc[-1] < losses.iloc[0] * 0.8
    assert embedder.n_epochs_ == embedder.best_epoch_ == 10
    again = pickle.loads(pickle.dumps(embedder))
    np.testing.assert_array_equal(again.transform(mails), embedder.transform(mails))
    head = make_pipeline(clone(embedder), LogisticRegression())
    assert head.fit(mails, labels).score(mails, labels) == 1.0


def test_documents_of_labels_may_be_pairs(mails: list[str], labels: list[str]) -> None:
    X = pd.DataFrame({"subject": [mail[:8] for mail in mails], "body": mails})
    embedder = TransformerEmbedder(tiny_checkpoint("bert"), fine_tune="labels", output_dtype="int8", **SHORT)
    assert embedder.fit(X, labels).transform(X).shape == (24, 32)
    assert embedder.feature_names_in_.tolist() == ["subject", "body"]
    frozen = TransformerEmbedder(tiny_checkpoint("bert")).fit(X)
    tuned = embedder.set_params(output_dtype="float32").transform(X)
    assert 1e-4 < np.abs(tuned - frozen.transform(X)).max() < 0.5


def test_pairs_find_each_other(tuned: Callable[..., TransformerEmbedder], mails: list[str]) -> None:
    pairs = pd.DataFrame(pairs_of(mails), columns=["question", "answer"])
    embedder = tuned("pairs", prompts={"query": "q ", "document": "d "}, max_epochs=20).fit(pairs)
    cosines = (
        embedder.transform(pairs["question"], role="query")
        @ embedder.transform(pairs["answer"], role="document").T
    )
    assert cosines.argmax(axis=1).tolist() == list(range(6))
    assert not hasattr(embedder, "n_features_in_")  # `transform` reads single texts
    assert embedder.transform(pairs[["answer"]]).shape == (6, 32)
    with pytest.raises(
        ValueError, match="was fine-tuned on pairs, whose texts it embeds one by one; pass one column"
    ):
        embedder.transform(pairs)


def test_graded_pairs_get_into_order(tuned: Callable[..., TransformerEmbedder], mails: list[str]) -> None:
    pairs, grades = pairs_of(mails), [0.0, 5.0, 1.0, 4.0, 2.5, 2.5]
    embedder = tuned("graded", max_epochs=25).fit(pairs, grades)
    first, second = (embedder.transform([pair[i] for pair in pairs]) for i in (0, 1))
    assert spearmanr((first * second).sum(axis=1), grades).statistic > 0.9


@pytest.mark.parametrize("kind", ["labels", "pairs", "graded"])
@pytest.mark.parametrize("name", ["bert", "modernbert"])
def test_the_cut_of_the_work_does_not_matter(kind: str, name: str, mails: list[str]) -> None:
    X: Any = mails[:12] if kind == "labels" else pairs_of(mails)
    y = {"labels": [0, 1, 2] * 4, "pairs": None, "graded": [1.0, 2.0, 3.0] * 2}[kind]
    options = {
        **SHORT,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "truncation": "chunk",
        "max_length": 12,
        "stride": 2,
    }
    if name == "modernbert":
        options["dropout"] = None
    found = [
        TransformerEmbedder(
            tiny_checkpoint(name), fine_tune=kind, token_budget=budget, precision="float32", **options
        )
        .fit(X, y)
        .transform(mails)
        for budget in (16, 10_000)
    ]
    np.testing.assert_allclose(found[0], found[1], atol=1e-4)


def test_frozen_ignores_y_and_forgets_a_training(mails: list[str], labels: list[str]) -> None:
    embedder = TransformerEmbedder(tiny_checkpoint("bert"), fine_tune="labels", **SHORT).fit(mails, labels)
    expected = TransformerEmbedder(tiny_checkpoint("bert")).fit(mails).transform(mails)
    assert np.abs(embedder.transform(mails) - expected).max() > 1e-4
    embedder.set_params(fine_tune=None, warm_start=True).fit(mails, labels)
    np.testing.assert_array_equal(embedder.transform(mails), expected)
    assert not hasattr(embedder, "history_")
    assert not hasattr(embedder, "classes_")
    embedder.set_params(fine_tune="labels").fit(mails, labels).fit(mails, labels)
    assert embedder.history_["epoch"].tolist() == [1, 2]  # only the second fit went on from a training


def test_int8_is_calibrated_after_training(mails: list[str], labels: list[str]) -> None:
    options = {**SHORT, "fine_tune": "labels", "truncate_dim": 16}
    floats = TransformerEmbedder(tiny_checkpoint("bert"), **options).fit(mails, labels).transform(mails)
    whole = TransformerEmbedder(tiny_checkpoint("bert"), output_dtype="int8", **options).fit(mails, labels)
    assert whole.int8_scale_ == np.abs(floats).max()


# -- held out ----------------------------------------------------------------------------------------------------------


def test_the_best_epoch_is_restored(mails: list[str], labels: list[str]) -> None:
    seen: list[np.ndarray] = []

    def scoring(embedder: Any, X: Any, y: Any) -> float:
        assert len(X) == len(y) == 8
        seen.append(embedder.transform(mails))
        return [0.1, 0.8, 0.3, 0.2][len(seen) - 1]

    embedder = TransformerEmbedder(
        tiny_checkpoint("bert"), fine_tune="labels", early_stopping=True, validation_fraction=0.34, scoring=scoring,
        **{**SHORT, "max_epochs": 9, "lr_schedule": "constant"},
    ).fit(mails, labels)  # fmt: skip
    assert embedder.best_epoch_ == 2
    assert embedder.n_epochs_ == 4
    np.testing.assert_array_equal(embedder.transform(mails), seen[1])


@pytest.mark.parametrize("kind", ["labels", "pairs", "graded"])
def test_default_scores_are_on_record(kind: str, mails: list[str], labels: list[str]) -> None:
    X: Any = mails if kind == "labels" else [*zip(mails, mails[::-1], strict=True)]
    y = {"labels": labels, "pairs": None, "graded": np.arange(24.0)}[kind]
    embedder = TransformerEmbedder(
        tiny_checkpoint("bert"), fine_tune=kind, early_stopping=True, validation_fraction=0.3, **SHORT
    ).fit(X, y)
    (score,) = embedder.history_["valid_score"]
    assert -1 <= score <= 1


def test_default_scores_by_hand() -> None:
    points = {"a": [1.0, 0.0], "b": [0.8, 0.6], "c": [0.0, 1.0], "d": [0.6, 0.8]}

    def embed(documents: Documents, role: str | None) -> np.ndarray:
        return np.array([points[text] for text in documents.first], dtype=np.float32)

    single = Documents(["a", "b", "c", "d"])
    assert (
        default_score("labels", embed, single.rows(), np.array([0, 0, 1, 1])) == 0.5
    )  # b and d find each other
    pairs = Documents(["a", "c", "d"], ["b", "d", "b"])
    assert default_score("pairs", embed, pairs.rows(), np.array([[0, 1], [2, 3], [3, 1]])) == pytest.approx(
        2 / 3
    )
    assert default_score("graded", embed, pairs.rows(), np.array([1.0, 2.0, 3.0])) == pytest.approx(
        spearmanr([0.8, 0.8, 0.96], [1, 2, 3]).statistic
    )
    assert np.isnan(default_score("graded", embed, pairs.rows(), np.ones(3)))


def test_labels_are_held_out_in_twos() -> None:
    labels = ["a"] * 9 + ["b"] * 5 + ["c"] * 3 + ["d"]
    with pytest.warns(
        UserWarning, match=r"1 class\(es\) with a single document .* nothing to be pulled to: d"
    ):
        targets = as_targets("labels", Documents(labels), labels)
    training, held = held_out(targets, 0.3, 0)
    assert sorted([*training, *held]) == list(range(18))
    names, counts = np.unique(np.array(labels)[held], return_counts=True)
    assert names.tolist() == ["a", "b"]  # c would keep one
    assert (counts % 2 == 0).all()
    assert held_out(targets, 0.3, 0)[1].tolist() == held.tolist()


# -- what can't be learned from ----------------------------------------------------------------------------------------

PAIRS = [("a", "b"), ("c", "d"), ("e", "f")]


def test_pairs_of_a_group_meet(tuned: Callable[..., TransformerEmbedder], mails: list[str]) -> None:
    """In batches of 4 a row meets its group's other one, which without groups is a matter of chance."""
    pairs, groups = pairs_of(mails), ["a", "b", "c", "a", "b", "c"]
    met: list[list[str]] = []

    class Watch(Callback):
        def on_batch_begin(self, net: Any, batch: Any = None, training: bool = False, **kwargs: Any) -> None:
            met.append([groups[row] for row in batch[0]])

    tuned("pairs", batch_size=4, max_epochs=3, callbacks=[Watch()]).fit(pairs, groups)
    assert len(met) == 6
    assert all(names.count(name) == 2 for names in met for name in names)


def test_a_text_of_several_pairs_is_read_once_a_batch(tuned: Callable[..., TransformerEmbedder]) -> None:
    def tokens(pairs: list[tuple[str, str]]) -> int:
        read: list[int] = []

        class Count(Callback):
            def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
                net.module_.register_forward_pre_hook(
                    lambda module, args, given: read.append(given["packed_layout"].n_tokens), with_kwargs=True
                )

        tuned("pairs", max_epochs=1, callbacks=[Count()]).fit(pairs)
        return sum(read)

    paragraph = "le colis est en retard et la facture aussi"
    apart = tokens([("ou est le colis", paragraph), ("et la facture", paragraph[::-1])])
    assert tokens([("ou est le colis", paragraph), ("et la facture", paragraph)]) < 0.8 * apart


@pytest.mark.parametrize(
    ("kind", "X", "y", "message"),
    [
        ("pairs", ["a", "b"], None, 'fine_tune="pairs" needs X to hold pairs of texts, got single texts'),
        ("graded", ["a", "b"], [1, 2], 'fine_tune="graded" needs X to hold pairs of texts, got single texts'),
        ("labels", ["a", "b"], None, "requires y to be passed"),
        ("labels", ["a", "b"], [1, 1], "contains only one class: 1"),
        ("labels", ["a", "b"], [1, 2], "needs a class with two documents .* each of the 2 classes has one"),
        ("labels", ["a", "b"], [[1, 1], [0, 1]], "needs one label a document, but y is multilabel"),
        ("pairs", PAIRS, [[1, 2], [3, 4], [5, 6]], r"the group of each pair, one a row, got an array of shape"),
        ("pairs", PAIRS, ["a", None, "b"], "and 1 are missing, the first in row 1"),
        ("pairs", PAIRS, [0.0, 0.5, 1.0], "and 0.5 names none; for graded pairs"),
        ("pairs", PAIRS[:1], None, "needs at least 2 pairs"),
        ("graded", PAIRS, None, "needs y, a number for each pair; got None"),
        ("graded", PAIRS, [1, float("nan"), float("inf")], r"2 grade\(s\) that are NaN or infinite, in row\(s\) 1, 2"),
        ("graded", PAIRS, ["x", "y", "z"], "needs a number for each pair in y, but y holds others"),
        ("graded", PAIRS, [2, 2, 2], r"y has one grade only \(2\)"),
        ("graded", PAIRS, [[1, 2], [3, 4], [5, 6]], r"one grade a pair, got an array of shape \(3, 2\)"),
        ("graded", PAIRS, [1, 2], "inconsistent numbers of samples"),
    ],
)  # fmt: skip
def test_unusable_targets(kind: str, X: Any, y: Any, message: str) -> None:
    embedder = TransformerEmbedder(tiny_checkpoint("bert"), fine_tune=kind)
    with pytest.raises(ValueError, match=message):
        embedder.fit(X, y)
    assert not hasattr(embedder, "model_")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"freeze": "all"}, 'freeze="all" leaves fine_tune nothing to train'),
        ({"scoring": "f1_macro"}, "scoring='f1_macro' scores predictions, and an embedder has none"),
        ({"batch_size": 1}, "batch_size=1 leaves a row nothing to be compared with"),
        ({"mixing": 0}, "mixing must be .*0.* got 0"),
        ({"mixing": 1.5}, "mixing must be .* got 1.5"),
        ({"early_stopping": True}, "needs two classes of four documents to hold two of each out"),
    ],
)
def test_unusable_parameters(parameters: dict[str, Any], message: str) -> None:
    embedder = TransformerEmbedder(tiny_checkpoint("bert"), fine_tune="labels", **parameters)
    with pytest.raises(ValueError, match=message):
        embedder.fit(["a", "b", "c", "d"], [0, 0, 1, 1])


def test_a_loss_that_is_no_number_stops(mails: list[str], labels: list[str]) -> None:
    embedder = TransformerEmbedder(
        tiny_checkpoint("bert"), fine_tune="labels", **{**SHORT, "learning_rate": 1e30}, max_grad_norm=None
    )
    with pytest.raises(NonFiniteLossError, match="learning_rate"):
        embedder.fit(mails, labels)
    assert not hasattr(embedder, "model_")
