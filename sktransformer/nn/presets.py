"""The shapes of published models, as fields of a `TransformerConfig`."""

from __future__ import annotations

from typing import Any

_BERT: dict[str, Any] = {
    "architecture": "encoder",
    "vocab_size": 30_522,
    "hidden_size": 768,
    "num_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "positions": "learned",
    "norm_position": "post",
    "norm_eps": 1e-12,
    "embedding_norm": True,
    "feed_forward": "gelu",
    "type_vocab_size": 2,
    "initializer_range": 0.02,
    "tokenizer": "wordpiece",
    "logits_bias": True,
}

PRESETS: dict[str, dict[str, Any]] = {
    # Vaswani et al. 2017, table 3 ("base"), and section 5.1: a shared vocabulary of about 37,000 tokens
    "transformer-base": {
        "architecture": "encoder-decoder",
        "vocab_size": 37_000,
        "hidden_size": 512,
        "num_layers": 6,
        "num_attention_heads": 8,
        "intermediate_size": 2048,
        "positions": "sinusoidal",
        "norm_position": "post",
        "feed_forward": "relu",
        "scale_embeddings": True,
        "attention_dropout": 0.0,
        "tokenizer": "bpe",
    },
    "bert-base": _BERT,
    # Liu et al. 2019, section 5: BERT's shape, byte-level BPE, no segments (the published checkpoint keeps one row)
    "roberta-base": {
        **_BERT,
        "vocab_size": 50_265,
        "norm_eps": 1e-5,
        "type_vocab_size": 1,
        "tokenizer": "byte_bpe",
    },
    # Radford et al. 2019, table 2 and section 2.3
    "gpt2-small": {
        "architecture": "decoder",
        "vocab_size": 50_257,
        "hidden_size": 768,
        "num_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "max_position_embeddings": 1024,
        "positions": "learned",
        "norm_position": "pre",
        "feed_forward": "gelu_tanh",
        "initializer_range": 0.02,
        "tokenizer": "byte_bpe",
    },
    # Raffel et al. 2020, sections 2.1 and 3.1.1, and the published "small"
    "t5-small": {
        "architecture": "encoder-decoder",
        "vocab_size": 32_128,
        "hidden_size": 512,
        "num_layers": 6,
        "num_attention_heads": 8,
        "head_dim": 64,
        "intermediate_size": 2048,
        "positions": "relative",
        "norm": "rms",
        "norm_eps": 1e-6,
        "feed_forward": "relu",
        "attention_scale": 1.0,
        "attention_bias": False,
        "feed_forward_bias": False,
        "logits_scale": 512**-0.5,
        "pad_token_id": 0,
        "bos_token_id": None,
        "eos_token_id": 1,
        "tokenizer": "unigram",
    },
    # The parts of Touvron et al. 2023, section 2.2, and grouped queries, at a size that trains on one machine
    "llama-like": {
        "architecture": "decoder",
        "vocab_size": 32_000,
        "hidden_size": 512,
        "num_layers": 8,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        "positions": "rotary",
        "norm": "rms",
        "norm_eps": 1e-6,
        "feed_forward": "swiglu",
        "attention_bias": False,
        "feed_forward_bias": False,
        "initializer_range": 0.02,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "tie_word_embeddings": False,
        "tokenizer": "byte_bpe",
    },
}
