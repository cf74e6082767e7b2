"""The same numbers for every architecture, whatever the batch, the order and the neighbours; models from scratch."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import BertConfig, CamembertConfig, ElectraConfig, FlaubertConfig

from sktransformer.tasks.classification import TransformerClassifier
from sktransformer.tasks.embedding import TransformerEmbedder
from sktransformer.testing.checkpoints import tiny_checkpoint

Maker = Callable[..., TransformerClassifier]
pytestmark = pytest.mark.filterwarnings(
    # a random model of one epoch takes every mail for one class, and says so
    "ignore:training collapsed:sklearn.exceptions.ConvergenceWarning",
    # the long documents below are meant to be cut
    "ignore:.* documents are longer than:sktransformer._engine.errors.TruncationWarning",
)

PACKABLE = ["bert", "roberta", "camembert", "xlm-roberta", "electra"]
PADDED = ["distilbert", "flaubert", "flaubert-prenorm", "modernbert", "t5", "bart", "gpt2", "llama"]
ENCODERS = [*PACKABLE, "distilbert", "flaubert", "flaubert-prenorm", "modernbert", "gpt2"]
LENGTHS = [
    "",
    "colis",
    "où est mon colis ?",
    "facture " * 20,
    "le livreur n'est jamais passé, et personne ne répond au téléphone depuis lundi " * 3,
    "!",
]
PAIRS = list(zip(LENGTHS, reversed(LENGTHS), strict=True))


def cuts(fitted: Any, method: str, X: list[Any]) -> list[np.ndarray]:
    """Compute the rows of X alone, in other orders, in batches of one and of all, with and without duplicates."""
    call = getattr(fitted, method)
    rows = [call(X)]
    fitted.set_params(token_budget=16)
    rows.append(call(X))
    fitted.set_params(token_budget=10**6)
    rows.append(call(X))
    rows.append(call(X[::-1])[::-1])
    rows.append(np.concatenate([call([x]) for x in X]))
    rows.append(call([*X, *X])[len(X) :])
    fitted.set_params(token_budget="auto")
    return rows


@pytest.mark.parametrize("X", [LENGTHS, PAIRS], ids=["texts", "pairs"])
@pytest.mark.parametrize("name", [*PACKABLE, *PADDED])
def test_a_prediction_does_not_depend_on_its_company(
    quick: Maker, padded: Callable[[], None], name: str, X: list[Any]
) -> None:
    fitted = quick(name, learning_rate=1e-2, max_epochs=6).fit(X, ["facture", "livraison"] * 3)
    assert fitted.packable_ == (name in PACKABLE)
    rows = cuts(fitted, "predict_proba", X)
    padded()
    rows += cuts(fitted, "predict_proba", X)
    assert np.ptp(rows[0][:, 0]) > 1e-4  # the documents do differ
    for other in rows[1:]:
        np.testing.assert_allclose(other, rows[0], atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("name", ENCODERS)
def test_a_vector_does_not_depend_on_its_company(padded: Callable[[], None], name: str, pooling: str) -> None:
    fitted = TransformerEmbedder(tiny_checkpoint(name), pooling=pooling, precision="float32").fit(LENGTHS)
    rows = cuts(fitted, "transform", LENGTHS)
    padded()
    rows += cuts(fitted, "transform", LENGTHS)
    assert rows[0].shape == (6, 32)
    for other in rows[1:]:
        np.testing.assert_allclose(other, rows[0], atol=1e-5)


STRANGE = [
    "",
    " \t\r\n ",
    "\ud800 half a surrogate pair",
    "a\x00b",
    "zero\u200bwidth\u200d and \ufeff marks",
    "مرحبا بكم في خدمة العملاء",
    "🙂" * 50,
    "<s>barré</s> [SEP] [CLS] <mask> <pad> <unk> [PAD] <|endoftext|> </w>",
    "é" * 300,
    "x" * 5000,
    "e\u0301" * 40,
]


@pytest.mark.parametrize("name", [*PACKABLE, *PADDED])
def test_strange_texts(quick: Maker, mails: list[str], labels: list[str], name: str) -> None:
    fitted = quick(name).fit([*STRANGE, "colis"], labels[:12])
    together = fitted.predict_proba(STRANGE)
    assert np.isfinite(together).all()
    np.testing.assert_allclose(
        together, np.vstack([fitted.predict_proba([text]) for text in STRANGE]), atol=1e-5
    )


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_decoder_without_a_padding_token(
    tmp_path: Path, mails: list[str], labels: list[str], learning: dict[str, Any], name: str
) -> None:
    """The published GPT-2 has none, and Transformers' head refuses batches then."""
    folder = tiny_checkpoint(name, tmp_path / "source")
    for file, field in (("config.json", "pad_token_id"), ("tokenizer_config.json", "pad_token")):
        content = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps({**content, field: None}))
    fitted = TransformerClassifier(folder, **learning).fit(mails, labels)
    assert fitted.tokenizer_.pad_token_id is None
    assert fitted.score(mails, labels) == 1.0
    alone = np.vstack([fitted.predict_proba([text]) for text in mails])
    np.testing.assert_allclose(fitted.predict_proba(mails), alone, atol=1e-5)
    fitted.save_pretrained(tmp_path / "saved")
    again = TransformerClassifier.from_pretrained(tmp_path / "saved", precision="float32", device="cpu")
    np.testing.assert_allclose(again.predict_proba(mails), alone, atol=1e-5)


@pytest.mark.parametrize("name", ["flaubert", "flaubert-prenorm"])
def test_flaubert_learns_with_both_norms(
    classifier: Maker, mails: list[str], labels: list[str], name: str
) -> None:
    fitted = classifier(name).fit(mails, labels)
    assert fitted.model_.config.pre_norm == name.endswith("prenorm")
    assert fitted.score(mails, labels) == 1.0


SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}


@pytest.mark.parametrize(
    "config",
    [
        BertConfig(**SIZES),
        CamembertConfig(**SIZES),
        ElectraConfig(**SIZES, embedding_size=32),
    ],
    ids=lambda config: config.model_type,
)
def test_from_scratch(config: Any, mails: list[str], labels: list[str], learning: dict[str, Any]) -> None:
    before = config.to_dict()
    estimator = TransformerClassifier(config, max_length=48, **learning)
    fitted = estimator.fit(mails, labels)
    assert fitted.score(mails, labels) == 1.0
    assert config.to_dict() == before
    assert estimator.model is config
    assert fitted.model_.config.vocab_size == len(fitted.tokenizer_)
    assert fitted.tokenizer_.tokenize("facture")  # a tokenizer learned on these mails knows the word
    unknown = fitted.tokenizer_.unk_token_id
    assert unknown not in fitted.tokenizer_("ma facture").input_ids
    other = TransformerClassifier(config, max_length=48, **learning).fit(mails, labels)
    np.testing.assert_array_equal(other.predict_proba(mails), fitted.predict_proba(mails))


def test_flaubert_from_scratch(mails: list[str], labels: list[str], learning: dict[str, Any]) -> None:
    config = FlaubertConfig(emb_dim=32, n_layers=2, n_heads=2)
    fitted = TransformerClassifier(config, max_length=48, **learning).fit(mails, labels)
    assert fitted.score(mails, labels) == 1.0


def test_random_vectors_of_a_config_are_the_same_each_time(mails: list[str]) -> None:
    embedders = [TransformerEmbedder(BertConfig(**SIZES), max_length=48) for _ in range(2)]
    first, second = (embedder.fit_transform(mails) for embedder in embedders)
    np.testing.assert_array_equal(first, second)
