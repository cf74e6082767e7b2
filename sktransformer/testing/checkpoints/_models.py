"""Tiny models of every family: two layers of width 32, at most 64 tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._tokenizers import MAX_LENGTH

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

WIDTH = 32
LAYERS = 2
HEADS = 2

Maker = Callable[["PreTrainedTokenizerBase"], "PreTrainedModel"]


def _encoder_sizes() -> dict[str, Any]:
    return {
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": 2 * WIDTH,
    }


def _seq2seq_sizes() -> dict[str, Any]:
    return {
        "d_model": WIDTH,
        "encoder_layers": LAYERS,
        "decoder_layers": LAYERS,
        "encoder_attention_heads": HEADS,
        "decoder_attention_heads": HEADS,
        "encoder_ffn_dim": 2 * WIDTH,
        "decoder_ffn_dim": 2 * WIDTH,
        "max_position_embeddings": MAX_LENGTH,
    }


def _ids(tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    return {
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }


def bert(tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    from transformers import BertConfig, BertForMaskedLM

    return BertForMaskedLM(
        BertConfig(vocab_size=len(tokenizer), max_position_embeddings=MAX_LENGTH, **_encoder_sizes())
    )


def distilbert(tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    from transformers import DistilBertConfig, DistilBertForMaskedLM

    return DistilBertForMaskedLM(
        DistilBertConfig(
            vocab_size=len(tokenizer),
            max_position_embeddings=MAX_LENGTH,
            dim=WIDTH,
            n_layers=LAYERS,
            n_heads=HEADS,
            hidden_dim=2 * WIDTH,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


def electra(tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    from transformers import ElectraConfig, ElectraForMaskedLM

    return ElectraForMaskedLM(
        ElectraConfig(
            vocab_size=len(tokenizer),
            max_position_embeddings=MAX_LENGTH,
            embedding_size=WIDTH // 2,  # narrower than the layers, as in the published small and base models
            pad_token_id=tokenizer.pad_token_id,
            **_encoder_sizes(),
        )
    )


def roberta(tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    from transformers import RobertaConfig, RobertaForMaskedLM

    return RobertaForMaskedLM(RobertaConfig(**_roberta_arguments(tokenizer)))


def camembert(tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    from transformers import CamembertConfig, CamembertForMaskedLM

    return CamembertForMaskedLM(CamembertConfig(**_roberta_arguments(tokenizer)))


def xlm_roberta(tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    from transformers import XLMRobertaConfig, XLMRobertaForMaskedLM

    return XLMRobertaForMaskedLM(XLMRobertaConfig(**_roberta_arguments(tokenizer)))


def _roberta_arguments(tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    # Positions start at pad_token_id + 1 = 2 in this family.
    return {
        "max_position_embeddings": MAX_LENGTH + 2,
        "type_vocab_size": 1,
        **_ids(tokenizer),
        **_encoder_sizes(),
    }


def flaubert(tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    return _flaubert(tokenizer, pre_norm=False)


def flaubert_prenorm(tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    """Build the variant of the published small and large FlauBERT: norms before the sublayers."""
    return _flaubert(tokenizer, pre_norm=True)


def _flaubert(tokenizer: PreTrainedTokenizerBase, *, pre_norm: bool) -> PreTrainedModel:
    from transformers import FlaubertConfig, FlaubertWithLMHeadModel

    return FlaubertWithLMHeadModel(
        FlaubertConfig(
            vocab_size=len(tokenizer),
            emb_dim=WIDTH,
            n_layers=LAYERS,
            n_heads=HEADS,
            max_position_embeddings=MAX_LENGTH,
            pad_index=tokenizer.pad_token_id,
            bos_index=tokenizer.bos_token_id,
            eos_index=tokenizer.sep_token_id,
            unk_index=tokenizer.unk_token_id,
            mask_index=tokenizer.get_vocab()["<special1>"],
            pre_norm=pre_norm,
        )
    )


def modernbert(tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    from transformers import ModernBertConfig, ModernBertForMaskedLM

    return ModernBertForMaskedLM(
        ModernBertConfig(
            vocab_size=len(tokenizer),
            max_position_embeddings=MAX_LENGTH,
            pad_token_id=tokenizer.pad_token_id,
            cls_token_id=tokenizer.cls_token_id,
            sep_token_id=tokenizer.sep_token_id,
            bos_token_id=tokenizer.cls_token_id,
            eos_token_id=tokenizer.sep_token_id,
            local_attention=16,
            layer_types=["full_attention", "sliding_attention"],
            **_encoder_sizes(),
        )
    )


def t5(tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=len(tokenizer),
        d_model=WIDTH,
        d_kv=WIDTH // HEADS,
        d_ff=2 * WIDTH,
        num_layers=LAYERS,
        num_heads=HEADS,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    config.decoder_start_token_id = tokenizer.pad_token_id
    return T5ForConditionalGeneration(config)


def bart(tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    from transformers import BartConfig, BartForConditionalGeneration

    end = tokenizer.eos_token_id
    return BartForConditionalGeneration(
        BartConfig(decoder_start_token_id=end, forced_eos_token_id=end, **_ids(tokenizer), **_seq2seq_sizes())
    )


def marian(tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    from transformers import MarianConfig, MarianMTModel

    return MarianMTModel(
        MarianConfig(
            decoder_start_token_id=tokenizer.pad_token_id,
            forced_eos_token_id=tokenizer.eos_token_id,
            **_ids(tokenizer),
            **_seq2seq_sizes(),
        )
    )


def gpt2(tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    from transformers import GPT2Config, GPT2LMHeadModel

    end = tokenizer.eos_token_id
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(tokenizer),
            n_embd=WIDTH,
            n_layer=LAYERS,
            n_head=HEADS,
            n_positions=MAX_LENGTH,
            bos_token_id=end,
            eos_token_id=end,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


def llama(tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(
            max_position_embeddings=MAX_LENGTH,
            num_key_value_heads=HEADS,
            **_ids(tokenizer),
            **_encoder_sizes(),
        )
    )
