"""A question answerer in training, in scikit-learn, in a file and in Transformers' hands."""

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from transformers import AutoModel, AutoModelForQuestionAnswering, AutoTokenizer, BertConfig

from sktransformer import TransformerQuestionAnswerer, answer_exact_match_score
from sktransformer.testing import tiny_checkpoint

Maker = Callable[..., TransformerQuestionAnswerer]
NAMES = ["Marie", "Paul", "Luc", "Anne", "Eva", "Jean", "Rose", "Hugo"]
PAIRS = [("Qui ?", f"Ce matin {name} dort.") for name in NAMES]
UNANSWERED = [("Combien ?", context) for _, context in PAIRS]
BOTH, ANSWERS = PAIRS + UNANSWERED, NAMES + [None] * 8


@pytest.fixture
def reader(learning: dict[str, Any]) -> Maker:
    def make(name: str = "bert", **parameters: Any) -> TransformerQuestionAnswerer:
        settings = {**learning, "learning_rate": 1e-2, "max_epochs": 2, **parameters}
        return TransformerQuestionAnswerer(str(tiny_checkpoint(name)), **settings)

    return make


class TestTraining:
    def test_early_stopping_by_f1_and_the_threshold_it_learns(self, reader: Maker) -> None:
        model = reader(early_stopping=True, validation_fraction=0.5, max_epochs=12, n_iter_no_change=12)
        model.fit(BOTH, ANSWERS)
        scores = model.history_["valid_score"]
        assert scores.max() == scores[model.best_epoch_ - 1] > scores[0]
        assert isinstance(model.no_answer_threshold_, float)
        # it is the best on the questions held out, of which a fit by hand knows the rows
        from sktransformer.tasks._holdout import held_out

        _, held = held_out(np.repeat([1, 0], 8), np.array(["a", "b"]), 0.5, 0)
        rows, golds = [BOTH[i] for i in held], [ANSWERS[i] for i in held]
        learned = model.score(rows, golds)
        others = [
            model.set_params(no_answer_threshold=t).score(rows, golds) for t in np.arange(-12, 12.5, 0.5)
        ]
        assert learned >= max(others)
        assert learned >= scores.max()

    @pytest.mark.parametrize(
        "scoring", ["f1", "exact_match", make_scorer(answer_exact_match_score, articles="french")]
    )
    def test_scorers(self, reader: Maker, scoring: Any) -> None:
        model = reader(early_stopping=True, validation_fraction=0.25, scoring=scoring).fit(PAIRS, NAMES)
        assert model.history_["valid_score"].between(0, 1).all()
        assert model.no_answer_threshold_ is None

    def test_a_scorer_that_fails_says_so(self, reader: Maker) -> None:
        def failing(estimator: Any, X: Any, y: Any) -> float:
            assert X[0] in PAIRS
            raise ValueError("boom 42")

        answers = [{"text": [name]} for name in NAMES]
        with pytest.raises(ValueError, match=r"can't be computed on the 4 documents held out .* boom 42"):
            reader(early_stopping=True, validation_fraction=0.5, scoring=failing).fit(PAIRS, answers)

    def test_an_explicit_threshold_is_not_learned(self, reader: Maker) -> None:
        model = reader(early_stopping=True, no_answer_threshold=1.5).fit(BOTH, ANSWERS)
        assert model.no_answer_threshold_ == 1.5
        assert reader(no_answer_threshold=None).fit(BOTH, ANSWERS).no_answer_threshold_ is None
        assert reader().fit(BOTH, ANSWERS).no_answer_threshold_ == 0.0

    def test_first_loss_is_that_of_transformers(self, reader: Maker) -> None:
        model = reader(learning_rate=0.0, max_epochs=1, batch_size=8).fit(PAIRS, NAMES)
        losses = []
        for (question, context), name in zip(PAIRS, NAMES, strict=True):
            inputs = model.tokenizer_(question, context, return_tensors="pt", return_offsets_mapping=True)
            offsets = inputs.pop("offset_mapping")[0].tolist()
            inside = [i for i, text in enumerate(inputs.sequence_ids(0)) if text == 1]
            begin = context.index(name)
            start = next(i for i in inside if offsets[i][0] == begin)
            end = next(i for i in inside if offsets[i][1] == begin + len(name))
            with torch.inference_mode():
                output = model.model_(**inputs)
            choices = [0, *inside]
            for logits, target in ((output.start_logits[0], start), (output.end_logits[0], end)):
                losses.append(float(logits[choices].logsumexp(0) - logits[target]))
        assert model.history_["train_loss"][0] == pytest.approx(np.mean(losses), abs=1e-4)

    def test_weights_of_rows(self, reader: Maker) -> None:
        twice = reader(max_epochs=1, batch_size=16).fit(PAIRS, NAMES, sample_weight=[2.0] * 8)
        plain = reader(max_epochs=1, batch_size=16).fit(PAIRS, NAMES)
        np.testing.assert_allclose(twice.history_["train_loss"], plain.history_["train_loss"], rtol=1e-6)
        some = reader(max_epochs=1, batch_size=16, learning_rate=0.0).fit(
            PAIRS, NAMES, sample_weight=[1, 1] + [0] * 6
        )
        two = reader(max_epochs=1, batch_size=16, learning_rate=0.0).fit(PAIRS[:2], NAMES[:2])
        np.testing.assert_allclose(some.history_["train_loss"], two.history_["train_loss"], rtol=1e-5)

    def test_warm_start_and_scratch(self, reader: Maker) -> None:
        model = reader(warm_start=True).fit(PAIRS, NAMES)
        model.fit(BOTH, ANSWERS)
        assert model.history_["epoch"].tolist() == [1, 2, 3, 4]
        assert model.no_answer_threshold_ == 0.0
        config = BertConfig(
            vocab_size=120, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
        )
        scratch = reader(max_epochs=1).set_params(model=config).fit(PAIRS, NAMES)
        assert all(text in context for text, (_, context) in zip(scratch.predict(PAIRS), PAIRS, strict=True))

    def test_a_checkpoint_of_more_classes_gets_two_outputs(self, reader: Maker, tmp_path: Any) -> None:
        model = AutoModelForQuestionAnswering.from_pretrained(tiny_checkpoint("bert"))
        model.config.num_labels = 5
        model.save_pretrained(tmp_path)
        AutoTokenizer.from_pretrained(tiny_checkpoint("bert")).save_pretrained(tmp_path)
        assert reader().set_params(model=str(tmp_path)).fit(PAIRS, NAMES).model_.qa_outputs.out_features == 2


