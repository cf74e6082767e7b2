"""The tagger: what it learns, what it gives for every word, how it is scored, stopped, searched and stored."""

from __future__ import annotations

import pickle
from itertools import chain
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import torch
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from transformers import AutoModelForTokenClassification, AutoTokenizer

from sktransformer import TransformerTokenClassifier
from sktransformer._engine.errors import MissingExtraError, WrongTaskError
from sktransformer.tasks._tagging import entity_scores as _entity_scores
from sktransformer.tasks._tagging.schemes import first_fault
from sktransformer.tasks.tagging import entity_f1_scorer, token_accuracy_scorer
from sktransformer.testing import tiny_checkpoint

from .tagging_helpers import PARTS, X, Y, quick, tagger

DECODINGS = ("argmax", "bio", "crf")
LONG = ["Marie", "habite", "à", "Lyon", "zzz", "\t"] * 30


@pytest.fixture(scope="module")
def fitted() -> dict[str, TransformerTokenClassifier]:
    """A tagger for each decoding, shared by the tests that leave it as it is."""
    return {decoding: tagger(decoding=decoding).fit(X, Y) for decoding in DECODINGS}


# -- learning and prediction -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decoding", DECODINGS)
def test_entities_are_learned(fitted: dict[str, Any], decoding: str) -> None:
    model = fitted[decoding]
    assert [row.tolist() for row in model.predict(X)] == Y
    assert model.score(X, Y) == 1.0
    assert model.scheme_ == "IOB2"
    assert model.classes_.tolist() == ["B-LOC", "B-ORG", "B-PER", "I-ORG", "I-PER", "O"]


@pytest.mark.parametrize("name", ["camembert", "flaubert", "roberta", "modernbert"])
@pytest.mark.parametrize("decoding", ["bio", "crf"])
def test_other_models_learn_too(name: str, decoding: str) -> None:
    assert tagger(name, decoding=decoding).fit(X, Y).score(X, Y) == 1.0


@pytest.mark.parametrize("decoding", DECODINGS)
def test_parts_of_speech_have_no_scheme(decoding: str) -> None:
    model = tagger(decoding=decoding).fit(X, PARTS)
    assert model.scheme_ is None
    assert model.score(X, PARTS) == 1.0
    with pytest.raises(ValueError, match="predict_spans needs tags that spell entities"):
        model.predict_spans(["Marie"])


@pytest.mark.parametrize("decoding", DECODINGS)
def test_every_word_has_a_tag_and_probabilities(fitted: dict[str, Any], decoding: str) -> None:
    model = fitted[decoding]
    sentences = [LONG, [], ["\r\n"], ["", "\x00", "Lyon", "\u200b"], ["Lyon"]]
    tags, shares = model.predict(sentences), model.predict_proba(sentences)
    for words, row, share in zip(sentences, tags, shares, strict=True):
        assert row.shape == (len(words),)
        assert row.dtype == model.classes_.dtype
        assert share.shape == (len(words), 6)
        assert share.dtype == np.float32
        np.testing.assert_allclose(share.sum(axis=1), 1, atol=1e-5)
        if decoding != "argmax":
            assert first_fault(row.tolist(), "IOB2") is None
    if decoding == "argmax":
        for row, share in zip(tags, shares, strict=True):
            assert row.tolist() == model.classes_[share.argmax(axis=1)].tolist()


@pytest.mark.parametrize("name", ["bert", "flaubert", "modernbert"])
@pytest.mark.parametrize("decoding", ["bio", "crf"])
def test_numbers_do_not_depend_on_neighbours_or_budgets(name: str, decoding: str) -> None:
    model = quick(name, decoding=decoding, max_epochs=4).fit(X, Y)
    sentences = [LONG, *X[:4], ["Lyon"], []]
    together = model.predict_proba(sentences)
    for budget in (1, 64):
        model.set_params(token_budget=budget)
        for i, words in enumerate(sentences):
            np.testing.assert_allclose(model.predict_proba([words])[0], together[i], rtol=0, atol=1e-5)


