"""Languages of models that know several: beside the source, before the target, in the loss and in what is written."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
import torch
from transformers import (
    M2M100Config,
    M2M100ForConditionalGeneration,
    MBartConfig,
    MBartForConditionalGeneration,
    MBartTokenizer,
    NllbTokenizer,
)

from sktransformer import Seq2SeqGenerator
from sktransformer._engine.checkpoints.quiet import quiet_transformers
from sktransformer.tasks._generating.languages import check_languages, words_before
from sktransformer.testing import tiny_checkpoint

X = ["le chat", "le chien noir", "où"]
Y = ["the cat", "the black dog", "where"]
LETTERS = "▁abcdefghijklmnopqrstuvwxyzù"
HALVES = {
    f"{half}_{what}": n
    for half in ("encoder", "decoder")
    for what, n in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 32))
}
CODES = {"nllb": ("fra_Latn", "eng_Latn", "deu_Latn"), "mbart": ("fr_XX", "en_XX", "de_DE")}


@pytest.fixture(scope="module", params=["nllb", "mbart"])
def folder(request, tmp_path_factory):
    """A tiny model of several languages, with the tokenizer of its family."""
    place = tmp_path_factory.mktemp("languages") / request.param
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    with quiet_transformers():
        torch.manual_seed(0)
        if request.param == "nllb":
            tokenizer = NllbTokenizer(
                vocab={piece: i for i, piece in enumerate([*special, *LETTERS])}, merges=[]
            )
            kind, config = M2M100ForConditionalGeneration, M2M100Config
        else:
            codes = MBartTokenizer().lang_code_to_id
            pieces = [*special, *LETTERS, *codes, "<mask>"]
            tokenizer = MBartTokenizer(vocab=[(piece, -1.0) for piece in pieces])
            kind, config = MBartForConditionalGeneration, MBartConfig
        model = kind(
            config(
                vocab_size=len(tokenizer),
                d_model=16,
                max_position_embeddings=64,
                decoder_start_token_id=2,
                **HALVES,
            )
        )
        model.save_pretrained(place)
        tokenizer.save_pretrained(place)
    return place


def generator(folder, **parameters) -> Seq2SeqGenerator:
    settings = {
        "num_beams": 1,
        "max_new_tokens": 6,
        "precision": "float32",
        "random_state": 0,
        "max_epochs": 1,
    }
    return Seq2SeqGenerator(folder, **{**settings, **parameters})


def test_a_language_stands_beside_the_source_and_begins_the_target(folder, tmp_path):
    source, target, other = CODES[folder.name]
    one = generator(folder, source_language=source, target_language=target)
    written = one.predict_n_best(X, 1)
    tokenizer, model = one.tokenizer_, one.model_
    code = tokenizer.convert_tokens_to_ids(target)
    assert tokenizer.convert_tokens_to_ids(source) in tokenizer(X[0])["input_ids"]
    for text, found in zip(X, written, strict=True):
        begins = {"decoder_start_token_id": code} if folder.name == "mbart" else {"forced_bos_token_id": code}
        output = model.generate(
            **tokenizer(text, return_tensors="pt"), max_new_tokens=6, do_sample=False, **begins
        )
        assert code in output[0].tolist()
        assert found[0]["text"] == tokenizer.decode(output[0], skip_special_tokens=True)
    assert [found[0]["score"] for found in written] != [
        found[0]["score"] for found in one.set_params(target_language=other).predict_n_best(X, 1)
    ]
    joblib.dump(one, tmp_path / "one.joblib")
    again = joblib.load(tmp_path / "one.joblib")
    assert again.predict_n_best(X, 1) == one.predict_n_best(X, 1)


def test_the_language_has_no_share_in_the_loss(folder):
    source, target, _ = CODES[folder.name]
    languages = {"source_language": source, "target_language": target}
    one = generator(folder, learning_rate=0, dropout=0.0, attention_dropout=0.0, **languages).fit(X, Y)
    tokenizer, total, n_tokens = one.tokenizer_, 0.0, 0
    code = tokenizer.convert_tokens_to_ids(target)
    begin = [code] if folder.name == "mbart" else [2, code]
    for text, wanted in zip(X, Y, strict=True):
        ids = [*tokenizer(wanted, add_special_tokens=False)["input_ids"], 2]
        with torch.no_grad():
            logits = one.model_(
                **tokenizer(text, return_tensors="pt"), decoder_input_ids=torch.tensor([[*begin, *ids[:-1]]])
            ).logits[0, len(begin) - 1 :]
        total += float(torch.nn.functional.cross_entropy(logits, torch.tensor(ids), reduction="sum"))
        n_tokens += len(ids)
    assert one.history_["train_loss"].iloc[0] == pytest.approx(total / n_tokens, abs=1e-5)


def test_unknown_languages_are_refused_with_the_nearest(folder):
    source, target, _ = CODES[folder.name]
    with pytest.raises(
        ValueError, match=f"target_language='{target[:-1]}' is none of.*Did you mean '{target}'"
    ):
        generator(folder, source_language=source, target_language=target[:-1]).predict(X)
    with pytest.raises(TypeError, match="source_language must be str or None"):
        generator(folder, source_language=3).predict(X)


def test_models_of_one_pair_are_told_nothing():
    for name in ("bart", "marian"):
        with pytest.raises(ValueError, match=r"models of one pair of languages are told none"):
            generator(str(tiny_checkpoint(name)), target_language="fra").predict(X)


def test_a_sentence_for_t5():
    told = generator(str(tiny_checkpoint("t5")), source_language="English", target_language="French")
    by_hand = generator(str(tiny_checkpoint("t5")), prefix="translate English to French: ")
    assert np.array_equal(told.predict(X), by_hand.predict(X))
    assert told.predict_n_best(X, 1) != generator(str(tiny_checkpoint("t5"))).predict_n_best(X, 1)
    with pytest.raises(ValueError, match="pass both or none"):
        told.set_params(source_language=None).predict(X)


class SeveralTargets:
    """What Marian's tokenizer says of a model with several targets."""

    supported_language_codes = (">>fra<<", ">>ita<<")


def test_a_mark_for_marian():
    tokenizer = SeveralTargets()
    check_languages(None, tokenizer, None, "fra")
    assert words_before(None, tokenizer, None, "fra") == ">>fra<< "
    assert words_before(None, tokenizer, None, None) == ""
    with pytest.raises(ValueError, match="target_language='fr' is none of the model's languages: fra, ita"):
        check_languages(None, tokenizer, None, "fr")
    with pytest.raises(ValueError, match="find out themselves"):
        check_languages(None, tokenizer, "eng", "fra")
