"""Seq2SeqGenerator: what it learns, what it writes, and that neither depends on the batch."""

from __future__ import annotations

import functools
import io
import shutil
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV
from transformers import BartConfig, T5Config

from sktransformer import Seq2SeqGenerator, bleu_score, chrf_score
from sktransformer.exceptions import TruncationWarning, WrongTaskError
from sktransformer.nn import TransformerConfig
from sktransformer.testing import tiny_checkpoint

X = ["le chat dort", "le chien dort", "le chat mange", "où est le petit chien noir ?"] * 3
Y = ["the cat sleeps", "the dog sleeps", "the cat eats", "where is the little black dog ?"] * 3
NAMES = ("t5", "bart", "marian")
# short ones and long ones, so that rows leave a batch early and late
NEW = [
    "le",
    "où est le chat noir qui dort dans la petite maison de Paul ?",
    "le chien mange le chat",
    "",
    "ou",
]


def generator(name: str, **parameters) -> Seq2SeqGenerator:
    settings = {
        "max_epochs": 1,
        "batch_size": 4,
        "learning_rate": 1e-2,
        "random_state": 0,
        "max_new_tokens": 40,
        "precision": "float32",
    }
    return Seq2SeqGenerator(**{"model": str(tiny_checkpoint(name)), **settings, **parameters})


@functools.cache
def fitted(name: str) -> Seq2SeqGenerator:
    return generator(name, max_epochs=60, dropout=0.0, attention_dropout=0.0).fit(X, Y)


# -- learning ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_it_learns_its_pairs(name):
    one = fitted(name)
    assert one.predict(X[:4]).tolist() == Y[:4]
    assert one.score(X, Y) == pytest.approx(1.0)
    assert one.history_["train_loss"].iloc[-1] < 0.2 < one.history_["train_loss"].iloc[0]
    assert len(one.history_) == one.n_epochs_ == one.best_epoch_ == 60


@pytest.mark.parametrize("name", NAMES)
def test_an_epochs_loss_is_that_of_its_tokens(name):
    sources, targets = ["le", "le chat", "le chien dort"], ["a", "a b c d e f g h", "a b"]
    one = generator(name, learning_rate=0, batch_size=2, dropout=0.0, attention_dropout=0.0).fit(
        sources, targets
    )
    total, n_tokens = 0.0, 0
    for source, target in zip(sources, targets, strict=True):
        ids = one.tokenizer_(text_target=target, add_special_tokens=False)["input_ids"]
        labels = torch.tensor([[*ids, one.tokenizer_.eos_token_id]])
        start = torch.tensor([[one.model_.config.decoder_start_token_id, *ids]])
        with torch.no_grad():
            logits = one.model_(
                input_ids=torch.tensor([one.tokenizer_(source)["input_ids"]]), decoder_input_ids=start
            ).logits
        total += float(F.cross_entropy(logits[0], labels[0], reduction="sum"))
        n_tokens += labels.numel()
    assert one.history_["train_loss"].iloc[0] == pytest.approx(total / n_tokens, abs=1e-5)


def test_a_step_is_that_of_a_plain_loop():
    """With tied embeddings, whose gradient comes from both ends."""
    still = {"lr_schedule": "constant", "warmup_ratio": 0.0, "weight_decay": 0.0, "max_grad_norm": None}
    still |= {"dropout": 0.0, "attention_dropout": 0.0, "learning_rate": 1e-3}
    one = generator("t5", max_epochs=3, **still).fit(X[:4], Y[:4])
    plain = Seq2SeqGenerator.from_pretrained(one.model, dropout=0.0, attention_dropout=0.0)
    batch = plain.tokenizer_(X[:4], padding=True, return_tensors="pt")
    labels = plain.tokenizer_(Y[:4], padding=True, return_tensors="pt")["input_ids"]
    labels[labels == plain.tokenizer_.pad_token_id] = -100
    optimizer = torch.optim.AdamW(plain.model_.parameters(), lr=1e-3, weight_decay=0.0)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = plain.model_(**batch, labels=labels).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[2] < losses[0]
    assert one.history_["train_loss"].tolist() == pytest.approx(losses, abs=2e-4)


def test_smoothing_raises_the_loss_and_is_bounded():
    plain = generator("bart", learning_rate=0).fit(X, Y).history_["train_loss"].iloc[0]
    smooth = generator("bart", learning_rate=0, label_smoothing=0.3).fit(X, Y).history_["train_loss"].iloc[0]
    assert smooth != pytest.approx(plain, abs=1e-4)
    with pytest.raises(ValueError, match="label_smoothing must be at least 0 and below 1"):
        generator("bart", label_smoothing=1.0).fit(X, Y)


