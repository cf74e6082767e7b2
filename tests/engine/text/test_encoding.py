"""Token windows: the tokenizer's own ids and segments, cut where they should be, from any number of threads."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, models
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from sktransformer._engine.errors import TruncationWarning
from sktransformer._engine.text.documents import Documents
from sktransformer._engine.text.encoding import TextEncoder
from sktransformer._engine.text.windows import Cut, Encoded, Truncation
from sktransformer.testing.checkpoints import SENTENCES, TINY_NAMES, tiny_checkpoint

FAST = [name for name in TINY_NAMES if not name.startswith(("flaubert", "marian"))]
TEXTS = [
    *SENTENCES,
    "a",
    "  deux  blancs et une\ttabulation \n",
    "Ça coûte 12€ \U0001f600 !",
    "le <mask> et [SEP] le </s> du texte",
    "un mot\u200binvisible, e\u0301",
]
LONG = Cut(max_length=4096)


def windows(encoded: Encoded) -> list[list[int]]:
    """Return the ids of each window."""
    return [encoded.ids[a:b].tolist() for a, b in pairwise(encoded.starts)]


def segments(encoded: Encoded) -> list[list[int]]:
    """Return the segment ids of each window; zeros where there are none."""
    types = np.zeros(len(encoded.ids), dtype=int) if encoded.types is None else encoded.types
    return [types[a:b].tolist() for a, b in pairwise(encoded.starts)]


@pytest.fixture(scope="module")
def numbers() -> TextEncoder:
    """Return an encoder whose texts are numbers, each its own id; ids 1, 2 and 3 stand before, between and after."""
    from tokenizers import pre_tokenizers, processors

    vocabulary = {"[0]": 0, "[1]": 1, "[2]": 2, "[3]": 3, "a": 4, **{str(i): i for i in range(5, 200)}}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="[0]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.post_processor = processors.TemplateProcessing(
        single="[1] $A [3]",
        pair="[1] $A:0 [2]:0 $B:1 [3]:1",
        special_tokens=[("[1]", 1), ("[2]", 2), ("[3]", 3)],
    )
    return TextEncoder(PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[0]"))


def counting(start: int, stop: int) -> str:
    """Return the text whose ids are start to stop - 1."""
    return " ".join(map(str, range(start, stop)))


def ids(*spans: range | list[int]) -> list[int]:
    """Join ranges of ids."""
    return [i for span in spans for i in span]


# -- equal to the tokenizer --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TINY_NAMES)
def test_single_texts_get_the_tokenizers_own_ids(name: str, tokenizer: Callable[[str], Any]) -> None:
    encoded = TextEncoder(tokenizer(name)).encode(Documents(TEXTS), LONG)
    expected = [tokenizer(name)(text)["input_ids"] for text in TEXTS]
    assert windows(encoded) == expected
    assert encoded.ids.dtype == np.int32
    assert encoded.lengths.tolist() == [len(row) for row in expected]
    assert encoded.document.tolist() == list(range(len(TEXTS)))
    assert (encoded.n_documents, encoded.n_cut, encoded.types) == (len(TEXTS), 0, None)


@pytest.mark.parametrize("name", TINY_NAMES)
def test_pairs_get_the_tokenizers_own_ids_and_segments(name: str, tokenizer: Callable[[str], Any]) -> None:
    others = TEXTS[::-1]
    encoded = TextEncoder(tokenizer(name)).encode(Documents(TEXTS, others), LONG)
    expected = [tokenizer(name)(a, b) for a, b in zip(TEXTS, others, strict=True)]
    assert windows(encoded) == [row["input_ids"] for row in expected]
    given = [row.get("token_type_ids") or [0] * len(row["input_ids"]) for row in expected]
    assert segments(encoded) == given
    assert (encoded.types is None) == (not any(map(any, given)))


@pytest.mark.parametrize("name", TINY_NAMES)
def test_empty_texts(name: str, tokenizer: Callable[[str], Any]) -> None:
    encoder = TextEncoder(tokenizer(name))
    single = tokenizer(name)("")["input_ids"] or [tokenizer(name).eos_token_id]
    assert windows(encoder.encode(Documents(["", "a"]), LONG))[0] == single
    first, second = ["", "a", ""], ["", "", "a"]
    # as lists: a lone empty second text is taken for none
    pairs = tokenizer(name)(first, second)["input_ids"]
    pairs[0] = pairs[0] or [tokenizer(name).eos_token_id]
    assert windows(encoder.encode(Documents(first, second), LONG)) == pairs


def test_a_tokenizer_without_special_tokens_reads_an_empty_text_as_its_end_token(
    tokenizer: Callable[[str], Any],
) -> None:
    encoder = TextEncoder(tokenizer("gpt2"))
    assert encoder.single.n_special == encoder.pair.n_special == 0
    end = tokenizer("gpt2").eos_token_id
    encoded = encoder.encode(Documents(["", "le chat", ""]), LONG)
    assert windows(encoded)[0] == windows(encoded)[2] == [end]
    assert encoded.n_cut == 0
    assert windows(encoder.encode(Documents(["", ""], ["", "a"]), LONG))[0] == [end]


def test_no_documents() -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_checkpoint("bert"))
    for documents in (Documents([]), Documents([], [])):
        encoded = TextEncoder(tokenizer).encode(documents, LONG)
        assert (encoded.n_documents, encoded.ids.tolist(), encoded.starts.tolist()) == (0, [], [0])
        assert encoded.lengths.tolist() == []


def test_a_tokenizer_with_segments_at_other_places() -> None:
    from tokenizers import pre_tokenizers, processors

    backend = Tokenizer(models.WordLevel({"[U]": 0, "a": 1, "b": 2, "[CLS]": 3}, unk_token="[U]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.post_processor = processors.TemplateProcessing(  # as XLNet: [CLS] last, in a segment of its own
        single="$A:0 [CLS]:2", pair="$A:0 $B:1 [CLS]:2", special_tokens=[("[CLS]", 3)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        unk_token="[U]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )
    encoder = TextEncoder(tokenizer)
    assert segments(encoder.encode(Documents(["a b", "a"]), LONG)) == [[0, 0, 2], [0, 2]]
    encoded = encoder.encode(Documents(["a b", ""], ["b", "a"]), LONG)
    assert windows(encoded) == [[1, 2, 2, 3], [1, 3]]
    assert segments(encoded) == [[0, 0, 1, 2], [1, 2]]


def test_a_vocabulary_that_lacks_the_letter_a() -> None:
    backend = Tokenizer(models.BPE(vocab={"的": 0, "[CLS]": 1}, merges=[]))
    from tokenizers import processors

    backend.post_processor = processors.TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 1)])
    encoder = TextEncoder(PreTrainedTokenizerFast(tokenizer_object=backend))
    assert windows(encoder.encode(Documents(["的的", "a"]), LONG)) == [[1, 0, 0], [1]]


def test_a_tokenizer_that_knows_nothing_raises() -> None:
    backend = Tokenizer(models.BPE(vocab={"ж": 0}, merges=[]))
    with pytest.raises(ValueError, match="finds no token in any of"):
        TextEncoder(PreTrainedTokenizerFast(tokenizer_object=backend))


# -- cuts --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("truncation", "head_length", "expected"),
    [
        ("head", 128, ids([1], range(10, 18), [3])),
        ("tail", 128, ids([1], range(22, 30), [3])),
        ("head_tail", 3, ids([1], range(10, 13), range(25, 30), [3])),
        ("head_tail", 128, ids([1], range(10, 14), range(26, 30), [3])),  # at most a half is head
    ],
)
def test_a_cut_text_keeps_exactly_these_tokens(
    numbers: TextEncoder, truncation: Truncation, head_length: int, expected: list[int]
) -> None:
    cut = Cut(max_length=10, truncation=truncation, head_length=head_length)
    encoded = numbers.encode(Documents([counting(10, 30), counting(10, 18)]), cut, warn=False)
    assert windows(encoded) == [expected, ids([1], range(10, 18), [3])]  # the second just fits
    assert encoded.n_cut == 1


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("max_length", [5, 8, 64])
def test_head_cuts_as_the_tokenizer_does(name: str, max_length: int, tokenizer: Callable[[str], Any]) -> None:
    texts = [text * 5 for text in TEXTS]
    encoded = TextEncoder(tokenizer(name)).encode(Documents(texts), Cut(max_length, "head"), warn=False)
    own = copy.deepcopy(tokenizer(name))
    assert windows(encoded) == [
        own(text, truncation=True, max_length=max_length)["input_ids"] for text in texts
    ]


def test_head_tail_of_a_single_token_of_room(numbers: TextEncoder) -> None:
    encoded = numbers.encode(Documents([counting(10, 30)]), Cut(3, "head_tail"), warn=False)
    assert windows(encoded) == [[1, 29, 3]]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (range(10, 30), range(50, 70), (4, 4)),  # both are long: half each
        (range(10, 12), range(50, 70), (2, 6)),  # a short one keeps what it needs
        (range(10, 30), range(50, 53), (5, 3)),
        (range(10, 10), range(50, 70), (0, 8)),
        (range(10, 30), range(50, 50), (8, 0)),
        (range(10, 14), range(50, 54), (4, 4)),  # fits
        (range(10, 15), range(50, 54), (4, 4)),
    ],
)
def test_pairs_share_the_room(
    numbers: TextEncoder, first: range, second: range, expected: tuple[int, int]
) -> None:
    documents = Documents([counting(first.start, first.stop)], [counting(second.start, second.stop)])
    encoded = numbers.encode(documents, Cut(11, "head"), warn=False)
    a, b = expected
    assert windows(encoded) == [[1, *first[:a], 2, *second[:b], 3]]
    assert encoded.n_cut == int(len(first) + len(second) > 8)
    assert len(encoded.ids) <= 11


def test_an_odd_token_of_room_goes_to_the_first_text(numbers: TextEncoder) -> None:
    documents = Documents([counting(10, 30)], [counting(50, 70)])
    assert windows(numbers.encode(documents, Cut(12, "head"), warn=False)) == [
        [1, *range(10, 15), 2, *range(50, 54), 3]
    ]
    assert windows(numbers.encode(documents, Cut(4, "tail"), warn=False)) == [[1, 29, 2, 3]]


def test_each_text_of_a_pair_is_cut_as_asked(numbers: TextEncoder) -> None:
    documents = Documents([counting(10, 30)], [counting(50, 70)])
    tail = numbers.encode(documents, Cut(11, "tail"), warn=False)
    assert windows(tail) == [[1, *range(26, 30), 2, *range(66, 70), 3]]
    both = numbers.encode(documents, Cut(11, "head_tail", head_length=1), warn=False)
    assert windows(both) == [[1, 10, 27, 28, 29, 2, 50, 67, 68, 69, 3]]


def test_segments_follow_the_cut(tokenizer: Callable[[str], Any]) -> None:
    encoder = TextEncoder(tokenizer("bert"))
    encoded = encoder.encode(Documents(["chat " * 30, "a"], ["chien " * 30, ""]), Cut(13), warn=False)
    assert segments(encoded) == [[0] * 7 + [1] * 6, [0, 0, 0, 1]]


def test_max_length_must_leave_room(numbers: TextEncoder, tokenizer: Callable[[str], Any]) -> None:
    with pytest.raises(
        ValueError, match="max_length=2 leaves no room beside 2 special tokens; raise max_length"
    ):
        numbers.encode(Documents(["a"]), Cut(2))
    with pytest.raises(ValueError, match="max_length=3 leaves no room beside 3 special tokens"):
        numbers.encode(Documents(["a"], ["a"]), Cut(3))
    with pytest.raises(ValueError, match="max_length=4 leaves no room beside 4 special tokens"):
        TextEncoder(tokenizer("camembert")).encode(Documents(["a"], ["a"]), Cut(4))
    assert windows(TextEncoder(tokenizer("gpt2")).encode(Documents(["bb"]), Cut(1, "head"), warn=False)) != [
        []
    ]


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        (
            {"truncation": "haed"},
            ValueError,
            r"truncation='haed' is not known; choose one of .*Did you mean 'head'\?",
        ),
        ({"truncation": None}, ValueError, "truncation=None is not known"),
        ({"max_length": 0}, ValueError, "max_length must be at least 1, got 0"),
        ({"max_length": True}, TypeError, "max_length must be an integer, got bool"),
        ({"max_length": 8.0}, TypeError, "max_length must be an integer, got float"),
        ({"head_length": -1}, ValueError, "head_length must be at least 1, got -1"),
        ({"head_length": "8"}, TypeError, "head_length must be an integer, got str"),
    ],
)
def test_cut_checks_its_values(parameters: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Cut(**parameters)


def test_cut_takes_numpy_integers(numbers: TextEncoder) -> None:
    cut = Cut(np.int64(5), "head", np.int32(1))  # type: ignore[arg-type]
    assert windows(numbers.encode(Documents([counting(10, 30)]), cut, warn=False)) == [[1, 10, 11, 12, 3]]


# -- warnings ----------------------------------------------------------------------------------------------------------


def test_one_warning_a_call_counts_the_cut_documents(numbers: TextEncoder) -> None:
    documents = Documents([counting(10, 30), "10", counting(10, 16), counting(10, 17)])
    with pytest.warns(TruncationWarning) as caught:
        encoded = numbers.encode(documents, Cut(8))
    assert encoded.n_cut == 2
    assert [str(w.message) for w in caught] == [
        "2 of 4 documents are longer than 8 tokens and were cut (truncation='head_tail'); "
        'truncation="chunk" reads them whole.'
    ]
    assert caught[0].filename == __file__  # the line of the call


def test_a_pair_is_counted_once_and_only_when_it_does_not_fit(numbers: TextEncoder) -> None:
    documents = Documents([counting(10, 30), counting(10, 14)], [counting(50, 70), counting(50, 54)])
    with pytest.warns(TruncationWarning, match="^1 of 2 documents"):
        numbers.encode(documents, Cut(11))


def test_no_warning_when_nothing_is_cut_or_none_is_wanted(numbers: TextEncoder) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        numbers.encode(Documents([counting(10, 16)]), Cut(8))
        numbers.encode(Documents([counting(10, 30)]), Cut(8), warn=False)


# -- the tokenizer is only read ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAST)
def test_encoding_writes_nothing_on_the_tokenizer(name: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_checkpoint(name))
    before, attributes = tokenizer.backend_tokenizer.to_str(), dict(tokenizer.init_kwargs)
    encoder = TextEncoder(tokenizer)
    encoder.encode(Documents(TEXTS, TEXTS), Cut(9), warn=False)
    assert tokenizer.backend_tokenizer.to_str() == before
    assert tokenizer.init_kwargs == attributes


def test_settings_that_a_user_leaves_on_the_tokenizer_change_nothing() -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_checkpoint("bert"))
    encoder = TextEncoder(tokenizer)
    before = windows(encoder.encode(Documents(TEXTS), LONG))
    tokenizer(TEXTS, truncation=True, max_length=4, padding="max_length")
    assert tokenizer.backend_tokenizer.truncation is not None
    assert windows(encoder.encode(Documents(TEXTS), LONG)) == before
    assert windows(TextEncoder(tokenizer).encode(Documents(TEXTS), LONG)) == before


def test_settings_stored_in_a_tokenizer_file_change_nothing() -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_checkpoint("bert"))
    before = windows(TextEncoder(tokenizer).encode(Documents(TEXTS), LONG))
    tokenizer.backend_tokenizer.enable_truncation(max_length=3)
    tokenizer.backend_tokenizer.enable_padding(length=20)
    assert windows(TextEncoder(tokenizer).encode(Documents(TEXTS), LONG)) == before


@pytest.mark.parametrize("name", ["camembert", "bert", "flaubert"])
def test_sixteen_threads_share_an_encoder(name: str, tokenizer: Callable[[str], Any]) -> None:
    encoder = TextEncoder(tokenizer(name))
    calls = [(TEXTS[i % 7 :], Cut(6 + i % 5, "tail")) for i in range(64)]
    expected = [windows(encoder.encode(Documents(texts), cut, warn=False)) for texts, cut in calls]
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda c: windows(encoder.encode(Documents(c[0]), c[1], warn=False)), calls))
    assert found == expected


def test_a_tokenizer_in_pure_python_is_entered_by_one_thread_at_a_time(
    tokenizer: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = TextEncoder(tokenizer("flaubert"))
    inside: list[int] = []
    most: list[int] = []

    def plain(text: str) -> list[int]:
        inside.append(1)
        time.sleep(0.002)
        most.append(len(inside))
        inside.pop()
        return [1]

    monkeypatch.setattr(encoder, "_plain", plain)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: encoder.encode(Documents(["a", "b"]), LONG), range(8)))
    assert set(most) == {1}


def test_threads_may_cut_with_the_tokenizer_at_the_same_time(tokenizer: Callable[[str], Any]) -> None:
    own = copy.deepcopy(tokenizer("roberta"))
    encoder = TextEncoder(own)
    expected = windows(encoder.encode(Documents(TEXTS * 20), LONG))

    def call(i: int) -> list[list[int]]:
        if i % 2:
            return windows(encoder.encode(Documents(TEXTS * 20), LONG))
        for _ in range(50):
            own("le chat noir", truncation=True, max_length=4)
        return expected

    with ThreadPoolExecutor(2) as pool:  # one user of the tokenizer itself, which is not made for more
        assert all(found == expected for found in pool.map(call, range(8)))


# -- long texts --------------------------------------------------------------------------------------------------------


def test_a_megabyte_is_one_window(tokenizer: Callable[[str], Any]) -> None:
    text = "le chat noir " * 80_000
    encoded = TextEncoder(tokenizer("camembert")).encode(Documents([text]), Cut(64), warn=False)
    assert encoded.lengths.tolist() == [64]
    assert encoded.n_cut == 1
