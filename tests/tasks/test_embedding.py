"""TransformerEmbedder: vectors against those of the bare model, parameters, and its place in scikit-learn."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from transformers import AutoModel, AutoTokenizer

from sktransformer._engine.errors import TruncationWarning, WrongTaskError
from sktransformer.tasks.embedding import TransformerEmbedder
from sktransformer.testing.checkpoints import tiny_checkpoint

TEXTS = ["où est ma facture ?", "le colis", "", "la livraison était prévue lundi, et rien n'est venu"]


def by_hand(name: str, texts: Any, pooling: str) -> np.ndarray:
    """Vectors of the stock model, one text at a time."""
    folder = tiny_checkpoint(name)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    rows = []
    for text in texts:
        given = (text,) if isinstance(text, str) else text
        with torch.no_grad():
            hidden = model(**tokenizer(*([part] for part in given), return_tensors="pt")).last_hidden_state[0]
        rows.append((hidden.mean(dim=0) if pooling == "mean" else hidden[0]).numpy())
    return np.array(rows)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("name", ["bert", "camembert", "electra", "distilbert", "modernbert"])
def test_vectors_are_those_of_the_model(name: str, pooling: str) -> None:
    expected = by_hand(name, TEXTS, pooling)
    raw = TransformerEmbedder(tiny_checkpoint(name), pooling=pooling, normalize=False, precision="float32")
    got = raw.fit_transform(TEXTS)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected, atol=1e-5)
    unit = clone(raw).set_params(normalize=True).fit_transform(TEXTS)
    np.testing.assert_allclose(unit, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-5)


def test_pairs_are_read_as_the_tokenizer_reads_pairs() -> None:
    pairs = list(zip(TEXTS, TEXTS[::-1], strict=True))
    embedder = TransformerEmbedder(tiny_checkpoint("bert"), normalize=False, precision="float32")
    expected = by_hand("bert", pairs, "mean")
    np.testing.assert_allclose(embedder.fit_transform(pairs), expected, atol=1e-5)
    frame = pd.DataFrame(pairs, columns=["subject", "body"])
    np.testing.assert_allclose(embedder.fit_transform(frame), expected, atol=1e-5)
    assert embedder.feature_names_in_.tolist() == ["subject", "body"]
    with pytest.raises(ValueError, match="The feature names should match"):
        embedder.transform(frame[["body", "subject"]])


def test_a_prompt_goes_before_each_text_that_lacks_it() -> None:
    plain = TransformerEmbedder(tiny_checkpoint("camembert")).fit(TEXTS)
    prompted = TransformerEmbedder(tiny_checkpoint("camembert"), prompt="query: ").fit(TEXTS)
    texts = ["le colis", "query: le colis"]
    expected = plain.transform(["query: le colis"])
    np.testing.assert_allclose(prompted.transform(texts), np.repeat(expected, 2, axis=0), atol=1e-6)
    assert np.abs(plain.transform(texts[:1]) - expected).max() > 1e-3


def test_parameters_of_transform_are_looked_up_when_it_is_called() -> None:
    embedder = TransformerEmbedder(tiny_checkpoint("camembert")).fit(TEXTS)
    first = embedder.transform(TEXTS)
    assert np.abs(embedder.set_params(pooling="cls").transform(TEXTS) - first).max() > 1e-3
    np.testing.assert_array_equal(embedder.set_params(pooling="mean").transform(TEXTS), first)


def test_a_zero_vector_is_not_divided_by_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = TransformerEmbedder(tiny_checkpoint("camembert")).fit(TEXTS)
    monkeypatch.setattr(
        TransformerEmbedder, "_forward", lambda *args, **options: np.zeros((2, 32), dtype=np.float32)
    )
    assert (embedder.transform(["a", "b"]) == 0).all()


def test_shapes_and_names() -> None:
    embedder = TransformerEmbedder(tiny_checkpoint("camembert")).fit(TEXTS)
    names = embedder.get_feature_names_out()
    assert names.tolist() == [f"transformerembedder{i}" for i in range(32)]
    assert embedder.transform([]).shape == (0, 32)
    assert embedder.transform([]).dtype == np.float32
    frame = embedder.set_output(transform="pandas").transform(pd.Series(TEXTS, index=[3, 3, 1, 0]))
    assert frame.columns.tolist() == names.tolist()
    assert frame.index.tolist() == [3, 3, 1, 0]


def test_unfitted() -> None:
    with pytest.raises(NotFittedError, match="This TransformerEmbedder instance is not fitted yet"):
        TransformerEmbedder(tiny_checkpoint("camembert")).transform(TEXTS)


def test_vectors_feed_a_linear_model(mails: list[str], labels: list[str]) -> None:
    pipeline = make_pipeline(TransformerEmbedder(tiny_checkpoint("camembert")), LogisticRegression(C=1e4))
    assert pipeline.fit(mails, labels).score(mails, labels) == 1.0
    again = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(again.predict_proba(mails), pipeline.predict_proba(mails))


def test_a_frozen_encoder_learns_nothing(mails: list[str]) -> None:
    expected = AutoModel.from_pretrained(tiny_checkpoint("camembert")).state_dict()
    state = TransformerEmbedder(tiny_checkpoint("camembert")).fit(mails).model_.state_dict()
    for name, tensor in expected.items():
        if "pooler" not in name:
            assert torch.equal(state[name], tensor), name


@pytest.mark.parametrize("truncation", ["head", "tail", "head_tail"])
def test_long_texts_are_cut_with_one_warning(truncation: str) -> None:
    embedder = TransformerEmbedder(
        tiny_checkpoint("bert"), max_length=12, truncation=truncation, head_length=3, precision="float32"
    ).fit(TEXTS)
    tokenizer = AutoTokenizer.from_pretrained(tiny_checkpoint("bert"))
    pieces = tokenizer.tokenize(TEXTS[3])
    kept = {"head": pieces[:10], "tail": pieces[-10:], "head_tail": [*pieces[:3], *pieces[-7:]]}[truncation]
    ids = [tokenizer.cls_token_id, *tokenizer.convert_tokens_to_ids(kept), tokenizer.sep_token_id]
    with torch.no_grad():
        model = AutoModel.from_pretrained(tiny_checkpoint("bert")).eval()
        vector = model(torch.tensor([ids])).last_hidden_state[0].mean(dim=0).numpy()
    with pytest.warns(TruncationWarning) as record:
        rows = embedder.transform([TEXTS[3], "colis", TEXTS[3]])
    assert len(record) == 1
    assert str(record[0].message) == (
        f"2 of 3 documents are longer than 12 tokens and were cut (truncation={truncation!r}); "
        f'truncation="chunk" reads them whole.'
    )
    assert record[0].filename == __file__
    np.testing.assert_allclose(rows[0], vector / np.linalg.norm(vector), atol=1e-5)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"pooling": "maen"}, ValueError, r"pooling='maen' is not known; .* Did you mean 'mean'"),
        ({"normalize": 1}, TypeError, "normalize must be True or False, got int"),
        ({"prompt": 3}, TypeError, "prompt must be None or str, got int"),
        ({"max_length": 2}, ValueError, "max_length=2 leaves no room beside 2 special tokens"),
        ({"truncation": "haed"}, ValueError, "Did you mean 'head'"),
        ({"missing": "drop"}, ValueError, "missing='drop' is not known"),
        ({"token_budget": 0}, ValueError, "token_budget must be at least 1, got 0"),
        ({"precision": "float16"}, ValueError, "precision='float16' is not known"),
        ({"device": "gpu"}, ValueError, "device='gpu' is not a device"),
    ],
)  # fmt: skip
def test_bad_parameters(parameters: dict[str, Any], error: type, message: str) -> None:
    embedder = TransformerEmbedder(tiny_checkpoint("camembert"), **parameters)
    with pytest.raises(error, match=message):
        embedder.fit(["le colis"]).transform(["le colis"])


@pytest.mark.parametrize("name", ["marian", "bart", "t5"])
def test_a_translator_is_no_encoder(name: str) -> None:
    with pytest.raises(
        WrongTaskError, match=f"is a '{name}' model, an encoder and a decoder made to write texts"
    ):
        TransformerEmbedder(tiny_checkpoint(name)).fit(TEXTS)
