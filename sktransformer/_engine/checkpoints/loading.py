"""A resolved source becomes a model with the head of a task, and a tokenizer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoTokenizer, PreTrainedConfig, PreTrainedModel

from ...nn import TransformerConfig
from ..errors import CheckpointCorruptError, WrongTaskError, optional_import
from .flaubert import repair_flaubert
from .heads import HEADS, Head, writes
from .packing import enable_packing
from .quiet import loading
from .sources import Source
from .structure import layer_count, layer_number, set_dropout
from .tokenizers import tokenizer_for_config

MAX_LISTED = 5
# What to pass instead of a TransformerConfig of another architecture.
OURS = {
    "encoder": 'TransformerConfig(architecture="encoder")',
    "causal": 'TransformerConfig(architecture="decoder")',
    "seq2seq": 'TransformerConfig(architecture="encoder-decoder")',
}


@dataclass
class Checkpoint:
    """A model in evaluation mode on the CPU, its tokenizer, whether it takes packed rows, and where it came from."""

    model: PreTrainedModel
    tokenizer: Any
    packable: bool
    folder: Path | None = None


def load_checkpoint(
    source: Source,
    head: Head,
    *,
    texts: Sequence[str] = (),
    max_length: int = 512,
    dropout: float | None = None,
    attention_dropout: float | None = None,
    config_changes: dict[str, Any] | None = None,
    need_head: bool = False,
) -> Checkpoint:
    """Load `source` with the head of a task.

    A new head draws its weights from torch's generator: seed it around the call.

    Parameters
    ----------
    source : Source
        What `resolve` returned.
    head : {"causal", "classification", "encoder", "seq2seq", "spans", "tokens"}
        The head; "encoder" is the model without one.
    texts : sequence of str
        What a tokenizer learns from when `source` is a config.
    max_length : int
        Longest window of a tokenizer trained here, in tokens.
    dropout, attention_dropout : float, optional
        Probabilities that replace the checkpoint's own.
    config_changes : dict, optional
        Other fields to set in the config (number of labels, their names).
    need_head : bool
        Raise when the head's weights are not in the checkpoint.

    Raises
    ------
    WrongTaskError
        When the architecture has no such head, or `need_head` and it is not in the checkpoint.
    CheckpointCorruptError
        When weights are missing or can't be read.
    """
    if source.config is not None:
        tokenizer, config = tokenizer_for_config(source.config, texts, max_length)
    else:
        tokenizer, config = None, config_of(source)
    set_dropout(config, dropout, attention_dropout)
    for field, value in (config_changes or {}).items():
        setattr(config, field, value)
    _require_head(config, head, source)
    with (
        torch.inference_mode(False),
        loading(),
    ):  # weights of a caller's inference mode could never be trained
        if source.folder is None:
            model = HEADS[head].auto_class.from_config(config, dtype=torch.float32)
        else:
            tokenizer = _load_tokenizer(source.folder)
            _give_padding(config, tokenizer)
            model = _load_model(source, source.folder, head, config, need_head)
        return Checkpoint(model, tokenizer, prepare(model, head), source.folder)


def prepare(model: PreTrainedModel, head: Head) -> bool:
    """Repair, pack and put in evaluation mode; return whether the model takes packed rows."""
    repair_flaubert(model)
    _keep_tables(model)
    packable = enable_packing(model, gather=HEADS[head].first_token)
    model.eval()
    return packable


def _keep_tables(model: PreTrainedModel) -> None:
    """Keep training off tables of positions that are computed, and that `save_pretrained` leaves out.

    Loading lets them require a gradient in transformers 5.24 (Marian, Pegasus); a model that was stored and loaded
    again would have others than it was trained with.
    """
    computed = getattr(model, "_keys_to_ignore_on_save", None) or ()
    for name, parameter in model.named_parameters():
        if name in computed and name.endswith("embed_positions.weight"):
            parameter.requires_grad_(False)


def read_config(folder: Path) -> PreTrainedConfig:
    """Read the config of a checkpoint folder."""
    config: PreTrainedConfig = AutoConfig.from_pretrained(folder, local_files_only=True)
    return config


def config_of(source: Source) -> PreTrainedConfig:
    """Return the config of a source that is a folder by now.

    Raises
    ------
    CheckpointCorruptError
        When Transformers can't read it.
    """
    assert source.folder is not None
    try:
        return read_config(source.folder)
    except (ValueError, KeyError, OSError) as error:
        raise CheckpointCorruptError(
            f"{source.name}: config.json can't be read as a model's config ({error})."
        ) from error


def _require_head(config: PreTrainedConfig, head: Head, source: Source) -> None:
    ours = isinstance(config, TransformerConfig)
    if head == "encoder" and getattr(config, "is_encoder_decoder", False):
        wanted = OURS["encoder"] if ours else "an encoder such as BERT, CamemBERT or multilingual-e5-small"
        raise WrongTaskError(
            f"{source.name} is a {config.model_type!r} model, an encoder and a decoder made to write texts; "
            f"pass {wanted}."
        )
    if head in ("causal", "seq2seq"):
        _require_writer(config, head, source)
        return
    architectures: Any = HEADS[head].auto_class._model_mapping
    if type(config) in architectures:
        return
    wanted = OURS["encoder"] if ours else "an encoder such as BERT, RoBERTa, CamemBERT or FlauBERT"
    raise WrongTaskError(
        f"{source.name} is a {config.model_type!r} model, which has no {HEADS[head].name} head"
        f"{'' if ours else ' in Transformers'}; pass {wanted}."
    )


def _require_writer(config: PreTrainedConfig, head: Head, source: Source) -> None:
    """Raise unless the model writes texts in the way of `head`, and say which estimator it is for."""
    found = writes(config)
    if found == head:
        return
    wanted = {
        "causal": "a decoder that goes on from a text, such as GPT-2, Llama or bundled:SmolLM2-135M-Instruct",
        "seq2seq": "an encoder and decoder that turns a text into another, such as Marian, T5 or BART",
    }[head]
    if isinstance(config, TransformerConfig):
        wanted = OURS[head]
    kind = {
        None: "an encoder, which reads texts and writes none; it is for TransformerClassifier, "
        "TransformerTokenClassifier, TransformerQuestionAnswerer or TransformerEmbedder",
        "causal": "a decoder that goes on from a text; it is for CausalLMGenerator or PromptClassifier",
        "seq2seq": "an encoder and a decoder, made to turn a text into another; it is for Seq2SeqGenerator or "
        "PromptClassifier",
    }[found]
    raise WrongTaskError(f"{source.name} is a {config.model_type!r} model, {kind}. Pass {wanted}.")


def read_tokenizer(folder: str | Path) -> Any:
    """Read the tokenizer of a checkpoint folder.

    Raises
    ------
    MissingExtraError
        When it is FlauBERT's and sacremoses is not installed.
    """
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except ImportError as error:
        if "sacremoses" in str(error):
            optional_import("sacremoses", "flaubert")
        raise


def _load_tokenizer(folder: Path) -> Any:
    try:
        return read_tokenizer(folder)
    except ImportError:
        raise
    except Exception as error:
        raise CheckpointCorruptError(
            f"{folder}: its tokenizer can't be loaded ({error}); copy the folder again."
        ) from error


def _give_padding(config: PreTrainedConfig, tokenizer: Any) -> None:
    """Name a padding token where the config has none, as GPT-2's and Llama's: heads look for the last other token."""
    if getattr(config, "pad_token_id", None) is None:
        known = (tokenizer.pad_token_id, tokenizer.eos_token_id, config.eos_token_id)
        config.pad_token_id = next((i for i in known if isinstance(i, int)), 0)


def _load_model(
    source: Source, folder: Path, head: Head, config: PreTrainedConfig, need_head: bool
) -> PreTrainedModel:
    try:
        model, report = HEADS[head].auto_class.from_pretrained(
            folder,
            config=config,
            dtype=torch.float32,
            local_files_only=True,
            ignore_mismatched_sizes=not need_head,
            output_loading_info=True,
            **_names_of_body(config, head),
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise CheckpointCorruptError(f"{source.name}: its weights can't be loaded ({error}).") from error
    missing = sorted(report["missing_keys"])
    _check_body(model, head, source, missing, sorted(key[0] for key in report["mismatched_keys"]))
    _check_depth(config, source, report["unexpected_keys"])
    if need_head and missing:
        raise WrongTaskError(
            f"{source.name} holds no trained {HEADS[head].name} head ({missing[0]} is missing); fit it first, "
            f"or pass the folder that save_pretrained wrote."
        )
    return model  # type: ignore[no-any-return]


def _names_of_body(config: PreTrainedConfig, head: Head) -> dict[str, Any]:
    """Return how to rename a body's weights where the class with the head calls it otherwise than checkpoints do.

    Transformers' question answering heads on Llama, Qwen and their like say "transformer" for "model", and would draw
    the whole body at random (seen in 5.24).
    """
    kinds: Any = (HEADS[head].auto_class._model_mapping, HEADS["encoder"].auto_class._model_mapping)
    if not all(type(config) in kind for kind in kinds):
        return {}
    found = (kind[type(config)] for kind in kinds)
    here, there = ((one[0] if isinstance(one, tuple) else one).base_model_prefix for one in found)
    return (
        {"key_mapping": {rf"^{re.escape(there)}\.": f"{here}."}} if here and there and here != there else {}
    )


def _check_depth(config: PreTrainedConfig, source: Source, unused: Iterable[str]) -> None:
    """Raise when the checkpoint has more layers than its config: Transformers would leave them out without a word."""
    if getattr(config, "is_encoder_decoder", False):
        return  # the other half's layers are left out on purpose
    n_layers = layer_count(config)
    beyond = sorted(
        name for name in unused if (depth := layer_number(name)) is not None and depth >= n_layers
    )
    if beyond:
        raise CheckpointCorruptError(
            f"{source.name}: config.json says {n_layers} layers, but there are weights of more ({beyond[0]}, ...); "
            f"config.json belongs to another model."
        )


def _check_body(
    model: PreTrainedModel, head: Head, source: Source, missing: list[str], misshapen: list[str]
) -> None:
    """Raise when weights of the body are not those of the checkpoint: Transformers draws such weights at random."""
    prefix = model.base_model_prefix + "."
    for names, fault in ((missing, "are missing"), (misshapen, "have other shapes than config.json says")):
        body = [name for name in names if _is_body(name, prefix, head)]
        if body:
            raise CheckpointCorruptError(
                f"{source.name}: {len(body)} weights of the {model.config.model_type} model {fault} "
                f"({', '.join(body[:MAX_LISTED])}); the checkpoint is incomplete, or config.json belongs to "
                f"another model."
            )


def _is_body(name: str, prefix: str, head: Head) -> bool:
    """Whether a missing weight belongs to the model's body: poolers and heads may be new, layers may not."""
    if "pooler" in name or name.endswith("position_ids"):
        return False
    return head == "encoder" or name.startswith(prefix)