@pytest.mark.parametrize("config", ["bart", "t5", "ours"])
def test_from_scratch_with_a_tokenizer_of_both_sides(config):
    sizes = {"d_model": 32, "vocab_size": 400}
    if config == "bart":
        half = {
            f"{side}_{what}": n
            for side in ("encoder", "decoder")
            for what, n in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 64))
        }
        model = BartConfig(**sizes, **half, max_position_embeddings=64)
    elif config == "ours":
        model = TransformerConfig(
            architecture="encoder-decoder",
            hidden_size=32,
            num_layers=1,
            num_attention_heads=2,
            vocab_size=400,
        )
    else:
        model = T5Config(**sizes, d_ff=64, d_kv=16, num_layers=1, num_heads=2)
    one = generator("bart", model=model, max_epochs=60, max_length=64, dropout=0.0, attention_dropout=0.0)
    with pytest.raises(NotFittedError):
        one.predict(X)
    one.fit(X, Y)
    assert one.predict(X[:4]).tolist() == Y[:4]
    assert "▁sleeps" in one.tokenizer_.get_vocab() or "Ġsleeps" in one.tokenizer_.get_vocab()
    file = io.BytesIO()
    joblib.dump(one, file)
    file.seek(0)
    assert joblib.load(file).predict(NEW).tolist() == one.predict(NEW).tolist()


def test_early_stopping_writes_the_held_out_pairs():
    one = generator("t5", max_epochs=6, early_stopping=True, validation_fraction=0.25, n_iter_no_change=6)
    history = one.fit(X, Y).history_
    assert history["valid_score"].between(0, 1).all()
    assert one.best_epoch_ == len(history) - history["valid_score"][::-1].argmax()
    bleu = clone(one).set_params(scoring="bleu", max_epochs=1).fit(X, Y)
    own = clone(one).set_params(scoring=lambda estimator, X, y: -len(estimator.predict(X)), max_epochs=1)
    assert own.fit(X, Y).history_["valid_score"].iloc[0] == -3
    assert bleu.history_["valid_score"].iloc[0] <= history["valid_score"].iloc[0]
    with pytest.raises(ValueError, match=r"scoring='blue'.*bleu"):
        clone(one).set_params(scoring="blue").fit(X, Y)


def test_a_grid_search_with_scores_of_texts():
    search = GridSearchCV(
        generator("t5", num_beams=1, max_new_tokens=15),
        {"max_epochs": [1, 25]},
        scoring={"chrf": make_scorer(chrf_score), "bleu": make_scorer(bleu_score)},
        refit="chrf",
        cv=2,
        error_score="raise",
    ).fit(X, Y)
    assert search.best_params_ == {"max_epochs": 25}
    assert search.cv_results_["mean_test_bleu"].max() <= 1.0


def test_a_longer_target_is_cut_with_a_count_and_does_not_end():
    with pytest.warns(TruncationWarning, match="9 of 12 targets are longer than 10 tokens") as record:
        one = generator("marian", max_target_length=10, max_epochs=25, max_new_tokens=15).fit(X, Y)
    assert [str(w.message)[:1] for w in record] == ["9"]
    assert record[0].message.n_cut == 9
    assert (
        not Y[3].startswith(one.predict([X[3]])[0]) or len(one.predict_n_best([X[3]], 1)[0][0]["text"]) >= 10
    )
    long = " ".join(["chat"] * 90)
    with pytest.warns(TruncationWarning, match="1 of 2 targets are longer than 64 tokens"):
        generator("bart", max_target_length=500).fit(X[:2], [Y[0], long])  # 64 positions
    with pytest.warns(TruncationWarning, match="1 of 1 documents are longer than 64 tokens"):
        fitted("bart").predict([long])


def test_frozen_embeddings_stay():
    one = generator("bart", freeze="embeddings").fit(X, Y)
    before = Seq2SeqGenerator.from_pretrained(str(tiny_checkpoint("bart"))).model_
    assert torch.equal(one.model_.model.shared.weight, before.model.shared.weight)
    name = "model.decoder.layers.0.fc1.weight"
    assert not torch.equal(one.model_.state_dict()[name], before.state_dict()[name])
    lower = generator("t5", freeze=1).fit(X, Y).model_.state_dict()
    start = Seq2SeqGenerator.from_pretrained(str(tiny_checkpoint("t5"))).model_.state_dict()
    assert torch.equal(lower["shared.weight"], start["shared.weight"])
    frozen, free = (f"decoder.block.{i}.layer.0.SelfAttention.q.weight" for i in (0, 1))
    assert torch.equal(lower[frozen], start[frozen])
    assert not torch.equal(lower[free], start[free])