class TestFiles:
    @pytest.mark.parametrize("name", ["bert", "modernbert", "flaubert"])
    def test_transformers_loads_what_is_saved(self, reader: Maker, tmp_path: Any, name: str) -> None:
        model = reader(name, early_stopping=True).fit(BOTH, ANSWERS)
        model.save_pretrained(tmp_path / "saved")
        loaded = AutoModelForQuestionAnswering.from_pretrained(tmp_path / "saved").eval()
        tokenizer = AutoTokenizer.from_pretrained(tmp_path / "saved")
        inputs = tokenizer(*PAIRS[0], return_tensors="pt")
        with torch.inference_mode():
            ours, theirs = model.model_(**inputs), loaded(**inputs)
        torch.testing.assert_close(theirs.start_logits, ours.start_logits)
        torch.testing.assert_close(theirs.end_logits, ours.end_logits)
        again = TransformerQuestionAnswerer.from_pretrained(
            tmp_path / "saved", precision="float32", device="cpu"
        )
        assert again.no_answer_threshold_ == model.no_answer_threshold_
        for spans, expected in zip(again.predict_spans(BOTH), model.predict_spans(BOTH), strict=True):
            assert spans["text"] == expected["text"]
            assert spans["score"] == pytest.approx(expected["score"], abs=1e-4)
        always = TransformerQuestionAnswerer.from_pretrained(tmp_path / "saved", no_answer_threshold=None)
        assert "" not in always.predict(BOTH)

    def test_pickles(self, reader: Maker) -> None:
        model = reader().fit(BOTH, ANSWERS)
        again = pickle.loads(pickle.dumps(model))
        assert again.predict_spans(BOTH, n_best=3) == model.predict_spans(BOTH, n_best=3)
        assert again.no_answer_threshold_ == 0.0


class TestWithScikitLearn:
    def test_cross_validation_takes_answers_of_any_form(self, reader: Maker) -> None:
        golds: list[Any] = [{"text": [name], "answer_start": [9]} for name in NAMES]
        for y in (golds, NAMES, [(name, 9) for name in NAMES]):
            scores = cross_val_score(reader(max_epochs=1), PAIRS, y, cv=KFold(2), error_score="raise")
            assert np.isfinite(scores).all()

    def test_grid_search_in_a_pipeline(self, reader: Maker) -> None:
        pipe = make_pipeline("passthrough", reader(max_epochs=1))
        grid = {"transformerquestionanswerer__max_answer_length": [1, 5]}
        search = GridSearchCV(
            pipe, grid, cv=2, scoring=make_scorer(answer_exact_match_score), error_score="raise"
        )
        search.fit(PAIRS, NAMES)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()

    def test_threads_share_one(self, reader: Maker) -> None:
        model = reader().fit(BOTH, ANSWERS)
        batches = [BOTH[i % 16 : i % 16 + 3] for i in range(40)]
        expected = [model.predict_spans(batch) for batch in batches]
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(model.predict_spans, batches))
        for one, other in zip(found, expected, strict=True):
            assert [span["text"] for span in one] == [span["text"] for span in other]
            scores = [[span["score"] for span in spans] for spans in (one, other)]
            np.testing.assert_allclose(scores[0], scores[1], atol=1e-5)


def test_a_body_that_its_head_calls_otherwise_is_read(tmp_path: Path, learning: dict[str, Any]) -> None:
    """Transformers' question answering on Llama says "transformer" where checkpoints say "model"."""
    pairs = [("Où ?", "Amsterdam est grande."), ("Qui ?", "Un canal, l'hôpital, Marie")]
    body = AutoModel.from_pretrained(tiny_checkpoint("llama"))
    model = TransformerQuestionAnswerer(str(tiny_checkpoint("llama")), **{**learning, "max_epochs": 1})
    model.set_params(learning_rate=0.0, weight_decay=0.0).fit(pairs, ["Amsterdam", "Marie"])
    for name, weight in model.model_.base_model.state_dict().items():
        torch.testing.assert_close(weight, body.state_dict()[name], rtol=0, atol=0)
    found = model.predict_spans(pairs)
    again = pickle.loads(pickle.dumps(model))
    for i, one in enumerate((model, again)):
        assert one.predict_spans(pairs) == found
        one.save_pretrained(tmp_path / str(i))
        stored = TransformerQuestionAnswerer.from_pretrained(
            tmp_path / str(i), device="cpu", precision="float32"
        )
        assert stored.predict_spans(pairs) == found