def test_a_long_sentence_is_read_in_windows_and_trained_on_whole() -> None:
    sentences, tags = [LONG, *X[:4]], [["B-PER", "O", "O", "B-LOC", "O", "O"] * 30, *Y[:4]]
    for decoding in ("argmax", "crf"):
        model = tagger(decoding=decoding, max_epochs=12, max_length=32).fit(sentences, tags)
        found = model.predict([LONG])[0]
        assert (found == np.array(tags[0])).mean() > 0.95


def test_an_empty_sentence_is_skipped_in_training() -> None:
    shares = [
        model.predict_proba(X[:3])
        for model in (quick().fit(X[:8], Y[:8]), quick().fit([[], *X[:8], []], [[], *Y[:8], []]))
    ]
    for one, other in zip(*shares, strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="every sentence is empty"):
        quick().fit([[], []], [[], []])
    with pytest.raises(ValueError, match="0 sample"):
        quick().fit([], [])


def test_nothing_gives_nothing(fitted: dict[str, Any]) -> None:
    model = fitted["crf"]
    assert model.predict([]) == model.predict_proba([]) == model.predict_spans([]) == []
    assert model.predict([[]])[0].tolist() == []
    assert model.predict_spans(["", "  "]) == [[], []]
    with pytest.raises(NotFittedError):
        quick().predict(X)


def test_decoding_may_be_switched_after_a_fit(fitted: dict[str, Any]) -> None:
    model = pickle.loads(pickle.dumps(fitted["argmax"]))
    plain = model.predict_proba(X[:2])
    legal = model.set_params(decoding="bio").predict_proba(X[:2])
    assert max(np.abs(a - b).max() for a, b in zip(plain, legal, strict=True)) > 0
    with pytest.raises(ValueError, match="decoding='crf' needs transitions that are learned in fit"):
        model.set_params(decoding="crf").predict(X[:2])
    with pytest.raises(ValueError, match=r"decoding='viterby' is not known"):
        quick(decoding="viterby").fit(X, Y)


@pytest.mark.filterwarnings("ignore:training collapsed")
def test_the_loss_is_the_mean_over_words_and_weights_scale_it() -> None:
    """At a rate of 0: the loss on record is the mean of -log p over all words."""
    model = quick(learning_rate=0.0, weight_decay=0.0, batch_size=100, decoding="argmax")
    model.fit(X[:4], Y[:4])
    shares = np.concatenate(model.predict_proba(X[:4]))
    index = np.searchsorted(model.classes_, list(chain.from_iterable(Y[:4])))
    losses = -np.log(shares[np.arange(len(index)), index])
    assert model.history_["train_loss"].iloc[0] == pytest.approx(losses.mean(), abs=1e-5)
    owners = np.repeat(np.arange(4), [len(row) for row in Y[:4]])
    weights = np.array([0.0, 1.0, 3.0, 0.5])
    weighted = model.fit(X[:4], Y[:4], sample_weight=weights).history_["train_loss"].iloc[0]
    assert weighted == pytest.approx(np.average(losses, weights=weights[owners]), abs=1e-5)


@pytest.mark.filterwarnings("ignore:training collapsed")
def test_the_loss_of_a_crf_does_not_depend_on_budgets() -> None:
    losses = [
        quick(decoding="crf", token_budget=budget).fit([*X, LONG], [*Y, ["O"] * len(LONG)]).history_
        for budget in (1, 100_000)
    ]
    one, other = (history["train_loss"].iloc[0] for history in losses)
    assert one == pytest.approx(other, abs=1e-4)


def test_a_training_that_finds_one_tag_warns() -> None:
    with pytest.warns(ConvergenceWarning, match="every word is taken for 'O'"):
        tagger(max_epochs=3).fit(X, [Y[0], *(["O"] * len(row) for row in Y[1:])])


