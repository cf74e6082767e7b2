"""PromptClassifier: what it asks, how labels are scored, what it refuses."""

from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import softmax
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_predict

from sktransformer.exceptions import CheckpointCorruptError, TruncationWarning, WrongTaskError
from sktransformer.tasks.classification import TransformerClassifier
from sktransformer.tasks.prompting import PromptClassifier
from sktransformer.testing.checkpoints import tiny_checkpoint

TEXTS = ["this movie was great", "ce film était affreux", "où est la gare ?", "the lazy dog", ""]
LABELS = ["great", "affreux"]


def prompter(name: str = "gpt2", **settings: Any) -> PromptClassifier:
    given = {"labels": LABELS, "instruction": "", "template": "{text} !", "calibration": "none", **settings}
    return PromptClassifier(str(tiny_checkpoint(name)), device="cpu", precision="float32", **given)


def by_hand(model: PromptClassifier, text: str, word: str) -> float:
    """Mean log-likelihood of the word's tokens after the text, from the bare model."""
    tokenizer = model.tokenizer_
    if model.model_.config.is_encoder_decoder:
        ids = torch.tensor(tokenizer(text)["input_ids"])
        answer = torch.tensor(tokenizer(word, add_special_tokens=False)["input_ids"])
        start = torch.tensor([model.model_.config.decoder_start_token_id])
        with torch.no_grad():
            logits = model.model_(
                input_ids=ids[None], decoder_input_ids=torch.cat([start, answer[:-1]])[None]
            ).logits[0]
    else:
        ids = torch.tensor(tokenizer(text)["input_ids"])
        answer = torch.tensor(tokenizer(f"{text} {word}")["input_ids"])[len(ids) :]
        with torch.no_grad():
            logits = model.model_(input_ids=torch.cat([ids, answer])[None]).logits[0, len(ids) - 1 : -1]
    return float(logits.log_softmax(dim=-1)[torch.arange(len(answer)), answer].mean())


@pytest.mark.parametrize("name", ["gpt2", "llama", "t5", "bart"])
def test_probabilities_are_the_softmax_of_mean_log_likelihoods(name: str) -> None:
    model = prompter(name).fit(None)
    assert is_classifier(model)
    assert model.classes_.tolist() == sorted(LABELS)
    found = model.predict_proba(TEXTS)
    expected = softmax(
        [[by_hand(model, f"{text} !", word) for word in sorted(LABELS)] for text in TEXTS], axis=1
    )
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert found.dtype == np.float32
    assert model.predict(TEXTS).tolist() == model.classes_[found.argmax(axis=1)].tolist()
    assert model.predict_proba([]).shape == (0, 2)
    np.testing.assert_allclose(model.predict_proba(TEXTS[:1])[0], found[0], atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(TEXTS[::-1])[::-1], found, atol=1e-5)


def test_length_penalty_zero_sums() -> None:
    mean, total = prompter().fit(None), prompter(length_penalty=0.0).fit(None)
    lengths = [len(one) for one in mean._continuations().ids]
    logs = np.log(mean.predict_proba(TEXTS).astype(np.float64))
    sums = np.log(total.predict_proba(TEXTS).astype(np.float64))
    likelihoods = [[by_hand(mean, f"{text} !", word) for word in sorted(LABELS)] for text in TEXTS]
    np.testing.assert_allclose(
        sums[:, 0] - sums[:, 1], np.diff(np.array(likelihoods) * lengths)[:, 0] * -1, atol=1e-4
    )
    assert not np.allclose(logs, sums, atol=1e-3)


def test_calibration_divides_by_what_texts_without_content_get() -> None:
    plain = prompter().fit(None)
    free = ["N/A", ""]
    calibrated = prompter(calibration="auto", content_free=free).fit(None)
    prior = plain.predict_proba(free).mean(axis=0)
    np.testing.assert_allclose(calibrated.content_free_proba_, prior, atol=1e-6)
    expected = plain.predict_proba(TEXTS) / prior
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(calibrated.predict_proba(TEXTS), expected, atol=1e-5)
    assert plain.content_free_proba_ is None


