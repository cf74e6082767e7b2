"""What other families call the fields of a configuration and the weights of a layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

Weights = dict[str, torch.Tensor]
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}
GATES = {"relu": "reglu", "gelu": "geglu", "gelu_tanh": "geglu_tanh", "silu": "swiglu"}


@dataclass(frozen=True)
class Family:
    """How to read a configuration, what weights are called (None: left out), and what is to be done to them."""

    config: Callable[[Any], dict[str, Any]]
    names: tuple[tuple[str, str | None], ...]
    reshape: Callable[[Weights, Any], Weights] = lambda weights, config: weights


def _activation(name: str) -> str:
    if name not in ACTIVATIONS:
        raise ValueError(
            f"the activation {name!r} has no counterpart here; there are {', '.join(ACTIVATIONS)}."
        )
    return ACTIVATIONS[name]


# -- BERT and RoBERTa -------------------------------------------------------------------------------


def _bert(config: Any) -> dict[str, Any]:
    return {
        "architecture": "encoder",
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "num_layers": config.num_hidden_layers,
        "num_attention_heads": config.num_attention_heads,
        "intermediate_size": config.intermediate_size,
        "max_position_embeddings": config.max_position_embeddings,
        "positions": "learned",
        "norm_position": "post",
        "norm_eps": config.layer_norm_eps,
        "embedding_norm": True,
        "feed_forward": _activation(config.hidden_act),
        "type_vocab_size": config.type_vocab_size,
        "dropout": config.hidden_dropout_prob,
        "attention_dropout": config.attention_probs_dropout_prob,
        "classifier_dropout": config.classifier_dropout,
        "pad_token_id": config.pad_token_id,
        "bos_token_id": config.bos_token_id,
        "eos_token_id": config.eos_token_id,
        "tie_word_embeddings": config.tie_word_embeddings,
        "logits_bias": True,
    }


def _roberta(config: Any) -> dict[str, Any]:
    offset = config.pad_token_id + 1
    return {**_bert(config), "max_position_embeddings": config.max_position_embeddings - offset}


def _drop_first_positions(weights: Weights, config: Any) -> Weights:
    name = "embeddings.positions.weight"
    return {**weights, name: weights[name][config.pad_token_id + 1 :]}


_END = r"(weight|bias)"
_BERT_NAMES: tuple[tuple[str, str | None], ...] = (
    (r"embeddings\.word_embeddings\.weight", "embeddings.tokens.weight"),
    (r"embeddings\.position_embeddings\.weight", "embeddings.positions.weight"),
    (r"embeddings\.token_type_embeddings\.weight", "embeddings.segments.weight"),
    (r"embeddings\.LayerNorm\." + _END, r"embeddings.norm.\1"),
    (
        r"encoder\.layer\.(\d+)\.attention\.self\.(query|key|value)\." + _END,
        r"encoder.layers.\1.self_attention.\2.\3",
    ),
    (
        r"encoder\.layer\.(\d+)\.attention\.output\.dense\." + _END,
        r"encoder.layers.\1.self_attention.output.\2",
    ),
    (
        r"encoder\.layer\.(\d+)\.attention\.output\.LayerNorm\." + _END,
        r"encoder.layers.\1.self_attention_norm.\2",
    ),
    (r"encoder\.layer\.(\d+)\.intermediate\.dense\." + _END, r"encoder.layers.\1.feed_forward.up.\2"),
    (r"encoder\.layer\.(\d+)\.output\.dense\." + _END, r"encoder.layers.\1.feed_forward.down.\2"),
    (r"encoder\.layer\.(\d+)\.output\.LayerNorm\." + _END, r"encoder.layers.\1.feed_forward_norm.\2"),
    (r"(cls\.predictions|lm_head)\.bias", None),  # the decoder's own, tied
    (r"(?:cls\.predictions\.transform|lm_head)\.dense\." + _END, r"head.lm_head.dense.\1"),
    (r"(?:cls\.predictions\.transform\.LayerNorm|lm_head\.layer_norm)\." + _END, r"head.lm_head.norm.\1"),
    (r"(?:cls\.predictions|lm_head)\.decoder\." + _END, r"head.lm_head.decoder.\1"),
    (r"(?:pooler|classifier)\.dense\." + _END, r"head.classifier.dense.\1"),
    (r"classifier\.out_proj\." + _END, r"head.classifier.scores.\1"),
    (r"classifier\." + _END, r"head.classifier.\1"),
    (r"qa_outputs\." + _END, r"head.spans.\1"),
)


def _classifier(weights: Weights, config: Any) -> Weights:
    """Tell BERT's last layer of a sequence head, behind a pooler, from that of a token head."""
    if "head.classifier.dense.weight" not in weights:
        return weights
    return {name.replace("head.classifier.weight", "head.classifier.scores.weight")
            .replace("head.classifier.bias", "head.classifier.scores.bias"): tensor
            for name, tensor in weights.items()}  # fmt: skip


