"""What a question answerer refuses, and what it says."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sktransformer import TransformerQuestionAnswerer
from sktransformer._engine.errors import TruncationWarning
from sktransformer.exceptions import WrongTaskError
from sktransformer.testing import tiny_checkpoint

BERT = str(tiny_checkpoint("bert"))
X = [("Où ?", "Elle habite à Lyon."), ("Qui ?", "Marie dort.")]
Y = ["Lyon", "Marie"]


def make(**parameters: Any) -> TransformerQuestionAnswerer:
    return TransformerQuestionAnswerer(
        **{"model": BERT, "max_epochs": 1, "random_state": 0, "device": "cpu", **parameters}
    )


@pytest.fixture(scope="module")
def fitted() -> TransformerQuestionAnswerer:
    return make().fit(X, Y)


BAD_X = [
    ("une question", TypeError, r"got one str; put the pair into a list"),
    (b"une question", TypeError, "got one bytes"),
    (
        ["une question", "une autre"],
        ValueError,
        r"must hold pairs, got single texts; pass \[\(question, context\)",
    ),
    ([("a", "b"), ("a", None)], ValueError, r"X\[:, 1\] has 1 missing text\(s\).* in row\(s\) 1"),
    ([("a", "b"), None], ValueError, r"X\[:, 0\] has 1 missing text"),
    ([("a", "b"), ("a", 3)], TypeError, r"X\[:, 1\]\[1\] must be str, got int"),
    ([("a", "b"), ("a",)], ValueError, r"X\[1\] must be a pair of texts like X\[0\], got tuple of length 1"),
    ([("a", "b", "c"), ("a", "b", "c")], ValueError, "must hold pairs|expecting 2 features"),
    (pd.DataFrame([["a", "b", "c"]] * 2), ValueError, r"has the columns \['0', '1', '2'\]; name those"),
    (pd.DataFrame({"question": ["a", "b"]}), ValueError, r"has the columns \['question'\]"),
    (np.zeros((2, 2)), ValueError, "must hold pairs, got single texts"),
    (3, TypeError, "must be an iterable of texts, got int"),
]


@pytest.mark.parametrize(("bad", "kind", "message"), BAD_X)
def test_other_questions_are_refused(fitted, bad, kind, message) -> None:
    with pytest.raises(kind, match=message):
        make(model="/no/such/folder").fit(bad, Y)
    with pytest.raises(kind, match=message):
        fitted.predict(bad)


BAD_Y = [
    ("Lyon", TypeError, "y must be a list of answers, one a row of X, got one str"),
    (None, TypeError, "got one NoneType"),
    (["Lyon"], ValueError, r"inconsistent numbers of samples: \[2, 1\]"),
    (["Lyon", 3], TypeError, r"y\[1\] must be a text"),
    ([1, 0], TypeError, r"y\[0\] must be a text"),
    (["Lyon", "Paris"], ValueError, r"y\[1\]: 'Paris' is not in its context; .* X\[1\]"),
    ({"Lyon", "Marie"}, TypeError, "y must be a list of answers, one a row of X, got one set"),
    (["Lyon", {"text": 3}], TypeError, r'y\[1\]\["text"\] must be a list of texts, got int \(3\)'),
    (["Lyon", {"text": b"Marie"}], TypeError, r'y\[1\]\["text"\] must be a list of texts, got bytes'),
    ([("Lyon", -1), "Marie"], ValueError, r"y\[0\]: the start of an answer must be at least 0"),
]


@pytest.mark.parametrize(("bad", "kind", "message"), BAD_Y)
def test_other_answers_are_refused_before_anything_is_loaded(bad, kind, message) -> None:
    with pytest.raises(kind, match=message):
        make(model="/no/such/folder").fit(X, bad)


def test_a_wrong_place_is_mended_with_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"1 of 2 answers do not stand at their start"):
        moved = make().fit(X, [("Lyon", 3), ("Marie", 0)])
    assert moved.predict_spans(X) == make().fit(X, [("Lyon", 14), ("Marie", 0)]).predict_spans(X)


@pytest.mark.parametrize("nothing", [None, "", (None, 3), {"text": None}, {"text": [], "answer_start": []}])
def test_no_answer_may_be_spelt_in_many_ways(nothing: Any) -> None:
    model = make().fit(X, ["Lyon", nothing])
    assert model.no_answer_threshold_ == 0.0
    assert model.predict_spans(X) == make().fit(X, ["Lyon", None]).predict_spans(X)


def test_nothing_to_read(fitted) -> None:
    for empty in ([], np.empty((0, 2), dtype=object), pd.DataFrame({"question": [], "context": []})):
        assert fitted.predict(empty).shape == (0,)
        assert fitted.predict(empty).dtype == object
        assert fitted.predict_spans(empty) == fitted.predict_spans(empty, n_best=2) == []
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            make().fit(empty, [])


def test_empty_texts() -> None:
    pairs = [*X, ("", "Marie dort."), ("Qui ?", ""), ("", "")]
    model = make().fit(pairs, [*Y, "Marie", None, ""])
    assert model.predict(pairs)[3:].tolist() == ["", ""]
    assert np.isfinite([span["score"] for span in model.predict_spans(pairs)]).all()
    with pytest.raises(ValueError, match=r"y\[3\]: 'Marie' is not in its context"):
        make().fit(pairs, [*Y, "Marie", "Marie", None])


def test_missing_texts_may_be_empty() -> None:
    model = make(missing="empty").fit([*X, ("Qui ?", None), None], [*Y, None, None])
    pairs = [X[0], ("Qui ?", float("nan")), None]
    assert model.predict_spans(pairs) == model.predict_spans([X[0], ("Qui ?", ""), ("", "")])


@pytest.mark.parametrize("stride", [30, 32])
def test_a_stride_that_does_not_get_on(fitted, stride: int) -> None:
    model = make(max_length=32, stride=stride)
    message = (
        rf"stride={stride} must be below the 29 tokens that max_length=32 leaves beside 3 special tokens"
    )
    with pytest.raises(ValueError, match=message):
        model.fit([("où est le petit chat", "le chat est ici")], ["chat"])
    stored = make(max_length=32, stride=8).fit(X, Y)
    with pytest.raises(ValueError, match=message):
        stored.set_params(stride=stride).predict(X)


@pytest.mark.parametrize("n_words", [3, 300])
@pytest.mark.parametrize("stride", ["auto", 28])
def test_a_question_longer_than_the_model(n_words: int, stride: Any, capfd) -> None:
    pairs = [("mot " * 60, "le chat dort " * (n_words // 3)), X[0]]
    model = make(max_length=32, stride=stride, learning_rate=0.0)
    message = "1 of 2 questions do not fit into 32 tokens beside their contexts and were cut"
    with pytest.warns(TruncationWarning, match=message) as caught:
        model.fit(pairs, ["chat", "Lyon"])
    assert len(caught) == 1
    with pytest.warns(TruncationWarning, match=message) as caught:
        assert model.predict(pairs)[0] in pairs[0][1]
    assert len(caught) == 1
    assert capfd.readouterr() == ("", "")


def test_an_answer_that_no_window_holds() -> None:
    pairs = [("Où ?", "un deux trois quatre cinq six sept huit neuf dix " * 3), X[1]]
    with pytest.warns(
        UserWarning, match=r"1 of 2 answers are in no window of 32 tokens .* raise stride \(10\)"
    ):
        model = make(max_length=32).fit(pairs, [pairs[0][1].strip(), "Marie"])
    # the row is as good as left out
    with pytest.warns(UserWarning, match="in no window"):
        other = make(max_length=32, learning_rate=0.0).fit(pairs, [pairs[0][1].strip(), "Marie"])
    alone = make(max_length=32, learning_rate=0.0, batch_size=1).fit(pairs[1:], ["Marie"])
    assert other.history_["train_loss"][0] == pytest.approx(alone.history_["train_loss"][0] / 2, rel=0.5)
    assert model.predict(pairs)[1] in pairs[1][1]


BAD_PARAMETERS = [
    ("stride", "wide", TypeError),
    ("stride", -1, ValueError),
    ("max_length", 2, ValueError),
    ("max_answer_length", 0, ValueError),
    ("max_answer_length", 3.0, TypeError),
    ("no_answer_threshold", "high", TypeError),
    ("no_answer_threshold", float("nan"), ValueError),
    ("scoring", "accuracy", ValueError),
    ("scoring", "f2", ValueError),
    ("scoring", 3, TypeError),
]


@pytest.mark.parametrize(("name", "value", "kind"), BAD_PARAMETERS)
def test_parameters_are_checked(name: str, value: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=name):
        make(**{name: value}).fit(X, Y)


def test_a_tokenizer_that_can_not_be_matched(monkeypatch) -> None:
    from sktransformer._engine.text.encoding import TextEncoder

    monkeypatch.setattr(TextEncoder, "pieces", lambda self, text: ["<unk>"])
    with pytest.raises(
        ValueError, match=r"X\[0\]: the tokens .* pass a model with a fast tokenizer, such as CamemBERT"
    ):
        make(model=str(tiny_checkpoint("flaubert"))).fit(X, Y)


def test_a_model_of_another_task() -> None:
    with pytest.raises(WrongTaskError, match="holds no trained question answering head"):
        TransformerQuestionAnswerer.from_pretrained(BERT)
    with pytest.raises(WrongTaskError, match="'marian' model, which has no question answering head"):
        make(model=str(tiny_checkpoint("marian"))).fit(X, Y)


def test_strange_texts_are_read() -> None:
    strange = [
        "a\ud83db",
        "avant\x00apr\x00ès",
        "fac\u200bture\ufeff",
        "أين \u202efacture",
        "a\r\nb\u2028c\x85d",
    ]
    pairs = [(text, f"{text} Lyon {text}") for text in strange]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = make(max_epochs=2).fit(pairs, ["Lyon"] * len(pairs))
        spans = model.predict_spans(pairs)
    for (_, context), span in zip(pairs[1:], spans[1:], strict=True):
        assert context[span["start"] : span["end"]] == span["text"]


def test_places_are_counted_in_the_context_as_it_was_passed(learning: dict[str, Any]) -> None:
    """Halves of surrogate pairs, which tokenizers can't read, are joined or replaced on the way, not in the answers."""
    pairs = [
        ("Où ?", "\ud83d\ude00 vu à Lyon \ud83d."),
        ("Qui ?", "\ud83d Marie \ud83d\ude00\ud83d\ude00 dort 😀"),
    ] * 2
    answers = ["Lyon \ud83d", ("\ud83d\ude00 dort", 10)] * 2
    settings = {**learning, "learning_rate": 1e-2, "max_epochs": 25}
    model = TransformerQuestionAnswerer(str(tiny_checkpoint("roberta")), **settings).fit(pairs, answers)
    assert model.predict(pairs).tolist() == ["Lyon \ud83d", "\ud83d\ude00 dort"] * 2
    assert model.score(pairs, answers) == 1.0
    for (_, context), spans in zip(pairs, model.predict_spans(pairs, n_best=20), strict=True):
        assert {context[span["start"] : span["end"]] == span["text"] for span in spans} == {True}
        assert max(span["end"] for span in spans) == len(context)


@pytest.mark.parametrize("name", ["bert", "roberta", "t5"])
def test_the_stride_that_nobody_chose_is_never_too_large(name: str) -> None:
    model = TransformerQuestionAnswerer(
        str(tiny_checkpoint(name)), max_epochs=1, device="cpu", random_state=0
    )
    for pairs in ([("", "Elle habite à Lyon.")], [("Où ?", "Elle habite à Lyon.")]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what fits into so little is cut, and not trained on
            model.fit(pairs, ["Lyon"])
            special = model.text_encoder_.pair.n_special
            for max_length in range(special + 1, 12):
                (span,) = model.set_params(max_length=max_length).predict_spans(pairs)
                assert span["text"] == pairs[0][1][span["start"] : span["end"]]
        model.set_params(max_length=384)
