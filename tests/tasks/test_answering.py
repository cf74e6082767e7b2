"""Answers of tiny models that have learned a few questions by heart."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from sktransformer import TransformerQuestionAnswerer, answer_f1_score
from sktransformer.testing import tiny_checkpoint

MODELS = ["bert", "roberta", "camembert", "xlm-roberta", "modernbert", "flaubert", "distilbert", "t5"]
PAIRS = [
    ("Où ?", "Amsterdam est grande."),
    ("Quoi ?", "Elle dit « Amsterdam » ici."),
    ("Quand ?", "👍 e\u0301té : lundi é."),
    ("Qui ?", "Un canal, l'hôpital, Marie"),
]
ANSWERS = ["Amsterdam", "Amsterdam", "lundi", "Marie"]
OTHERS = [
    ("Où ?", "  deux\u00a0blancs,\n et Montréal\t"),
    ("Qui ?", "«Élise»—👩‍👩‍👧 dort…"),
    ("", "mot"),
    ("Quoi ?", ""),
    ("Quoi ?", " \n "),
]
Maker = Callable[..., TransformerQuestionAnswerer]


@pytest.fixture
def reader(learning: dict[str, Any]) -> Maker:
    """Make an answerer that learns the pairs; parameters replace those of `LEARNING`."""

    def make(name: str = "camembert", **parameters: Any) -> TransformerQuestionAnswerer:
        settings = {**learning, "learning_rate": 1e-2, "max_epochs": 25, **parameters}
        return TransformerQuestionAnswerer(str(tiny_checkpoint(name)), **settings)

    return make


@pytest.fixture(scope="session")
def fitted() -> TransformerQuestionAnswerer:
    return TransformerQuestionAnswerer(
        str(tiny_checkpoint("camembert")), learning_rate=1e-2, max_epochs=25, batch_size=4, dropout=0.0,
        attention_dropout=0.0, precision="float32", device="cpu", random_state=0,
    ).fit(PAIRS, ANSWERS)  # fmt: skip


def places_hold(pairs, spans):
    for (_, context), span in zip(pairs, spans, strict=True):
        assert context[span["start"] : span["end"]] == span["text"] == span["text"].strip()


@pytest.mark.parametrize("name", MODELS)
def test_learned_answers_are_given_letter_by_letter(reader: Maker, name: str) -> None:
    model = reader(name).fit(PAIRS, ANSWERS)
    assert model.predict(PAIRS).tolist() == ANSWERS
    assert model.score(PAIRS, ANSWERS) == model.exact_match(PAIRS, ANSWERS) == 1.0
    pairs = PAIRS + OTHERS
    spans = model.predict_spans(pairs)
    places_hold(pairs, spans)
    assert [span["text"] for span in spans] == model.predict(pairs).tolist()
    assert spans[4]["text"]
    assert [span["text"] for span in spans[-2:]] == ["", ""]  # nothing there to answer with
    for pair, of_row in zip(pairs, model.predict_spans(pairs, n_best=8), strict=True):
        places_hold([pair] * len(of_row), of_row)


def test_scores_are_sums_of_the_logits_of_transformers(fitted: TransformerQuestionAnswerer) -> None:
    question, context = PAIRS[1]
    inputs = fitted.tokenizer_(question, context, return_tensors="pt", return_offsets_mapping=True)
    offsets = inputs.pop("offset_mapping")[0].tolist()
    with torch.inference_mode():
        output = fitted.model_(**inputs)
    start, end = output.start_logits[0], output.end_logits[0]
    span = fitted.predict_spans([PAIRS[1]])[0]
    inside = [i for i, text in enumerate(inputs.sequence_ids(0)) if text == 1]
    first = next(i for i in inside if offsets[i][1] > span["start"])
    last = max(i for i in inside if offsets[i][0] < span["end"])
    assert span["score"] == pytest.approx(float(start[first] + end[last]), abs=1e-4)
    assert span["no_answer_score"] == pytest.approx(float(start[0] + end[0]), abs=1e-4)


class TestSeveralAnswers:
    def test_best_first_and_no_text_twice(self, fitted: TransformerQuestionAnswerer) -> None:
        pair = ("Où ?", "le chat, le chien, le chat, le chat")
        for n_best in (1, 4, 60, 10_000):
            (found,) = fitted.predict_spans([pair], n_best=n_best)
            texts, scores = [[span[key] for span in found] for key in ("text", "score")]
            assert len(set(texts)) == len(texts) <= n_best
            assert scores == sorted(scores, reverse=True)
            assert found[0] == fitted.predict_spans([pair])[0]
        # all there are: every distinct run of tokens, and never the empty text
        assert "" not in texts
        assert {"le", "chat", "le chat", "chat, le chien"} <= set(texts)
        assert len(fitted.predict_spans([pair], n_best=60)[0]) == 60

    def test_no_more_than_the_longest(self, fitted: TransformerQuestionAnswerer) -> None:
        limited = TransformerQuestionAnswerer(**{**fitted.get_params(), "max_answer_length": 1})
        limited.__dict__.update({k: v for k, v in vars(fitted).items() if k.endswith("_")})
        (found,) = limited.predict_spans([PAIRS[0]], n_best=1000)
        context = fitted.tokenizer_.tokenize(PAIRS[0][1])
        assert len(found) <= len(context)
        assert max(len(span["text"]) for span in found) <= max(map(len, context))

    @pytest.mark.parametrize(
        ("n_best", "kind"), [(0, ValueError), (2.0, TypeError), ("all", TypeError), (True, TypeError)]
    )
    def test_numbers_that_are_refused(self, fitted, n_best, kind) -> None:
        with pytest.raises(kind, match="n_best"):
            fitted.predict_spans(PAIRS, n_best=n_best)


UNANSWERED = [("Combien ?", context) for _, context in PAIRS]
NO_ANSWERS = [None, "", float("nan"), {"text": [], "answer_start": []}]


@pytest.fixture(scope="session")
def unsure() -> TransformerQuestionAnswerer:
    return TransformerQuestionAnswerer(
        str(tiny_checkpoint("camembert")), learning_rate=1e-2, max_epochs=40, batch_size=8, dropout=0.0,
        attention_dropout=0.0, precision="float32", device="cpu", random_state=0,
    ).fit(PAIRS + UNANSWERED, ANSWERS + NO_ANSWERS)  # fmt: skip


class TestNoAnswer:
    pairs = PAIRS + UNANSWERED
    answers = ANSWERS + NO_ANSWERS

    def test_is_learned(self, unsure) -> None:
        assert unsure.predict(self.pairs).tolist() == [*ANSWERS, "", "", "", ""]
        assert unsure.score(self.pairs, self.answers) == 1.0
        assert unsure.no_answer_threshold_ == 0.0
        span = unsure.predict_spans(self.pairs)[4]
        assert (span["text"], span["start"], span["end"]) == ("", 0, 0)
        assert span["score"] == span["no_answer_score"]

    def test_threshold_moves_the_line(self, unsure) -> None:
        before = unsure.get_params()
        margins = [
            spans[0]["score"] - spans[0]["no_answer_score"]
            for spans in unsure.set_params(no_answer_threshold=None).predict_spans(self.pairs, n_best=1)
        ]
        assert "" not in unsure.predict(self.pairs)
        for threshold in (-1000.0, margins[0] - 1e-3, margins[0] + 1e-3, 1000):
            given = unsure.set_params(no_answer_threshold=threshold).predict(self.pairs) != ""
            assert given.tolist() == [margin > threshold for margin in margins]
        unsure.set_params(**before)

    def test_is_listed_where_it_ranks(self, unsure) -> None:
        listed = unsure.predict_spans(self.pairs, n_best=5)
        for spans in listed:
            texts = [span["text"] for span in spans]
            assert len(texts) == 5
            scores = [span["score"] for span in spans]
            assert scores == sorted(scores, reverse=True)  # a threshold of 0 ranks it by its score
        assert listed[4][0]["text"] == ""
        everything = unsure.predict_spans(self.pairs[:1], n_best=100_000)[0]
        assert [span["text"] for span in everything].count("") == 1

    def test_without_such_questions_there_is_always_an_answer(self, fitted) -> None:
        assert fitted.no_answer_threshold_ is None
        assert "" not in fitted.predict(self.pairs)


LONG = " ".join(["le chat et le chien."] * 12)


LONG_PAIRS = [("Où ?", f"{LONG} Elle habite à Lyon. {LONG}"), ("Qui ?", f"{LONG} {LONG} Marie"), *PAIRS]
LONG_ANSWERS = ["Lyon", "Marie", *ANSWERS]


class TestLongContexts:
    pairs = LONG_PAIRS
    answers = LONG_ANSWERS

    @pytest.mark.parametrize("name", ["bert", "flaubert"])
    def test_answers_of_later_windows_are_found(self, reader: Maker, name: str) -> None:
        model = reader(name, max_length=48, max_epochs=30).fit(self.pairs, self.answers)
        assert model.predict(self.pairs).tolist() == self.answers
        span = model.predict_spans(self.pairs)[0]
        assert span["start"] == self.pairs[0][1].index("Lyon")

    def test_best_window_wins_and_no_answer_is_the_lowest(self, fitted: TransformerQuestionAnswerer) -> None:
        question, context = self.pairs[0]
        whole = fitted.set_params(stride=20).predict_spans([(question, context)])[0]
        found = fitted._reading([(question, context)])
        assert found.windows.encoded.n_windows > 3
        assert whole["score"] == pytest.approx(float(found.best[0].max()))
        nulls = found.starts[:, 0] + found.ends[:, 0]
        assert whole["no_answer_score"] == pytest.approx(float(nulls.min()))
        fitted.set_params(stride="auto")

    def test_every_token_of_the_context_is_read(self, fitted: TransformerQuestionAnswerer) -> None:
        found = fitted._reading([self.pairs[0]])
        covered = np.zeros(len(found.windows.characters[0]), dtype=int)
        for first, stop in zip(found.windows.first, found.windows.stop, strict=True):
            covered[first:stop] += 1
        assert covered.min() == 1
        assert covered.max() > 1


class TestFrames:
    frame = pd.DataFrame(
        {"id": range(4), "context": [c for _, c in PAIRS], "question": [q for q, _ in PAIRS]},
        index=[3, 1, 1, 0],
    )

    def test_columns_are_chosen_by_name(self, fitted: TransformerQuestionAnswerer) -> None:
        assert fitted.predict_spans(self.frame) == fitted.predict_spans(PAIRS)
        polars = pytest.importorskip("polars")
        assert fitted.predict_spans(polars.DataFrame(self.frame)) == fitted.predict_spans(PAIRS)

    def test_or_taken_in_order(self, fitted: TransformerQuestionAnswerer) -> None:
        named = pd.DataFrame(PAIRS, columns=["subject", "body"])
        for X in (named, np.array(PAIRS, dtype=object), iter(PAIRS), [list(pair) for pair in PAIRS]):
            assert fitted.predict_spans(X) == fitted.predict_spans(PAIRS)

    def test_names_are_recorded(self, reader: Maker) -> None:
        model = reader(max_epochs=1).fit(self.frame, pd.Series(ANSWERS, index=[9, 8, 7, 6]))
        assert model.feature_names_in_.tolist() == ["question", "context"]
        assert model.n_features_in_ == 2
        same = reader(max_epochs=1).fit(PAIRS, ANSWERS)
        assert model.predict_spans(PAIRS) == same.predict_spans(PAIRS)


def test_packed_and_padded_are_the_same(reader: Maker, padded: Callable[[], None]) -> None:
    pairs = LONG_PAIRS + UNANSWERED
    answers = LONG_ANSWERS + NO_ANSWERS
    packed = reader(max_epochs=2).fit(pairs, answers)
    expected = packed.predict_spans(pairs)
    padded()
    again = reader(max_epochs=2).fit(pairs, answers)
    np.testing.assert_allclose(again.history_["train_loss"], packed.history_["train_loss"], rtol=1e-4)
    assert [span["text"] for span in packed.predict_spans(pairs)] == [span["text"] for span in expected]
    for key in ("score", "no_answer_score"):
        np.testing.assert_allclose(
            *[[s[key] for s in spans] for spans in (packed.predict_spans(pairs), expected)], atol=1e-4
        )
    # training leaves a constant in all scores open: no gradient says where the bias of the head should be
    np.testing.assert_allclose(again._reading(pairs).margins(), packed._reading(pairs).margins(), atol=1e-3)


def test_score_is_the_mean_f1_of_the_predictions(fitted: TransformerQuestionAnswerer) -> None:
    answers = [{"text": ["Amsterdam est grande", "Rotterdam"]}, ("Amsterdam", 11), "mardi", None]
    predicted = fitted.predict(PAIRS)
    assert fitted.score(PAIRS, answers) == answer_f1_score(answers, predicted) == pytest.approx((0.5 + 1) / 4)
    assert fitted.exact_match(PAIRS, answers) == 0.25
    assert fitted.score(PAIRS, answers, sample_weight=[0, 1, 0, 0]) == 1.0