# -- GPT-2 and Llama --------------------------------------------------------------------------------


def _gpt2(config: Any) -> dict[str, Any]:
    return {
        "architecture": "decoder",
        "vocab_size": config.vocab_size,
        "hidden_size": config.n_embd,
        "num_layers": config.n_layer,
        "num_attention_heads": config.n_head,
        "intermediate_size": config.n_inner or 4 * config.n_embd,
        "max_position_embeddings": config.n_positions,
        "positions": "learned",
        "norm_position": "pre",
        "norm_eps": config.layer_norm_epsilon,
        "feed_forward": _activation(config.activation_function),
        "dropout": config.resid_pdrop,
        "attention_dropout": config.attn_pdrop,
        "pad_token_id": config.pad_token_id,
        "bos_token_id": config.bos_token_id,
        "eos_token_id": config.eos_token_id,
        "tie_word_embeddings": config.tie_word_embeddings,
    }


_GPT2_NAMES: tuple[tuple[str, str | None], ...] = (
    (r"wte\.weight", "embeddings.tokens.weight"),
    (r"wpe\.weight", "embeddings.positions.weight"),
    (r"h\.(\d+)\.ln_1\." + _END, r"decoder.layers.\1.self_attention_norm.\2"),
    (r"h\.(\d+)\.attn\.c_attn\." + _END, r"decoder.layers.\1.self_attention.joined.\2"),
    (r"h\.(\d+)\.attn\.c_proj\." + _END, r"decoder.layers.\1.self_attention.output.\2"),
    (r"h\.(\d+)\.ln_2\." + _END, r"decoder.layers.\1.feed_forward_norm.\2"),
    (r"h\.(\d+)\.mlp\.c_fc\." + _END, r"decoder.layers.\1.feed_forward.up.\2"),
    (r"h\.(\d+)\.mlp\.c_proj\." + _END, r"decoder.layers.\1.feed_forward.down.\2"),
    (r"ln_f\." + _END, r"decoder.norm.\1"),
    (r"lm_head\.weight", "head.lm_head.weight"),
)


def _split_gpt2(weights: Weights, config: Any) -> Weights:
    """Turn weights round (GPT-2 keeps inputs by outputs), and part what it joins: queries, keys and values."""
    found: Weights = {}
    for name, tensor in weights.items():
        turned = tensor.T if ".layers." in name and tensor.ndim == 2 else tensor
        if ".joined." not in name:
            found[name] = turned
            continue
        for part, piece in zip(("query", "key", "value"), turned.chunk(3), strict=True):
            found[name.replace("joined", part)] = piece
    return found


def _llama(config: Any) -> dict[str, Any]:
    rotary = config.rope_parameters
    if rotary.get("rope_type", "default") != "default":
        raise ValueError(f"rotary positions of type {rotary['rope_type']!r} have no counterpart here.")
    return {
        "architecture": "decoder",
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "num_layers": config.num_hidden_layers,
        "num_attention_heads": config.num_attention_heads,
        "num_key_value_heads": config.num_key_value_heads,
        "head_dim": config.head_dim,
        "intermediate_size": config.intermediate_size,
        "max_position_embeddings": config.max_position_embeddings,
        "positions": "rotary",
        "rotary_base": rotary["rope_theta"],
        "norm": "rms",
        "norm_position": "pre",
        "norm_eps": config.rms_norm_eps,
        "feed_forward": GATES[_activation(config.hidden_act)],
        "attention_bias": config.attention_bias,
        "feed_forward_bias": config.mlp_bias,
        "dropout": 0.0,
        "attention_dropout": config.attention_dropout,
        "pad_token_id": config.pad_token_id,
        "bos_token_id": config.bos_token_id,
        "eos_token_id": config.eos_token_id,
        "tie_word_embeddings": config.tie_word_embeddings,
    }