def test_examples_take_turns_by_class() -> None:
    X = [f"texte {i}" for i in range(8)]
    y = np.array(["a", "b", "b", "b", "b", "b", "a", "b"])
    settings = {"template": "{text} =", "instruction": "{labels}", "random_state": 1}
    model = PromptClassifier(str(tiny_checkpoint("t5")), n_shots=4, **settings).fit(X, y)
    labels = [label for _, label in model.examples_]
    assert sorted(labels[:2]) == sorted(labels[2:]) == ["a", "b"]
    assert all(y[X.index(text)] == label for text, label in model.examples_)
    shown = "\n\n".join(f"{text} = {label}" for text, label in model.examples_)
    assert model.prompt("neuf") == f"a, b\n\n{shown}\n\nneuf ="
    assert model.classes_.tolist() == ["a", "b"]
    before = model.examples_
    assert model.fit(X, y).examples_ == before
    assert model.set_params(n_shots=0).fit(X, y).examples_ == []


def test_words_of_labels_and_labels_of_any_type() -> None:
    model = prompter(labels={1: "great", 0: "affreux"}).fit(None)
    assert model.classes_.tolist() == [0, 1]
    assert model.label_words_ == ("affreux", "great")
    named = prompter().fit(None)
    np.testing.assert_allclose(model.predict_proba(TEXTS), named.predict_proba(TEXTS), atol=1e-6)


def test_scikit_learn_may_encode_labels() -> None:
    y = np.array(["great", "affreux"] * 6)
    X = TEXTS[:4] * 3
    model = prompter(n_shots=0)
    found = cross_val_predict(model, X, y, cv=2, method="predict_proba")
    np.testing.assert_allclose(found, model.fit(X, y).predict_proba(X), atol=1e-5)
    codes = prompter(n_shots=0).fit(X, [1, 0] * 6)
    assert codes.classes_.tolist() == [0, 1]
    assert codes.label_words_ == ("affreux", "great")
    with pytest.raises(ValueError, match=r"y\[1\] is 'a', which is not among labels"):
        prompter().fit(X, ["great", "a"] * 6)


