"""TransformerEmbedder: vectors against those of the bare model, parameters, and its place in scikit-learn."""

import pickle
from collections.abc import Callable
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
from sktransformer._engine.text.documents import Documents
from sktransformer._engine.text.encoding import TextEncoder
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
        pools = {"mean": hidden.mean(dim=0), "cls": hidden[0], "max": hidden.amax(dim=0), "last": hidden[-1]}
        rows.append(pools[pooling].numpy())
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


@pytest.mark.parametrize("pooling", ["last", "mean"])
def test_a_decoder_is_read_to_its_last_token(pooling: str) -> None:
    texts = [text for text in TEXTS if text]  # GPT-2 has no token for an empty one
    raw = TransformerEmbedder(tiny_checkpoint("gpt2"), pooling=pooling, normalize=False, precision="float32")
    np.testing.assert_allclose(raw.fit_transform(texts), by_hand("gpt2", texts, pooling), atol=1e-5)


def test_the_last_layers_are_averaged(padded: Callable[[], None]) -> None:
    folder = tiny_checkpoint("bert")
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        states = model(**tokenizer(TEXTS[0], return_tensors="pt"), output_hidden_states=True).hidden_states
    expected = ((states[-1] + states[-2]) / 2)[0].mean(dim=0).numpy()
    raw = TransformerEmbedder(
        folder, pooling="mean_last", last_layers=2, normalize=False, precision="float32"
    )
    packed = raw.fit(TEXTS).transform(TEXTS)
    np.testing.assert_allclose(packed[0], expected, atol=1e-5)
    padded()
    np.testing.assert_allclose(raw.transform(TEXTS), packed, atol=1e-5)


def test_columns_are_cut_before_the_norm() -> None:
    whole = TransformerEmbedder(tiny_checkpoint("bert"), normalize=False).fit_transform(TEXTS)
    cut = TransformerEmbedder(tiny_checkpoint("bert"), truncate_dim=5).fit(TEXTS)
    expected = whole[:, :5] / np.linalg.norm(whole[:, :5], axis=1, keepdims=True)
    np.testing.assert_allclose(cut.transform(TEXTS), expected, atol=1e-6)
    assert len(cut.get_feature_names_out()) == 5


def test_fewer_bytes() -> None:
    floats = TransformerEmbedder(tiny_checkpoint("bert"), truncate_dim=20).fit_transform(TEXTS)
    made = {
        dtype: TransformerEmbedder(tiny_checkpoint("bert"), truncate_dim=20, output_dtype=dtype).fit(TEXTS)
        for dtype in ("float16", "int8", "binary")
    }
    np.testing.assert_array_equal(made["float16"].transform(TEXTS), floats.astype(np.float16))
    np.testing.assert_array_equal(made["binary"].transform(TEXTS), np.packbits(floats > 0, axis=1))
    assert made["int8"].int8_scale_ == np.abs(floats).max()
    whole = made["int8"].transform(TEXTS)
    assert np.abs(whole).max() == 127
    np.testing.assert_allclose(
        whole * made["int8"].int8_scale_ / 127, floats, atol=made["int8"].int8_scale_ / 250
    )
    assert [len(one.get_feature_names_out()) for one in made.values()] == [20, 20, 3]
    assert [one.transform([]).shape for one in made.values()] == [(0, 20), (0, 20), (0, 3)]
    again = pickle.loads(pickle.dumps(made["int8"]))
    np.testing.assert_array_equal(again.transform(TEXTS), whole)


def test_a_text_that_comes_twice_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = TransformerEmbedder(tiny_checkpoint("bert")).fit(TEXTS)
    read: list[int] = []
    encode = TextEncoder.encode

    def counted(self: TextEncoder, documents: Documents, *args: Any, **options: Any) -> Any:
        read.append(len(documents))
        return encode(self, documents, *args, **options)

    monkeypatch.setattr(TextEncoder, "encode", counted)
    rows = embedder.transform(["le colis", "la facture"] * 3)
    assert read == [2]
    np.testing.assert_array_equal(rows, np.tile(rows[:2], (3, 1)))


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
        ({"normalize": "yes"}, TypeError, 'normalize must be True or False, got str .*or be "auto"'),
        ({"prompt": 3}, TypeError, "prompt must be None or str, got int"),
        ({"prompts": ["q: "]}, TypeError, 'prompts must be "auto", str, dict or None, got list'),
        ({"prompts": {"querry": "q: "}}, ValueError, "role='querry' is not known; .* Did you mean 'query'"),
        ({"prompts": {"query": 3}}, TypeError, r"prompts\['query'\] must be None or str, got int"),
        ({"role": "documents"}, ValueError, "role='documents' is not known; .* Did you mean 'document'"),
        ({"truncate_dim": 0}, ValueError, "truncate_dim must be at least 1, got 0"),
        ({"truncate_dim": 33}, ValueError, "truncate_dim=33 is more than the 32 columns of the model"),
        ({"pooling": "mean_last", "last_layers": 9}, ValueError, "last_layers=9 is more than the 2 layers"),
        ({"last_layers": 1.5}, TypeError, "last_layers must be an integer, got float"),
        ({"output_dtype": "int4"}, ValueError, "output_dtype='int4' is not known; .* Did you mean 'int8'"),
        ({"aggregation": "sum"}, ValueError, "aggregation='sum' is not known"),
        ({"memory": 3}, TypeError, 'memory must be None, "memory", a folder or a joblib.Memory, got int'),
        ({"temperature": 0}, ValueError, "temperature must be above 0, got 0"),
        ({"fine_tune": "label"}, ValueError, "fine_tune='label' is not known; .* Did you mean 'labels'"),
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


def test_int8_needs_a_fit_for_its_scale() -> None:
    embedder = TransformerEmbedder(tiny_checkpoint("bert")).fit(TEXTS)
    with pytest.raises(ValueError, match="needs a scale, which fit finds; fit again"):
        embedder.set_params(output_dtype="int8").transform(TEXTS)


@pytest.mark.parametrize("name", ["marian", "bart", "t5"])
def test_a_translator_is_no_encoder(name: str) -> None:
    with pytest.raises(
        WrongTaskError, match=f"is a '{name}' model, an encoder and a decoder made to write texts"
    ):
        TransformerEmbedder(tiny_checkpoint(name)).fit(TEXTS)
