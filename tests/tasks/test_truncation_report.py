"""Fertility, cuts and losses, counted by hand with the tokenizers themselves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from transformers import AutoTokenizer, BertConfig

from sktransformer import TransformerEmbedder, truncation_report
from sktransformer.testing import tiny_checkpoint

TEXTS = ["la facture est fausse", "le colis", "où est le colis de la commande ? il est perdu", ""]


def counts(name: str) -> np.ndarray:
    tokenizer = AutoTokenizer.from_pretrained(tiny_checkpoint(name))
    return np.array([len(tokenizer.tokenize(text)) for text in TEXTS])


@pytest.mark.parametrize("name", ["camembert", "bert", "flaubert"])
def test_every_column_by_hand(name: str) -> None:
    tokens = counts(name)
    row = truncation_report(TEXTS, tiny_checkpoint(name), max_length=8).iloc[0]
    assert row["max_length"] == 8
    assert row["tokens_per_word"] == pytest.approx(tokens.sum() / (4 + 2 + 10 + 0))
    assert row["median_tokens"] == np.median(tokens + 2)
    assert row["longest_tokens"] == tokens.max() + 2
    assert row["documents_cut"] == pytest.approx((tokens > 6).mean())
    assert row["tokens_lost"] == pytest.approx(np.maximum(tokens - 6, 0).sum() / tokens.sum())


def test_one_row_a_model_in_the_order_given() -> None:
    models = {"roberta": tiny_checkpoint("roberta"), "bert": tiny_checkpoint("bert")}
    report = truncation_report(pd.Series(TEXTS), models)
    assert report.index.tolist() == ["roberta", "bert"]
    assert (report["documents_cut"] == 0).all()
    assert (report["windows"] == 1).all()
    folders = truncation_report(TEXTS, list(models.values()))
    assert folders.index.tolist() == [str(folder) for folder in models.values()]
    np.testing.assert_array_equal(folders.to_numpy(), report.to_numpy())


def test_a_fitted_estimator_and_its_limit() -> None:
    embed = TransformerEmbedder(tiny_checkpoint("bert")).fit(TEXTS)
    row = truncation_report(TEXTS, {"fitted": embed}, max_length=100_000).loc["fitted"]
    assert row["max_length"] == embed.model_.config.max_position_embeddings


def test_windows_are_those_of_chunk() -> None:
    texts = [" ".join(["colis"] * n) for n in (400, 30, 61, 62, 63)]
    embed = TransformerEmbedder(tiny_checkpoint("bert"), truncation="chunk", stride=9).fit(texts)
    report = truncation_report(texts, {"fitted": embed}, stride=9)
    assert report["windows"].item() == embed._encode_again(texts).n_windows / len(texts)


def test_pairs_count_both_texts() -> None:
    tokens = counts("bert")
    row = truncation_report(list(zip(TEXTS, TEXTS, strict=True)), tiny_checkpoint("bert")).iloc[0]
    assert row["longest_tokens"] == 2 * tokens.max() + 3


@pytest.mark.parametrize(
    ("texts", "models", "error", "words"),
    [
        ([], "x", ValueError, "texts is empty"),
        (["a"], [], ValueError, "models is empty"),
        (["a", None], "x", ValueError, r"texts\[1\]|row"),
        ("a", "x", TypeError, "texts"),
        (["a"], ["no/such/folder/here"], ValueError, "no/such/folder/here"),
        (["a"], [BertConfig()], TypeError, "pass the fitted estimator"),
    ],
)
def test_bad_input(texts: object, models: object, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        truncation_report(texts, models)


def test_a_model_named_twice_is_refused() -> None:
    folder = tiny_checkpoint("bert")
    with pytest.raises(ValueError, match="twice; pass a dict"):
        truncation_report(TEXTS, [folder, folder])
