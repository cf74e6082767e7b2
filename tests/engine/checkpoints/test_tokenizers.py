"""Tokenizers learned from texts: deterministic, shaped like the family's, with a configuration that fits."""

import copy
import json
import os
import subprocess
import sys
import time
import warnings

import pytest
import torch
import transformers
from transformers import AutoModel, AutoTokenizer

from sktransformer._engine.checkpoints.tokenizers import tokenizer_for_config, train_tokenizer
from sktransformer._engine.checkpoints.vocabularies import KINDS
from sktransformer.testing.checkpoints import SENTENCES

TEXTS = [
    *SENTENCES,
    "Bonjour, je n'ai pas reçu ma commande n° 4521 ; où est-elle ?",
    "Ma facture de mars compte 12,50 € de trop, merci de corriger la facture.",
    "La livraison était prévue hier, le livreur n'est pas venu. Où est la livraison ?",
    "Je souhaite résilier mon abonnement ; la résiliation prend combien de jours ?",
] * 3
TEXT = "Où est l'été ? Ça coûte 12 €, Zoé."
WIDTH = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


def _train(kind, **keywords):
    return train_tokenizer(TEXTS, **{"kind": kind, "vocab_size": 400, "max_length": 64, **keywords})


# Training


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_texts_give_the_same_tokenizer(kind):
    states = {_train(kind).backend_tokenizer.to_str() for _ in range(4)}
    assert len(states) == 1


def test_the_same_in_another_process_with_another_hash_seed():
    code = (
        "import hashlib, json, sys\n"
        "from sktransformer._engine.checkpoints.tokenizers import train_tokenizer\n"
        "texts = json.loads(sys.stdin.read())\n"
        "for kind in ('wordpiece', 'bpe', 'byte_bpe', 'unigram'):\n"
        "    t = train_tokenizer(texts, kind=kind, vocab_size=400, max_length=64)\n"
        "    print(hashlib.sha256(t.backend_tokenizer.to_str().encode()).hexdigest())\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            input=json.dumps(TEXTS),
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert len(outputs.pop().split()) == 4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("vocab_size", [300, 400])
def test_vocabulary_size_is_a_limit(kind, vocab_size):
    tokenizer = _train(kind, vocab_size=vocab_size)
    assert len(tokenizer) <= vocab_size
    assert sorted(tokenizer.get_vocab().values()) == list(range(len(tokenizer)))


@pytest.mark.parametrize("kind", KINDS)
def test_frequent_words_become_pieces(kind):
    bare = {piece.strip("▁Ġ") for piece in _train(kind, vocab_size=500).get_vocab()}
    assert {"facture", "livraison"} <= bare


def test_byte_level_text_comes_back_whole():
    tokenizer = _train("byte_bpe")
    text = "  Été 😀\u200b\n\n日本 \x00 e\u0301 fin  "
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids) == text
    assert tokenizer.unk_token_id not in ids


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram"])
def test_unseen_characters_are_unknown(kind):
    tokenizer = _train(kind)
    assert tokenizer.unk_token_id in tokenizer("日")["input_ids"]
    assert tokenizer.unk_token_id not in tokenizer("la facture")["input_ids"]


def test_word_pieces_continue_words():
    tokenizer = _train("wordpiece", vocab_size=200)
    pieces = tokenizer.tokenize("factures")
    assert not pieces[0].startswith("##")
    assert all(piece.startswith("##") for piece in pieces[1:])
    assert "".join(piece.removeprefix("##") for piece in pieces) == "factures"


def test_unigram_segments_by_probability():
    tokenizer = _train("unigram", vocab_size=500)
    assert tokenizer.tokenize("la facture") == ["▁la", "▁facture"]
    assert "".join(tokenizer.tokenize("défacture")).replace("▁", "") == "défacture"


@pytest.mark.parametrize("kind", KINDS)
def test_case_and_accents_are_kept_unless_asked(kind):
    cased = _train(kind, vocab_size=500)
    assert cased("Été")["input_ids"] != cased("été")["input_ids"]
    folded = _train(kind, vocab_size=500, lowercase=True)
    assert folded("ÉTÉ")["input_ids"] == folded("été")["input_ids"]
    assert folded("été")["input_ids"] != folded("ete")["input_ids"]