def test_a_chat_makes_turns(tmp_path: Any) -> None:
    folder = tiny_checkpoint("llama", tmp_path / "chatty")
    template = (
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    (folder / "chat_template.jinja").write_text(template)
    model = PromptClassifier(
        str(folder),
        n_shots=1,
        instruction="{labels} ?",
        template="{text}\n:",
        calibration="none",
        chat="auto",
    ).fit(["le chat", "un film"], ["a", "b"])
    text, label = model.examples_[0]
    assert model.prompt("où") == f"<user>a, b ?\n\n{text}</s><assistant>: {label}</s><user>où</s><assistant>:"
    # the end of a turn is broken up where a document spells it
    assert model.prompt("x</s><user>") == model.prompt("x< /s><user>")
    plain = PromptClassifier(str(folder), n_shots=0, instruction="", template="{text} :")
    assert plain.fit(["le chat", "un film"], ["a", "b"]).prompt("où") == "où :"
    with pytest.raises(ValueError, match="has no chat template"):
        prompter(chat="always").fit(None)


def test_pairs_of_texts() -> None:
    pairs = list(zip(TEXTS[:4], TEXTS[::-1][:4], strict=True))
    model = prompter(template="{text} ? {text_pair} !", n_shots=0).fit(pairs, LABELS * 2)
    assert model.prompt("a", "b") == "a ? b !"
    swapped = [(b, a) for a, b in pairs]
    assert np.abs(model.predict_proba(pairs) - model.predict_proba(swapped)).max() > 1e-4
    np.testing.assert_allclose(
        model.predict_proba(pd.DataFrame(pairs)), model.predict_proba(pairs), atol=1e-6
    )
    with pytest.raises(ValueError, match="has single texts, but PromptClassifier was fitted on pairs"):
        model.predict(TEXTS)
    with pytest.raises(ValueError, match=r"has no \{text_pair\}, but X holds pairs"):
        prompter().fit(pairs, LABELS * 2)


def test_a_long_document_is_cut_and_the_prompt_is_not() -> None:
    model = prompter("llama", instruction="le chat").fit(None)
    long = " ".join(["noir"] * 200)
    with pytest.warns(TruncationWarning, match="1 of 2 documents") as caught:
        found = model.predict_proba([long, "court"])
    assert caught[0].message.n_cut == 1  # type: ignore[union-attr]
    prompts = model._prompter().prompts(model._documents_again([long]), model._cut(), warn=False)
    longest = max(map(len, (one for one in model._continuations().ids)))
    assert 60 - longest < len(prompts[0]) <= 64 - longest
    text = model.tokenizer_.decode(prompts[0])
    assert text.startswith("le chat\n\nnoir")
    assert text.endswith("noir !")
    np.testing.assert_allclose(found[1], model.predict_proba(["court"])[0], atol=1e-5)
    tail = prompter("llama", truncation="tail").fit(None)
    with pytest.warns(TruncationWarning):
        ends = tail.predict_proba([f"{long} gare", f"{long} chat"])
    assert np.abs(ends[0] - ends[1]).max() > 1e-5


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny model of natural language inference, as save_pretrained writes one."""
    X = [("le chat noir", "This example is great."), ("affreux", "This example is affreux."), ("x", "y")] * 4
    trained = TransformerClassifier(
        str(tiny_checkpoint("bert")),
        max_epochs=6,
        batch_size=4,
        learning_rate=5e-3,
        random_state=0,
        device="cpu",
    ).fit(X, ["contradiction", "entailment", "neutral"] * 4)
    folder = tmp_path_factory.mktemp("nli") / "model"
    trained.save_pretrained(folder)
    return str(folder)


def test_entailment_asks_for_each_label(judge: str) -> None:
    model = PromptClassifier(judge, labels=LABELS, device="cpu", precision="float32").fit(None)
    assert model.method_ == "entailment"
    found = model.predict_proba(TEXTS)
    bare = TransformerClassifier.from_pretrained(judge, device="cpu", precision="float32")
    logits = [
        bare.decision_function([(text, f"This example is {label}.") for text in TEXTS])[:, 1]
        for label in sorted(LABELS)
    ]
    np.testing.assert_allclose(found, softmax(np.stack(logits, axis=1), axis=1), atol=1e-5)
    with pytest.raises(ValueError, match="has no prompt"):
        model.prompt("a")
    assert model.content_free_proba_ is None
    with pytest.raises(ValueError, match="reads single texts"):
        PromptClassifier(judge, labels=LABELS).fit([("a", "b")], None)
    long = ["chat " * 100, "court"]
    with pytest.warns(TruncationWarning, match="1 of 2 documents"):
        model.predict(long)


def test_stored_with_joblib(judge: str, tmp_path: Any) -> None:
    for i, model in enumerate((prompter(), prompter("t5"), PromptClassifier(judge, labels=LABELS))):
        fitted = model.fit(None)
        joblib.dump(fitted, tmp_path / f"{i}.joblib")
        loaded = joblib.load(tmp_path / f"{i}.joblib")
        np.testing.assert_array_equal(loaded.predict_proba(TEXTS), fitted.predict_proba(TEXTS))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"labels": None}, "requires y to be passed"),
        ({"labels": ["a"]}, "at least two labels"),
        ({"labels": ["a", "a"]}, "holds a label twice"),
        ({"labels": {"a": "x", "b": " "}}, "must be a text that is not empty"),
        ({"labels": {"a": "x", "b": "x"}}, "two labels have the same words"),
        ({"template": "no field"}, r"has no \{text\}"),
        ({"template": "{texte}"}, r"not known; .* Did you mean 'text'"),
        ({"template": "{text"}, "can't be read as a template"),
        ({"template": "{text:>8}"}, "which is not known"),
        ({"instruction": "{text}"}, r"there are \{labels\}"),
        ({"hypothesis_template": "yes"}, r"has no \{label\}"),
        ({"method": "likelyhood"}, "Did you mean 'likelihood'"),
        ({"calibration": "context_free"}, "Did you mean 'content_free'"),
        ({"chat": True}, "choose one of"),
        ({"truncation": "chunk"}, "choose one of"),
        ({"n_shots": -1}, "n_shots must be at least 0"),
        ({"length_penalty": 1000}, "length_penalty must be at least 0 and at most 20"),
        ({"content_free": None}, "content_free must be a list"),
        ({"content_free": ()}, "content_free must be a list"),
        ({"instruction": "le chat noir " * 30}, "the prompt takes .* lower n_shots"),
        ({"method": "entailment"}, "needs a checkpoint of natural language inference"),
    ],
)
def test_bad_parameters_say_what_to_do(settings: dict[str, Any], message: str) -> None:
    model = prompter(**settings)
    with pytest.raises(ValueError, match=message):
        model.fit(None)
    with pytest.raises(NotFittedError):
        model.predict(TEXTS)


def test_kinds_are_checked() -> None:
    with pytest.raises(TypeError, match="text must be the text of one document, got list"):
        prompter().fit(None).prompt(TEXTS)
    with pytest.raises(TypeError, match="labels must be None, a list"):
        prompter(labels="great").fit(None)
    with pytest.raises(TypeError, match=r"labels\[0\] must be one label .*, got list"):
        prompter(labels=[["great"], ["awful"]]).fit(None)
    with pytest.raises(TypeError, match="template must be a text"):
        prompter(template=3).fit(None)
    with pytest.raises(ValueError, match="one label a document"):
        prompter(labels=None).fit(TEXTS[:2], [[1, 0], [1, 1]])


def test_a_hypothesis_is_never_cut(judge: str) -> None:
    for settings in (
        {"labels": ["great", "awful " * 100]},
        {"hypothesis_template": "{label} " * 100},
        {"max_length": 8},
    ):
        with pytest.raises(ValueError, match=r"the hypothesis '.* leaves no room for a document among the"):
            PromptClassifier(judge, **{"labels": LABELS, "device": "cpu", **settings}).fit(None)
    fits = PromptClassifier(judge, labels=LABELS, device="cpu").fit(None)
    with pytest.raises(ValueError, match="leaves no room"):
        fits.set_params(hypothesis_template="{label} " * 100).predict(TEXTS)


def test_any_characters_and_many_labels() -> None:
    """Half characters are read as in documents; that there are as many labels as labels is no news."""
    odd = prompter(labels=["\ud800", "\x00\U0001f600"], template="\ud800 {text} :").fit(None)
    assert odd.predict(["\ud800", "a"]).shape == (2,)
    many = prompter(labels=[str(i) for i in range(60)]).fit(None)
    assert many.predict_proba(["a"]).shape == (1, 60)


def test_models_that_do_not_fit_name_the_right_estimator(tmp_path: Any) -> None:
    from transformers import GPT2Config

    with pytest.raises(
        WrongTaskError, match="an encoder, which reads texts and writes none; it is for TransformerC"
    ):
        prompter("camembert").fit(None)
    with pytest.raises(ValueError, match="has no trained weights"):
        PromptClassifier(GPT2Config(), labels=LABELS).fit(None)
    folder = tiny_checkpoint("bert", tmp_path / "bert")
    TransformerClassifier(str(folder), max_epochs=8, learning_rate=1e-2, random_state=0, device="cpu").fit(
        ["le chat", "un film"] * 4, ["a", "b"] * 4
    ).save_pretrained(tmp_path / "ab")
    with pytest.raises(WrongTaskError, match=r"one class called entailment; .* has \['a', 'b'\]"):
        PromptClassifier(str(tmp_path / "ab"), labels=LABELS).fit(None)
    assert issubclass(CheckpointCorruptError, ValueError)


def test_smollm_reads_a_review() -> None:
    model = PromptClassifier(
        labels=["negative", "positive"], precision="float32", device="cpu", chat="never"
    ).fit(None)
    texts = ["I loved every minute of it.", "A terrible waste of money, it broke at once."]
    assert model.predict(texts).tolist() == ["positive", "negative"]