_LLAMA_NAMES: tuple[tuple[str, str | None], ...] = (
    (r"embed_tokens\.weight", "embeddings.tokens.weight"),
    (r"layers\.(\d+)\.self_attn\.q_proj\." + _END, r"decoder.layers.\1.self_attention.query.\2"),
    (r"layers\.(\d+)\.self_attn\.k_proj\." + _END, r"decoder.layers.\1.self_attention.key.\2"),
    (r"layers\.(\d+)\.self_attn\.v_proj\." + _END, r"decoder.layers.\1.self_attention.value.\2"),
    (r"layers\.(\d+)\.self_attn\.o_proj\." + _END, r"decoder.layers.\1.self_attention.output.\2"),
    (r"layers\.(\d+)\.mlp\.(gate|up|down)_proj\." + _END, r"decoder.layers.\1.feed_forward.\2.\3"),
    (r"layers\.(\d+)\.input_layernorm\.weight", r"decoder.layers.\1.self_attention_norm.weight"),
    (r"layers\.(\d+)\.post_attention_layernorm\.weight", r"decoder.layers.\1.feed_forward_norm.weight"),
    (r"norm\.weight", "decoder.norm.weight"),
    (r"lm_head\.weight", "head.lm_head.weight"),
)

# -- Marian and T5 ----------------------------------------------------------------------------------


def _marian(config: Any) -> dict[str, Any]:
    if config.encoder_attention_heads != config.decoder_attention_heads:
        raise ValueError("a decoder with other heads than the encoder has no counterpart here.")
    if config.encoder_ffn_dim != config.decoder_ffn_dim or not config.share_encoder_decoder_embeddings:
        raise ValueError(
            "a decoder of another width, or with embeddings of its own, has no counterpart here."
        )
    return {
        "architecture": "encoder-decoder",
        "vocab_size": config.vocab_size,
        "hidden_size": config.d_model,
        "num_layers": config.encoder_layers,
        "num_decoder_layers": config.decoder_layers,
        "num_attention_heads": config.encoder_attention_heads,
        "intermediate_size": config.encoder_ffn_dim,
        "max_position_embeddings": config.max_position_embeddings,
        "positions": "sinusoidal_halves",
        "norm_position": "post",
        "feed_forward": _activation(config.activation_function),
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "scale_embeddings": config.scale_embedding,
        "pad_token_id": config.pad_token_id,
        "bos_token_id": config.bos_token_id,
        "eos_token_id": config.eos_token_id,
        "decoder_start_token_id": config.decoder_start_token_id,
        "tie_word_embeddings": config.tie_word_embeddings,
        "logits_bias": True,
    }


_HALF = r"(encoder|decoder)\.layers\.(\d+)\."
_MARIAN_NAMES: tuple[tuple[str, str | None], ...] = (
    (r"shared\.weight", "embeddings.tokens.weight"),
    (r"(encoder|decoder)\.embed_(tokens|positions)\.weight", None),
    *(
        (_HALF + rf"{theirs}\.{letter}_proj\." + _END, rf"\1.layers.\2.{ours}.{part}.\3")
        for theirs, ours in (("self_attn", "self_attention"), ("encoder_attn", "cross_attention"))
        for letter, part in (("q", "query"), ("k", "key"), ("v", "value"), ("out", "output"))
    ),
    (_HALF + r"self_attn_layer_norm\." + _END, r"\1.layers.\2.self_attention_norm.\3"),
    (_HALF + r"encoder_attn_layer_norm\." + _END, r"\1.layers.\2.cross_attention_norm.\3"),
    (_HALF + r"fc1\." + _END, r"\1.layers.\2.feed_forward.up.\3"),
    (_HALF + r"fc2\." + _END, r"\1.layers.\2.feed_forward.down.\3"),
    (_HALF + r"final_layer_norm\." + _END, r"\1.layers.\2.feed_forward_norm.\3"),
    (r"lm_head\.weight", "head.lm_head.weight"),
    (r"final_logits_bias", "head.lm_head.bias"),
)