def test_raw_texts_and_their_words_give_the_same(fitted: dict[str, Any]) -> None:
    model = fitted["bio"]
    text, words = " Marie habite à  l'hôpital.", ["Marie", "habite", "à", "l'", "hôpital", "."]
    np.testing.assert_array_equal(model.predict_proba([text])[0], model.predict_proba([words])[0])
    with pytest.raises(TypeError, match="predict_spans needs raw texts, got lists of words"):
        model.predict_spans([words])


def test_spans_are_learned_from_raw_texts() -> None:
    texts = ["Marie habite à Lyon.", "Jean Valjean est à Montreuil", "rien ici"] * 5
    spans = [[(0, 5, "PER"), (15, 19, "LOC")], [(0, 12, "PER"), (19, 28, "LOC")], []] * 5
    model = tagger(scheme="BIOES", max_epochs=15).fit(texts, spans)
    found = model.predict_spans(texts[:3])
    assert [[(span["start"], span["end"], span["label"]) for span in row] for row in found] == spans[:3]
    assert [span["text"] for span in found[1]] == ["Jean Valjean", "Montreuil"]
    assert all(0 < span["score"] <= 1 for row in found for span in row)
    assert model.score(texts, spans) == 1.0


# -- scores ------------------------------------------------------------------------------------------------------------


def test_entity_f1_counts_whole_entities(fitted: dict[str, Any]) -> None:
    """Of four entities in truth and four found, three are right: one end is wrong."""
    truth = [["B-PER", "O", "O", "B-LOC"], ["B-ORG", "I-ORG", "I-ORG", "O"], ["O", "O", "B-NEW", "O"]]
    sentences = [X[0], X[2], X[0]]
    found = [row.tolist() for row in fitted["bio"].predict(sentences)]
    assert found == [Y[0], Y[2], Y[0]]
    # found: PER LOC | ORG | PER LOC; right: PER LOC; truth: PER LOC ORG NEW
    assert fitted["bio"].score(sentences, truth) == pytest.approx(2 * (2 / 5) * (2 / 4) / (2 / 5 + 2 / 4))
    assert entity_f1_scorer(fitted["bio"], sentences, truth) == fitted["bio"].score(sentences, truth)
    assert token_accuracy_scorer(fitted["bio"], sentences, truth) == pytest.approx(8 / 12)
    with pytest.raises(ValueError, match=r"y\[0\]\[1\] is 'PER', no tag of a scheme"):
        fitted["bio"].score(X[:1], [["O", "PER", "O", "O"]])
    with pytest.raises(ValueError, match=r"y\[0\] has 1 tag\(s\), but X\[0\] has 4 word\(s\)"):
        fitted["bio"].score(X[:1], [["O"]])


def test_scores_inside_scikit_learn() -> None:
    assert not is_classifier(quick())
    scores = cross_val_score(tagger(), X, Y, cv=KFold(2), error_score="raise")
    assert scores.tolist() == [1.0, 1.0]  # no NaN, which a ragged y would give a classifier
    search = GridSearchCV(
        make_pipeline("passthrough", tagger()),
        {"transformertokenclassifier__decoding": ["bio", "crf"]},
        scoring=entity_f1_scorer,
        cv=KFold(2),
        error_score="raise",
    ).fit(X, Y)
    assert search.best_score_ == 1.0
    parts = quick(max_epochs=3).fit(X, PARTS)
    assert token_accuracy_scorer(parts, X, PARTS) == parts.score(X, PARTS)
    with pytest.raises(ValueError, match="use token_accuracy_scorer"):
        entity_f1_scorer(parts, X, PARTS)


def test_without_the_extra_training_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_entity_scores, "optional_import", _missing)
    with pytest.raises(MissingExtraError):
        quick(early_stopping=True).set_params(model="/no/such/folder").fit(X, Y)
    assert quick().fit(X, PARTS).score(X, PARTS) >= 0


