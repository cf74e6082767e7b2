"""truncation="chunk": every token is read, and a document stays one row."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch

from sktransformer import TransformerClassifier, TransformerEmbedder
from sktransformer.exceptions import TruncationWarning
from sktransformer.testing import tiny_checkpoint

# two epochs of a tiny model end where they end: that it learned is no matter here
pytestmark = pytest.mark.filterwarnings("ignore:training collapsed:sklearn.exceptions.ConvergenceWarning")

SHORT = ["la facture est fausse", "le colis est perdu"] * 4
LONG = " ".join(["la facture est fausse et le colis est perdu"] * 12)
LABELS = ["facture", "colis"] * 4


def classifier(**parameters: Any) -> TransformerClassifier:
    settings = {"max_length": 24, "truncation": "chunk", "stride": 4, "max_epochs": 2, "random_state": 0}
    # float32 also where the chip has bfloat16: outputs are compared with those of the bare model
    return TransformerClassifier(
        tiny_checkpoint("camembert"), precision="float32", **{**settings, **parameters}
    )


@pytest.fixture(scope="module")
def fitted() -> TransformerClassifier:
    return classifier(learning_rate=1e-3).fit([*SHORT, LONG], [*LABELS, "facture"])


def windows(fitted: Any, text: str) -> tuple[list[Any], np.ndarray]:
    """The model's outputs of each window by hand, and the windows' tokens."""
    ids = fitted.tokenizer_.convert_tokens_to_ids(fitted.tokenizer_.tokenize(text))
    room, step = 24 - 2, 22 - 4
    parts = [ids[a : a + room] for a in range(0, max(1, len(ids) - 4), step)]
    first, last = fitted.tokenizer_.bos_token_id, fitted.tokenizer_.eos_token_id
    with torch.inference_mode():
        outputs = [fitted.model_(input_ids=torch.tensor([[first, *part, last]])) for part in parts]
    return outputs, np.array([len(part) + 2 for part in parts])


def probabilities(fitted: TransformerClassifier, text: str) -> tuple[np.ndarray, np.ndarray]:
    outputs, lengths = windows(fitted, text)
    return np.concatenate([output.logits.softmax(-1).numpy() for output in outputs]), lengths


@pytest.mark.parametrize("aggregation", ["mean", "max", "length"])
def test_probabilities_are_those_of_the_windows_put_together(
    fitted: TransformerClassifier, aggregation: str
) -> None:
    shares, lengths = probabilities(fitted, LONG)
    assert len(shares) > 3
    expected = {
        "mean": shares.mean(axis=0),
        "max": shares.max(axis=0) / shares.max(axis=0).sum(),
        "length": np.average(shares, axis=0, weights=lengths),
    }[aggregation]
    fitted.set_params(aggregation=aggregation)
    try:
        found = fitted.predict_proba([SHORT[0], LONG, SHORT[1]])
        alone = fitted.predict_proba([LONG])
        decision = fitted.decision_function([LONG])
    finally:
        fitted.set_params(aggregation="mean")
    assert found.shape == (3, 2)
    np.testing.assert_allclose(found[1], expected, atol=1e-6)
    np.testing.assert_allclose(alone[0], expected, atol=1e-6)
    np.testing.assert_allclose(decision, np.log(expected[1] / expected[0]), atol=1e-5)


def test_short_documents_are_as_without_it(fitted: TransformerClassifier) -> None:
    whole = fitted.predict_proba(SHORT)
    fitted.set_params(truncation="head")
    try:
        np.testing.assert_allclose(fitted.predict_proba(SHORT), whole, atol=1e-7)
    finally:
        fitted.set_params(truncation="chunk")


def test_the_end_of_a_long_document_counts() -> None:
    """Only the last words tell the classes apart."""
    filler = " ".join(["le client écrit au service"] * 10)
    X = [f"{filler} {end}" for end in ("facture facture facture", "colis colis colis")] * 8
    y = ["facture", "colis"] * 8
    settings = {"learning_rate": 3e-3, "max_epochs": 12, "dropout": 0.0, "attention_dropout": 0.0}
    model = classifier(aggregation="max", **settings).fit(X, y)
    assert model.score(X, y) == 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruncationWarning)
        blind = classifier(truncation="head", **settings).fit(X, y)
        assert blind.score(X, y) == 0.5


def test_nothing_is_cut_so_nothing_warns(fitted: TransformerClassifier) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.predict([LONG])


def test_windows_share_the_weight_of_their_document() -> None:
    """A document of many windows pulls no harder than a short one: the mean loss of an epoch is one a document."""
    X, y = [SHORT[0], LONG], ["facture", "colis"]
    model = classifier(learning_rate=0.0, max_epochs=1, batch_size=2, dropout=0.0, attention_dropout=0.0)
    model.fit(X, y)
    rows = {"facture": [SHORT[0]], "colis": [LONG]}
    losses = []
    for label, texts in rows.items():
        shares, _ = probabilities(model, texts[0])
        column = model.classes_.tolist().index(label)
        losses.append(-np.log(shares[:, column]).mean())
    assert model.history_["train_loss"].iloc[0] == pytest.approx(np.mean(losses), abs=1e-5)


def test_a_stride_without_room_is_refused_before_training() -> None:
    with pytest.raises(ValueError, match="stride=22 must be below the 22 tokens"):
        classifier(stride=22).fit(SHORT, LABELS)
    with pytest.raises(ValueError, match="aggregation='median'"):
        classifier(aggregation="median").fit(SHORT, LABELS)


def test_vectors_are_means_weighted_by_tokens() -> None:
    embed = TransformerEmbedder(
        tiny_checkpoint("camembert"),
        max_length=24,
        truncation="chunk",
        stride=4,
        normalize=False,
        precision="float32",
    ).fit([LONG])
    outputs, lengths = windows(embed, LONG)
    vectors = [output.last_hidden_state[0].mean(0).numpy() for output in outputs]
    np.testing.assert_allclose(
        embed.transform([LONG])[0], np.average(vectors, axis=0, weights=lengths), atol=1e-5
    )
