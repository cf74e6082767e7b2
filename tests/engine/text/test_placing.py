"""Tokens of windows know where they stood in their text."""

from __future__ import annotations

import numpy as np
import pytest

from sktransformer._engine.checkpoints.loading import load_checkpoint
from sktransformer._engine.checkpoints.sources import resolve
from sktransformer._engine.text.documents import Documents
from sktransformer._engine.text.encoding import TextEncoder
from sktransformer._engine.text.windows import Cut, Truncation
from sktransformer.testing import tiny_checkpoint

TEXTS = ["où est la facture du colis ?", "le colis", "", "une lettre en retard " * 9]
OTHERS = ["", "la facture est en retard " * 5, "le contrat", "non"]


def encoder_of(name: str) -> TextEncoder:
    return TextEncoder(load_checkpoint(resolve(str(tiny_checkpoint(name))), "encoder").tokenizer)


@pytest.mark.parametrize("name", ["bert", "camembert", "roberta", "modernbert", "gpt2", "llama"])
@pytest.mark.parametrize("truncation", ["head", "tail", "head_tail", "chunk"])
@pytest.mark.parametrize("pairs", [False, True])
def test_each_token_is_that_of_its_place(name: str, truncation: Truncation, pairs: bool) -> None:
    encoder = encoder_of(name)
    documents = Documents(TEXTS, OTHERS if pairs else None)
    cut = Cut(14, truncation, head_length=4, stride=2)
    placed = encoder.encode_placed(documents, cut, warn=False)
    plain = encoder.encode(documents, cut, warn=False)
    assert placed.encoded.ids.tolist() == plain.ids.tolist()
    assert placed.encoded.starts.tolist() == plain.starts.tolist()
    columns = encoder.tokenize(documents)
    owner = np.repeat(placed.encoded.document, placed.encoded.lengths)
    inside = placed.text >= 0
    assert inside.any()
    assert (placed.index[~inside] == -1).all()
    for token in np.flatnonzero(inside):
        ids = columns[placed.text[token]][owner[token]]
        if len(ids):  # else the filler of a document without tokens
            assert placed.encoded.ids[token] == ids[placed.index[token]]
    if truncation == "chunk":  # nothing is left out
        for column, texts in enumerate(columns):
            for document, ids in enumerate(texts):
                if column == 0 and pairs:
                    continue  # a long first text is cut
                seen = placed.index[(owner == document) & (placed.text == column)]
                assert set(range(len(ids))) <= set(seen.tolist())


@pytest.mark.parametrize("name", ["bert", "camembert", "roberta", "modernbert", "gpt2", "llama"])
def test_offsets_point_at_the_characters(name: str) -> None:
    encoder = encoder_of(name)
    placed = encoder.encode_placed(Documents(TEXTS), Cut(64), warn=False)
    assert placed.offsets is not None
    (offsets,) = placed.offsets
    ids = encoder.tokenize(Documents(TEXTS))[0]
    for text, spans, tokens in zip(TEXTS, offsets, ids, strict=True):
        assert spans.shape == (len(tokens), 2)
        assert (np.diff(spans[:, 0]) >= 0).all()
        # the marker of a word's beginning may be a token of its own, and stands at the word's first character
        covered = {i for a, b in spans for i in range(a, b)}
        assert {i for i, letter in enumerate(text) if letter != " "} <= covered
        assert all(b - a <= 1 or text[a:b].strip() == text[a:b].replace(" ", "") for a, b in spans)


def test_a_slow_tokenizer_tells_no_offsets() -> None:
    placed = encoder_of("flaubert").encode_placed(Documents(TEXTS), Cut(64), warn=False)
    assert placed.offsets is None
    assert placed.index.max() > 10