@pytest.mark.parametrize("kind", KINDS)
def test_offsets_hold_the_words_without_blanks(kind):
    text = "la facture  de mars"
    encoded = _train(kind, vocab_size=500)(text, return_offsets_mapping=True, add_special_tokens=False)
    spans = [text[a:b] for a, b in encoded["offset_mapping"]]
    assert "".join(spans).replace(" ", "") == "lafacturedemars"
    assert all(span == span.strip() for span in spans)


@pytest.mark.parametrize("kind", KINDS)
def test_many_characters_leave_the_vocabulary_within_its_limit(kind):
    texts = ["".join(map(chr, range(0x4E00 + 40 * i, 0x4E00 + 40 * i + 40))) for i in range(60)]
    tokenizer = train_tokenizer(texts, kind=kind, vocab_size=300, max_length=64)
    assert len(tokenizer) <= 300
    tokenizer("\u4e00\u4e01")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("character", ["x", "\n", " ", "\u3000"])
def test_a_run_of_a_megabyte_is_learned_from_in_seconds(kind, character):
    start = time.perf_counter()
    tokenizer = train_tokenizer(
        ["x" + character * 1_000_000, "=" * 5000], kind=kind, vocab_size=400, max_length=64
    )
    assert time.perf_counter() - start < 10
    assert max(map(len, tokenizer.get_vocab())) <= 32  # a run of one character makes no endless pieces


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("texts", [[""], ["   \n"], ["\x00"], ["\ud800 lone surrogate"], ["a"]])
def test_poor_texts_train_too(kind, texts):
    tokenizer = train_tokenizer(texts, kind=kind, vocab_size=300, max_length=64)
    assert len(tokenizer("bonjour")["input_ids"]) > 2


def test_a_generator_is_read_once():
    ids = train_tokenizer((text for text in TEXTS), kind="unigram", vocab_size=300, max_length=64)(TEXT)
    assert ids == _train("unigram", vocab_size=300)(TEXT)


def test_nothing_is_printed_warned_or_set(capfd):
    before = dict(os.environ)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in KINDS:
            _train(kind)
        done = os.fork()
        if done == 0:  # a process that used threads forks: some versions of the library warn in the child
            os._exit(0)
        os.waitpid(done, 0)
    assert capfd.readouterr() == ("", "")
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"texts": "one text"}, TypeError, "wrap it in a list"),
        ({"texts": ["a", None]}, TypeError, r"texts\[1\] must be str, got NoneType"),
        ({"texts": []}, ValueError, "there are none"),
        ({"kind": "wordpeice"}, ValueError, r"Did you mean 'wordpiece'\?"),
        ({"style": "brt"}, ValueError, r"Did you mean 'bert'\?"),
        ({"vocab_size": 260}, ValueError, "vocab_size must be at least 261"),
        ({"kind": "unigram", "vocab_size": 6}, ValueError, "vocab_size must be at least 7"),
    ],
)
def test_wrong_arguments(keywords, error, message):
    arguments = {"texts": TEXTS, "kind": "byte_bpe", "vocab_size": 400, "max_length": 64, **keywords}
    with pytest.raises(error, match=message):
        train_tokenizer(arguments.pop("texts"), **arguments)


# Special tokens


