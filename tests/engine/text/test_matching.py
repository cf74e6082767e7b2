"""Tokens of tokenizers that do not say where they stood, found again by their letters."""

import pytest

from sktransformer._engine.text.matching import match_pieces

CASES = [  # pieces, text, what each stands for
    (["le</w>", "ch", "at</w>"], "Le  chat", ["Le", "ch", "at"]),
    (['"</w>', "Lyon</w>", '"</w>'], "« Lyon »", ["«", "Lyon", "»"]),
    (["...</w>", "oui</w>"], "… oui", ["…", "oui"]),
    ([".", ".", ".</w>", "oui</w>"], "…oui", ["…", "", "", "oui"]),
    (["été</w>", "à</w>"], "e\u0301te\u0301 a\u0300", ["e\u0301te\u0301", "a\u0300"]),
    (["ete</w>"], "été", ["été"]),
    (["cœur</w>", "👍</w>"], "cœur👍", ["cœur", "👍"]),
    (["l", "'</w>", "été</w>"], "L’été", ["L", "’", "été"]),
    ([",</w>", "a</w>"], "a", ["", "a"]),
    (["a</w>", ".</w>"], "a \n", ["a", ""]),
    ([], " - ", []),
]


@pytest.mark.parametrize(("pieces", "text", "found"), CASES)
def test_pieces_are_found(pieces, text, found):
    offsets = match_pieces(pieces, text)
    assert [text[begin:end] for begin, end in offsets] == found
    assert (offsets[1:, 0] >= offsets[:-1, 1]).all()


@pytest.mark.parametrize(
    ("pieces", "text"),
    [(["<unk>"], "été"), (["le"], "le chat"), (["chat", "le"], "le chat"), (["Ġle"], "le")],
)
def test_other_pieces_do_not_fit(pieces, text):
    assert match_pieces(pieces, text) is None