# -- writing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("name", NAMES)
def test_texts_do_not_depend_on_the_cut_and_are_those_of_generate(name, beams):
    one = clone_fitted(name, num_beams=beams)
    whole = one.predict(NEW).tolist()
    assert [one.predict([text])[0] for text in NEW] == whole
    assert one.predict(NEW[::-1]).tolist() == whole[::-1]
    for budget in (1, 60):
        assert one.set_params(token_budget=budget).predict(NEW).tolist() == whole
    for text, found in zip(NEW, whole, strict=True):
        batch = one.tokenizer_(text, return_tensors="pt")
        output = one.model_.generate(**batch, max_new_tokens=40, num_beams=beams, do_sample=False)
        assert one.tokenizer_.decode(output[0], skip_special_tokens=True) == found


def clone_fitted(name: str, **parameters) -> Seq2SeqGenerator:
    """Return a fitted generator whose parameters may be set."""
    one = fitted(name)
    copy = clone(one)
    copy.__dict__.update({key: value for key, value in vars(one).items() if key.endswith("_")})
    return copy.set_params(**parameters)


def test_the_best_texts_with_their_scores():
    one = clone_fitted("bart", num_beams=3)
    found = one.predict_n_best(NEW, 3)
    assert [len(texts) for texts in found] == [3] * len(NEW)
    assert [texts[0]["text"] for texts in found] == one.predict(NEW).tolist()
    for texts in found:
        scores = [text["score"] for text in texts]
        assert scores == sorted(scores, reverse=True)
        assert all(score < 0 for score in scores)
        assert {text["finish"] for text in texts} <= {"stop", "length"}
    with pytest.raises(ValueError, match="raise num_beams, or pass do_sample=True"):
        one.predict_n_best(NEW, 4)
    assert one.predict_n_best([], 2) == []
    assert one.predict([]).shape == (0,)


def test_samples_are_reproducible_and_none_hears_another():
    one = clone_fitted("t5", num_beams=1, do_sample=True, temperature=2.0, random_state=3)
    found = [[text["text"] for text in texts] for texts in one.predict_n_best(NEW, 5)]
    assert found == [[text["text"] for text in texts] for texts in one.predict_n_best(NEW, 5)]
    assert [text["text"] for text in one.predict_n_best([NEW[1]], 5)[0]] == found[1]
    assert len({text for texts in found for text in texts}) > 10
    assert one.predict(NEW).tolist() == [texts[0] for texts in found]
    assert one.set_params(random_state=4).predict(NEW).tolist() != [texts[0] for texts in found]
    with pytest.raises(ValueError, match="contradict each other"):
        one.set_params(num_beams=2).predict(NEW)


def test_a_prefix_goes_before_each_source_in_fit_and_later():
    plain, before = (generator("t5", prefix=prefix).fit(X, Y) for prefix in ("", "le "))
    by_hand = generator("t5").fit(["le " + text if not text.startswith("le ") else text for text in X], Y)
    assert before.history_["train_loss"].tolist() == by_hand.history_["train_loss"].tolist()
    assert plain.history_["train_loss"].tolist() != before.history_["train_loss"].tolist()


@pytest.mark.parametrize("name", NAMES)
def test_a_target_prefix_is_gone_on_from(name):
    one = clone_fitted(name, target_prefix="the cat")
    found = one.predict(["le chat dort"])[0]
    assert "the cat" not in found
    assert (f"the cat {found.strip()}").startswith("the cat sl")
    trained = generator(name, target_prefix="the ", max_epochs=2).fit(X[:3], [text[4:] for text in Y[:3]])
    assert np.isfinite(trained.history_["train_loss"]).all()


def test_a_checkpoint_writes_without_a_fit(tmp_path):
    fitted("marian").save_pretrained(tmp_path / "model")
    one = Seq2SeqGenerator(tmp_path / "model", max_new_tokens=40)
    assert one.predict(X[:4]).tolist() == Y[:4]
    assert not hasattr(one, "history_")
    assert one.predict_n_best(["le chat dort"], 1)[0][0]["text"] == "the cat sleeps"
    one.set_params(model=str(tiny_checkpoint("bart")))  # another checkpoint, another text
    assert one.predict(X[:1]).tolist() == generator("bart").predict(X[:1]).tolist()
    again = Seq2SeqGenerator.from_pretrained(tmp_path / "model", max_new_tokens=40)
    assert again.predict(X[:4]).tolist() == Y[:4]