def _t5(config: Any) -> dict[str, Any]:
    activation = _activation(config.dense_act_fn)
    return {
        "architecture": "encoder-decoder",
        "vocab_size": config.vocab_size,
        "hidden_size": config.d_model,
        "num_layers": config.num_layers,
        "num_decoder_layers": config.num_decoder_layers,
        "num_attention_heads": config.num_heads,
        "head_dim": config.d_kv,
        "intermediate_size": config.d_ff,
        "positions": "relative",
        "relative_buckets": config.relative_attention_num_buckets,
        "relative_max_distance": config.relative_attention_max_distance,
        "norm": "rms",
        "norm_position": "pre",
        "norm_eps": config.layer_norm_epsilon,
        "feed_forward": GATES[activation] if config.is_gated_act else activation,
        "attention_scale": 1.0,
        "attention_bias": False,
        "feed_forward_bias": False,
        "dropout": config.dropout_rate,
        "attention_dropout": config.dropout_rate,
        "logits_scale": config.d_model**-0.5 if config.scale_decoder_outputs else 1.0,
        "pad_token_id": config.pad_token_id,
        "bos_token_id": None,
        "eos_token_id": config.eos_token_id,
        "decoder_start_token_id": config.decoder_start_token_id,
        "tie_word_embeddings": config.tie_word_embeddings,
    }


_BLOCK = r"(encoder|decoder)\.block\.(\d+)\.layer\."
_T5_NAMES: tuple[tuple[str, str | None], ...] = (
    (r"shared\.weight", "embeddings.tokens.weight"),
    (r"(encoder|decoder)\.embed_tokens\.weight", None),
    *(
        (_BLOCK + rf"\d\.{theirs}\.{letter}\.weight", rf"\1.layers.\2.{ours}.{part}.weight")
        for theirs, ours in (("SelfAttention", "self_attention"), ("EncDecAttention", "cross_attention"))
        for letter, part in (("q", "query"), ("k", "key"), ("v", "value"), ("o", "output"))
    ),
    (_BLOCK + r"0\.SelfAttention\.relative_attention_bias\.weight", r"\1.position_bias.table.weight"),
    (_BLOCK + r"0\.layer_norm\.weight", r"\1.layers.\2.self_attention_norm.weight"),
    (
        r"decoder\.block\.(\d+)\.layer\.1\.layer_norm\.weight",
        r"decoder.layers.\1.cross_attention_norm.weight",
    ),
    (_BLOCK + r"[12]\.layer_norm\.weight", r"\1.layers.\2.feed_forward_norm.weight"),
    (_BLOCK + r"[12]\.DenseReluDense\.wi_0\.weight", r"\1.layers.\2.feed_forward.gate.weight"),
    (_BLOCK + r"[12]\.DenseReluDense\.(?:wi|wi_1)\.weight", r"\1.layers.\2.feed_forward.up.weight"),
    (_BLOCK + r"[12]\.DenseReluDense\.wo\.weight", r"\1.layers.\2.feed_forward.down.weight"),
    (r"(encoder|decoder)\.final_layer_norm\.weight", r"\1.norm.weight"),
    (r"lm_head\.weight", "head.lm_head.weight"),
)

_ROBERTA = Family(_roberta, _BERT_NAMES, _drop_first_positions)
FAMILIES: dict[str, Family] = {
    "bert": Family(_bert, _BERT_NAMES, _classifier),
    "roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "gpt2": Family(_gpt2, _GPT2_NAMES, _split_gpt2),
    "llama": Family(_llama, _LLAMA_NAMES),
    "marian": Family(_marian, _MARIAN_NAMES),
    "t5": Family(_t5, _T5_NAMES),
}
