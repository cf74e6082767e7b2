"""Words know the token that speaks for them, in the window where it is farthest from a cut."""

from __future__ import annotations

import numpy as np
import pytest

from sktransformer._engine.checkpoints.loading import load_checkpoint
from sktransformer._engine.checkpoints.sources import resolve
from sktransformer._engine.text.documents import Documents
from sktransformer._engine.text.encoding import TextEncoder
from sktransformer._engine.text.windows import Cut
from sktransformer._engine.text.words import encode_words, first_tokens
from sktransformer.testing import tiny_checkpoint

SENTENCES = [
    ["le", "chat", "noir", "est", "assis"],
    ["l'été", "à", "Montréal", "5.975,74", "!"],
    [],
    ["\r\n", "chat", "", "\x00", "le", "\u200b", "zzz", " "],
    ["\t"],
]
NAMES = ("bert", "camembert", "roberta", "modernbert", "gpt2", "flaubert")


def encoder_of(name: str) -> TextEncoder:
    return TextEncoder(load_checkpoint(resolve(str(tiny_checkpoint(name))), "encoder").tokenizer)


def cut(longest: int = 64, stride: int = 4) -> Cut:
    return Cut(longest, "chunk", stride=stride)


@pytest.mark.parametrize("name", NAMES)
def test_every_word_has_a_token_of_its_own_in_its_sentence(name: str) -> None:
    placed = encode_words(encoder_of(name), SENTENCES, cut())
    n_words = sum(map(len, SENTENCES))
    assert placed.tokens.shape == placed.window.shape == (n_words,)
    assert len(set(placed.tokens.tolist())) == n_words
    assert (np.diff(placed.tokens) > 0).all()  # in order: no sentence has two windows here
    owners = np.repeat(np.arange(len(SENTENCES)), list(map(len, SENTENCES)))
    assert placed.encoded.document[placed.window].tolist() == owners.tolist()
    inside = (placed.tokens > placed.encoded.starts[placed.window]) | (name == "gpt2")
    assert inside.all()


@pytest.mark.parametrize("name", ["bert", "camembert", "roberta"])
def test_a_words_token_is_its_first_piece(name: str) -> None:
    """Encoded behind a blank, a word begins with the token that speaks for it."""
    encoder = encoder_of(name)
    words = ["le", "chat", "Montréal", "inconnu", "5.975,74"]
    placed = encode_words(encoder, [words], cut())
    found = placed.encoded.ids[placed.tokens]
    (alone,) = encoder.tokenize(Documents([f"le {word}" for word in words]))
    (before,) = encoder.tokenize(Documents(["le"]))
    pieces = [ids[len(before[0]) :] for ids in alone]
    visible = [
        next(i for i in ids.tolist() if encoder._tokenizer.convert_ids_to_tokens(i) not in ("▁", "Ġ"))
        for ids in pieces
    ]
    assert found[1:].tolist() == visible[1:]


def test_words_of_which_nothing_is_left_are_unknown() -> None:
    encoder = encoder_of("bert")
    placed = encode_words(encoder, [["chat", "\r\n", "\t", "le"], ["\x00"]], cut())
    found = placed.encoded.ids[placed.tokens].tolist()
    (known,) = encoder.tokenize(Documents(["chat le"]))
    unknown = encoder.unknown
    first = encoder.tokenize(Documents(["chat"]))[0][0][0]
    assert found == [first, unknown, unknown, encoder.tokenize(Documents(["le"]))[0][0][0], unknown]
    text = placed.encoded.ids[placed.encoded.starts[0] : placed.encoded.starts[1]].tolist()
    assert len(text) == len(known[0]) + 2 + encoder.single.n_special


@pytest.mark.parametrize("name", NAMES)
def test_each_word_of_a_long_sentence_is_read_far_from_cuts(name: str) -> None:
    words = ["le", "chat", "zzz"] * 40
    placed = encode_words(encoder_of(name), [words, ["chat"]], cut(24, 6))
    encoded = placed.encoded
    assert encoded.n_windows > 5
    assert len(placed.tokens) == 121
    lengths = encoded.lengths
    special = encoder_of(name).single
    left = len(special.prefix)
    right = len(special.suffix)
    for token, window in zip(placed.tokens, placed.window, strict=True):
        place = token - encoded.starts[window]
        assert left <= place < lengths[window] - right
        first = encoded.document[window] != (encoded.document[window - 1] if window else -1)
        last = window + 1 == encoded.n_windows or encoded.document[window + 1] != encoded.document[window]
        # half of the six tokens that neighbours share stand between a word and the nearest cut
        assert first or place - left >= 3
        assert last or lengths[window] - right - 1 - place >= 2
    assert (np.diff(placed.window) >= 0).all()  # what a window speaks for hangs together


def test_first_tokens_by_hand() -> None:
    """ "ab cd  e": two pieces, a piece that begins with the blank, an empty word, a token of a blank alone."""
    offsets = np.array([[0, 1], [1, 2], [2, 5], [5, 6], [6, 8], [8, 8]], dtype=np.int32)
    assert first_tokens(["ab", "cd", "", "e"], offsets).tolist() == [0, 2, -1, 4]
    assert first_tokens([], offsets).tolist() == []
    assert first_tokens(["ab"], np.zeros((0, 2), dtype=np.int32)).tolist() == [-1]