@pytest.mark.parametrize(
    ("style", "single", "pair"),
    [
        ("bert", "[CLS] a [SEP]", "[CLS] a [SEP] b [SEP]"),
        ("roberta", "<s> a </s>", "<s> a </s> </s> b </s>"),
        ("t5", "a </s>", "a </s> b </s>"),
        ("causal", "<s> a", "<s> a b"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_stand_where_the_family_has_them(kind, style, single, pair):
    tokenizer = _train(kind, style=style)

    def shown(*texts):
        tokens = tokenizer.convert_ids_to_tokens(tokenizer(*texts)["input_ids"])
        return " ".join(token.strip("▁Ġ") for token in tokens if token.strip("▁Ġ"))

    assert shown("a") == single
    assert shown("a", "b") == pair
    assert tokenizer.model_max_length == 64
    assert tokenizer.padding_side == ("left" if style == "causal" else "right")


def test_segment_ids_tell_the_texts_of_a_pair_apart():
    assert _train("wordpiece")("a", "b")["token_type_ids"] == [0, 0, 0, 1, 1]
    assert "token_type_ids" not in _train("wordpiece", token_types=False)("a", "b")
    assert "token_type_ids" not in _train("byte_bpe")("a", "b")


def test_sentinels_of_t5_count_down():
    tokenizer = _train("unigram", style="t5")
    ids = tokenizer.convert_tokens_to_ids(["<extra_id_0>", "<extra_id_99>"])
    assert ids == [len(tokenizer) - 1, len(tokenizer) - 100]


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_tokenizer_comes_back_the_same(kind, tmp_path):
    tokenizer = _train(kind)
    tokenizer.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert again(TEXT, "b") == tokenizer(TEXT, "b")
    assert again.model_max_length == 64


# For a configuration


def _config(name, **keywords):
    return getattr(transformers, f"{name}Config")(**keywords)


SEQ2SEQ = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
           "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}  # fmt: skip
CONFIGS = {
    "bert": lambda: _config("Bert", **WIDTH),
    "distilbert": lambda: _config("DistilBert", dim=32, n_layers=1, n_heads=2, hidden_dim=32),
    "electra": lambda: _config("Electra", embedding_size=16, **WIDTH),
    "albert": lambda: _config("Albert", embedding_size=16, **WIDTH),
    "roberta": lambda: _config("Roberta", **WIDTH),
    "camembert": lambda: _config("Camembert", **WIDTH),
    "xlm-roberta": lambda: _config("XLMRoberta", **WIDTH),
    "flaubert": lambda: _config("Flaubert", emb_dim=32, n_layers=1, n_heads=2),
    "modernbert": lambda: _config("ModernBert", **WIDTH),
    "deberta-v2": lambda: _config("DebertaV2", **WIDTH),
    "mpnet": lambda: _config("MPNet", **WIDTH),
    "t5": lambda: _config("T5", d_model=32, d_kv=16, d_ff=32, num_layers=1, num_heads=2),
    "bart": lambda: _config("Bart", **SEQ2SEQ),
    "marian": lambda: _config("Marian", **SEQ2SEQ),
    "gpt2": lambda: _config("GPT2", n_embd=32, n_layer=1, n_head=2),
    "llama": lambda: _config("Llama", num_key_value_heads=2, **WIDTH),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_model_built_from_the_fitted_configuration_reads_full_windows(name):
    config = CONFIGS[name]()
    before = copy.deepcopy(config.to_dict())
    tokenizer, fitted = tokenizer_for_config(config, TEXTS, max_length=512)
    assert config.to_dict() == before
    assert type(fitted) is type(config)
    assert fitted is not config
    assert fitted.vocab_size == len(tokenizer)
    assert fitted.pad_token_id == tokenizer.pad_token_id

    model = AutoModel.from_config(fitted).eval()
    long = tokenizer("la facture de mars " * 300, truncation=True, return_tensors="pt")
    assert long["input_ids"].shape == (1, 512)
    batch = tokenizer([TEXT, "la facture"], padding=True, return_tensors="pt")
    for inputs in (long, batch):
        if config.is_encoder_decoder:
            inputs["decoder_input_ids"] = inputs["input_ids"]
        with torch.inference_mode():
            assert torch.isfinite(model(**inputs)[0]).all()


SIGNS = {  # how pieces of a kind begin
    **dict.fromkeys(("bert", "distilbert", "electra"), "##"),
    **dict.fromkeys(("camembert", "xlm-roberta", "t5", "albert"), "▁"),
    **dict.fromkeys(("roberta", "bart", "gpt2", "modernbert", "llama", "flaubert", "marian"), "Ġ"),
}


@pytest.mark.parametrize(("name", "sign"), SIGNS.items())
def test_the_kind_follows_the_model_type(name, sign):
    tokenizer, _ = tokenizer_for_config(CONFIGS[name](), TEXTS, max_length=64)
    assert any(piece.startswith(sign) and len(piece) > len(sign) for piece in tokenizer.get_vocab())


def test_ids_follow_the_tokenizer():
    bert, config = tokenizer_for_config(CONFIGS["bert"](), TEXTS, max_length=64)
    assert config.pad_token_id == bert.pad_token_id == 0
    assert config.bos_token_id is None  # as it was

    modern, config = tokenizer_for_config(CONFIGS["modernbert"](), TEXTS, max_length=64)
    assert (config.cls_token_id, config.sep_token_id) == (modern.cls_token_id, modern.sep_token_id)
    assert (config.bos_token_id, config.eos_token_id) == (modern.cls_token_id, modern.sep_token_id)

    flaubert, config = tokenizer_for_config(CONFIGS["flaubert"](), TEXTS, max_length=64)
    assert (config.pad_index, config.bos_index) == (flaubert.pad_token_id, flaubert.bos_token_id)
    assert (config.eos_index, config.unk_index) == (flaubert.eos_token_id, flaubert.unk_token_id)
    assert config.mask_index == flaubert.mask_token_id

    gpt2, config = tokenizer_for_config(CONFIGS["gpt2"](), TEXTS, max_length=64)
    assert (config.bos_token_id, config.eos_token_id) == (gpt2.bos_token_id, gpt2.eos_token_id)


@pytest.mark.parametrize(("name", "role"), [("bart", "eos"), ("t5", "pad"), ("marian", "pad")])
def test_decoders_start_as_in_their_family(name, role):
    tokenizer, config = tokenizer_for_config(CONFIGS[name](), TEXTS, max_length=64)
    assert config.decoder_start_token_id == getattr(tokenizer, f"{role}_token_id")
    if name != "t5":
        assert config.forced_eos_token_id == tokenizer.eos_token_id


@pytest.mark.parametrize(
    ("positions", "max_length", "fitted", "window"),
    [
        (512, 512, 514, 512),  # no room for the offset: made
        (513, 512, 514, 512),
        (514, 512, 514, 512),  # the published configurations
        (66, 512, 66, 64),  # meant to be short: the window is
        (514, 128, 514, 128),
    ],
)
def test_positions_leave_room_for_the_offset(positions, max_length, fitted, window):
    config = _config("Roberta", max_position_embeddings=positions, **WIDTH)
    tokenizer, own = tokenizer_for_config(config, TEXTS, max_length=max_length)
    assert own.max_position_embeddings == fitted
    assert tokenizer.model_max_length == window
    assert config.max_position_embeddings == positions


def test_positions_without_offset_stay():
    short = _config("Bert", max_position_embeddings=64, **WIDTH)
    tokenizer, config = tokenizer_for_config(short, TEXTS, max_length=512)
    assert config.max_position_embeddings == 64
    assert tokenizer.model_max_length == 64


def test_a_single_segment_gives_no_segment_ids():
    tokenizer, _ = tokenizer_for_config(_config("Bert", type_vocab_size=1, **WIDTH), TEXTS, max_length=64)
    assert "token_type_ids" not in tokenizer("a", "b")
    tokenizer, _ = tokenizer_for_config(_config("Bert", **WIDTH), TEXTS, max_length=64)
    assert tokenizer("a", "b")["token_type_ids"] == [0, 0, 0, 1, 1]


def test_no_texts():
    with pytest.raises(ValueError, match="learns its tokenizer from the texts, and there are none"):
        tokenizer_for_config(CONFIGS["bert"](), [], max_length=64)


def test_a_vocabulary_that_is_too_small_for_the_kind():
    with pytest.raises(ValueError, match="vocab_size must be at least 261"):
        tokenizer_for_config(_config("Roberta", vocab_size=100, **WIDTH), TEXTS, max_length=64)