def _missing(module: str, extra: str) -> Any:
    raise MissingExtraError(f"{module} of {extra}")


def test_early_stopping_keeps_the_best_epoch_with_its_transitions() -> None:
    seen: list[torch.Tensor] = []

    def score(estimator: Any, sentences: Any, tags: Any) -> float:
        assert len(sentences) == len(tags) == 4
        seen.append(estimator.model_.crf.transition_scores.detach().clone())
        return {1: 0.1, 2: 0.9}.get(len(seen), 0.2)

    model = quick(
        decoding="crf", max_epochs=5, early_stopping=True, validation_fraction=0.25, scoring=score
    ).fit(X, Y)
    assert model.best_epoch_ == 2
    assert len(model.history_) == 4
    assert torch.equal(model.model_.crf.transition_scores, seen[1])
    assert not torch.equal(seen[0], seen[1])
    stopped = tagger(early_stopping=True, validation_fraction=0.25, n_iter_no_change=9).fit(X, Y)
    assert stopped.history_["valid_score"].max() == 1.0


def test_warm_start_goes_on_with_the_transitions() -> None:
    model = quick(decoding="crf", warm_start=True).fit(X, Y)
    before = model.model_.crf.transition_scores.detach().clone()
    model.set_params(learning_rate=0.0).fit(X, Y)
    assert torch.equal(model.model_.crf.transition_scores, before)
    assert before.abs().max() > 0
    assert model.history_["epoch"].tolist() == [1, 2]
    with pytest.raises(ValueError, match="warm_start=True needs the tags of the first fit"):
        model.fit(X, PARTS)


# -- what travels ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bert", "flaubert"])
def test_transitions_travel_with_the_model(name: str, tmp_path: Path) -> None:
    model = quick(name, decoding="crf", max_epochs=3).fit(X, Y)
    expected = model.predict_proba([LONG, *X[:4]])
    joblib.dump(model, tmp_path / "tagger.joblib")
    model.save_pretrained(tmp_path / "folder")
    others = [
        pickle.loads(pickle.dumps(model)),
        joblib.load(tmp_path / "tagger.joblib"),
        TransformerTokenClassifier.from_pretrained(
            tmp_path / "folder", decoding="crf", precision="float32", device="cpu"
        ),
    ]
    for other in others:
        assert other.classes_.tolist() == model.classes_.tolist()
        assert other.scheme_ == "IOB2"
        for one, found in zip(expected, other.predict_proba([LONG, *X[:4]]), strict=True):
            np.testing.assert_array_equal(found, one)
    again = pickle.loads(pickle.dumps(others[0]))
    assert again.score(X, Y) == model.score(X, Y)


def test_transformers_loads_the_folder_of_a_crf(tmp_path: Path) -> None:
    model = tagger(decoding="crf").fit(X, Y)
    model.save_pretrained(tmp_path)
    plain = AutoModelForTokenClassification.from_pretrained(tmp_path).eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    with torch.no_grad():
        logits = plain(**tokenizer("Marie", return_tensors="pt")).logits[0, 1]
    expected = torch.from_numpy(model.set_params(decoding="argmax").predict_proba([["Marie"]])[0][0])
    torch.testing.assert_close(logits.softmax(-1), expected, rtol=0, atol=1e-5)
    assert plain.config.id2label[2] == "B-PER"


def test_a_folder_without_a_head_or_transitions_is_refused(tmp_path: Path) -> None:
    quick(decoding="bio", max_epochs=2).fit(X, Y).save_pretrained(tmp_path)
    with pytest.raises(WrongTaskError, match="holds no transitions of a CRF"):
        TransformerTokenClassifier.from_pretrained(tmp_path, decoding="crf")
    with pytest.raises(WrongTaskError, match="no trained token classification head"):
        TransformerTokenClassifier.from_pretrained(tiny_checkpoint("bert"))