@pytest.mark.parametrize("name", NAMES)
def test_it_is_stored_with_tied_weights_and_without_paths(name, tmp_path):
    folder = shutil.copytree(tiny_checkpoint(name), tmp_path / "copy")
    one = Seq2SeqGenerator(str(folder), max_epochs=20, learning_rate=1e-2, random_state=0).fit(X, Y)
    file = io.BytesIO()
    joblib.dump(one, file)
    shutil.rmtree(folder)
    file.seek(0)
    stored = joblib.load(file)
    assert stored.predict(NEW).tolist() == one.predict(NEW).tolist()
    assert stored.model_.generation_config.eos_token_id == one.model_.generation_config.eos_token_id
    weights = sum(p.numel() * p.element_size() for p in one.model_.parameters())
    assert len(file.getvalue()) < 1.1 * weights + 900_000  # the tokenizer
    more = stored.set_params(warm_start=True, max_epochs=1).fit(X, Y)
    assert len(more.history_) == 21


def test_prefixes_of_any_characters():
    odd = generator("t5", prefix="\ud800\x00 ", target_prefix="\ud83d\ude00 ").predict(["le chat"])
    written = generator("t5", prefix="\ufffd\x00 ", target_prefix="\U0001f600 ").predict(["le chat"])
    assert odd.tolist() == written.tolist()


# -- what can't be done --------------------------------------------------------------------------------------------


def test_what_is_refused():
    one = generator("t5")
    with pytest.raises(ValueError, match="X must hold one text a row, got pairs"):
        one.fit([("a", "b"), ("c", "d")], ["e", "f"])
    with pytest.raises(ValueError, match="y must hold one text a row, got pairs"):
        one.fit(["a", "b"], [("c", "d"), ("e", "f")])
    with pytest.raises(ValueError, match="y is None"):
        one.fit(X, None)
    with pytest.raises(ValueError, match=r"y has missing|y\\[1\\]|missing"):
        one.fit(["a", "b"], ["c", None])
    with pytest.raises(TypeError, match="y must be an iterable of texts"):
        one.fit(["a"], "c")
    with pytest.raises(ValueError, match="inconsistent numbers"):
        one.fit(X, Y[:3])
    with pytest.raises(ValueError, match="truncation='chunk'"):
        one.set_params(truncation="chunk").fit(X, Y)
    with pytest.raises(ValueError, match="num_beams=100000 is more than the"):
        generator("t5", num_beams=100_000).predict(["le"])
    with pytest.raises(TypeError, match="prefix must be str"):
        generator("t5", prefix=None).fit(X, Y)
    with pytest.raises(ValueError, match="an option of sampling"):
        generator("t5", top_p=0.5).fit(X, Y)
    with pytest.raises(ValueError, match='beam_stopping must be True, False or "never", got None'):
        generator("t5", beam_stopping=None).predict(["le"])
    with pytest.raises(ValueError, match=r"freeze='all' leaves nothing to train: .* 't5' model"):
        generator("t5", freeze="all").fit(X, Y)


@pytest.mark.parametrize(
    ("model", "right"),
    [
        (str(tiny_checkpoint("camembert")), "TransformerClassifier"),
        (str(tiny_checkpoint("gpt2")), "CausalLMGenerator"),
        (TransformerConfig(), r'TransformerClassifier.*TransformerConfig\(architecture="encoder-decoder"\)'),
        (TransformerConfig(architecture="decoder"), "CausalLMGenerator"),
    ],
)
def test_a_model_of_another_kind_names_the_right_estimator(model, right):
    one = Seq2SeqGenerator(model)
    with pytest.raises(WrongTaskError, match=right):
        one.fit(X, Y)
    with pytest.raises(WrongTaskError if isinstance(model, str) else NotFittedError):
        one.predict(X)


def test_a_frame_and_nothing_printed(capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = generator("t5").fit(pd.DataFrame({"text": X}), pd.Series(Y, index=range(12, 0, -1)))
        one.predict(pd.Series(NEW))
    assert capfd.readouterr() == ("", "")
    assert one.feature_names_in_.tolist() == ["text"]
