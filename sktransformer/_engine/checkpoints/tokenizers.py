"""Tokenizers for models trained from scratch: learned from the user's texts, shaped like the family's."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ...nn import TransformerConfig
from ..errors import did_you_mean
from .structure import first_position
from .vocabularies import KINDS, Kind, learn

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PretrainedConfig, PreTrainedTokenizerFast

__all__ = ["tokenizer_for_config", "train_tokenizer"]

Style = Literal["bert", "roberta", "t5", "seq2seq", "causal"]
ConfigT = TypeVar("ConfigT", bound="PretrainedConfig")

BYTES = 256
# Learning pairs costs the square of a word's length: an attachment left in a mail, 1 MB without a blank,
# would take a quarter of an hour. Cut in parts it teaches the same.
_LONG_WORD = re.compile(r"\S{200}(?=\S)")
_LONG_BLANK = re.compile(r"(\s{200})\s+")  # a word like others to byte-level pairs
T5_SENTINELS = 100


@dataclass(frozen=True)
class _Layout:
    """The special tokens of a family by role, in the order of their ids, and their places around texts."""

    tokens: dict[str, str]
    single: str
    pair: str
    padding_side: str = "right"

    @property
    def special(self) -> list[str]:
        return list(dict.fromkeys(self.tokens.values()))


_LAYOUTS: dict[Style, _Layout] = {
    "bert": _Layout(
        {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
    ),
    "roberta": _Layout(
        {
            "bos": "<s>",
            "pad": "<pad>",
            "eos": "</s>",
            "unk": "<unk>",
            "mask": "<mask>",
            "cls": "<s>",
            "sep": "</s>",
        },
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
    ),
    "t5": _Layout(
        {"pad": "<pad>", "eos": "</s>", "unk": "<unk>"},
        single="$A </s>",
        pair="$A </s> $B </s>",
    ),
    "seq2seq": _Layout(  # T5's without its sentinels: the decoder starts with the padding token
        {"pad": "<pad>", "eos": "</s>", "unk": "<unk>"},
        single="$A </s>",
        pair="$A </s> $B </s>",
    ),
    "causal": _Layout(
        {"unk": "<unk>", "bos": "<s>", "eos": "</s>", "pad": "<pad>"},
        single="<s> $A",
        pair="<s> $A $B",
        padding_side="left",  # what is generated continues the last token
    ),
}
_STYLE_OF_KIND: dict[Kind, Style] = {
    "wordpiece": "bert",
    "bpe": "roberta",
    "byte_bpe": "roberta",
    "unigram": "roberta",
}
_FAMILIES: dict[str, tuple[Kind, Style]] = {
    **dict.fromkeys(
        ("bert", "distilbert", "electra", "mobilebert", "convbert", "squeezebert", "big_bird"),
        ("wordpiece", "bert"),
    ),
    **dict.fromkeys(("camembert", "xlm-roberta", "xlm-roberta-xl", "mbart"), ("unigram", "roberta")),
    **dict.fromkeys(("albert", "deberta-v2"), ("unigram", "bert")),
    **dict.fromkeys(("t5", "mt5", "umt5"), ("unigram", "t5")),
    "modernbert": ("byte_bpe", "bert"),
}


def train_tokenizer(
    texts: Iterable[str],
    *,
    kind: Kind,
    vocab_size: int,
    max_length: int,
    style: Style | None = None,
    lowercase: bool = False,
    token_types: bool | None = None,
) -> PreTrainedTokenizerFast:
    """Train a tokenizer on texts.

    Parameters
    ----------
    texts : iterable of str
        What to learn from.
    kind : {"wordpiece", "bpe", "byte_bpe", "unigram"}
        The kind of vocabulary.
    vocab_size : int
        Largest number of pieces, special tokens included. Few texts give fewer.
    max_length : int
        What the tokenizer announces as its model's limit, in tokens.
    style : {"bert", "roberta", "t5", "seq2seq", "causal"}, optional
        Names and places of the special tokens; by default "bert" for WordPiece, else "roberta".
    lowercase : bool, default=False
        Whether case is ignored. Accents are always kept.
    token_types : bool, optional
        Whether pairs come with segment ids; by default where the style is "bert".

    Returns
    -------
    PreTrainedTokenizerFast
        The same one for the same texts.

    Raises
    ------
    TypeError
        When ``texts`` is a single string, or holds something else than strings.
    ValueError
        When there are no texts, the kind or style is not known, or ``vocab_size`` is too small.

    Notes
    -----
    Training uses the threads of the ``tokenizers`` library, but no processes; environment variables are
    neither read nor set. From version 0.23 on, that library says nothing when a process that used its threads
    forks.

    Examples
    --------
    >>> tokenizer = train_tokenizer(["le chat dort", "le chien dort"] * 5, kind="byte_bpe", vocab_size=300,
    ...                             max_length=64)
    >>> tokenizer.decode(tokenizer("le chat")["input_ids"])
    '<s>le chat</s>'
    """
    listed = _list_texts(texts)
    _check_choice("kind", kind, KINDS)
    style = style or _STYLE_OF_KIND[kind]
    _check_choice("style", style, tuple(_LAYOUTS))
    layout = _LAYOUTS[style]
    special = layout.special
    least = len(special) + (BYTES if kind == "byte_bpe" else 2)
    if vocab_size < least:
        raise ValueError(
            f"vocab_size must be at least {least} for kind={kind!r} and style={style!r}, got {vocab_size}."
        )
    backend = learn(
        listed,
        kind,
        vocab_size=vocab_size,
        special=special,
        unknown=layout.tokens["unk"],
        lowercase=lowercase,
    )
    _add_template(backend, layout, byte_level=kind == "byte_bpe")
    return _wrap(backend, layout, style, max_length, style == "bert" if token_types is None else token_types)


def tokenizer_for_config(
    config: ConfigT, texts: Iterable[str], max_length: int
) -> tuple[PreTrainedTokenizerFast, ConfigT]:
    """Train the tokenizer that a configuration calls for, and fit a copy of the configuration to it.

    Parameters
    ----------
    config : PretrainedConfig
        The user's configuration; not changed.
    texts : iterable of str
        What to learn from.
    max_length : int
        Most tokens in a window.

    Returns
    -------
    tokenizer : PreTrainedTokenizerFast
        Of the kind that ``config.model_type`` uses: WordPiece for BERT and its like, Unigram for CamemBERT,
        XLM-R, T5 and ALBERT, byte-level BPE for everything else. A `TransformerConfig` names its own.
    config : PretrainedConfig
        A copy with the tokenizer's ``vocab_size`` and special ids. Where the architecture numbers positions
        from ``pad_token_id + 1`` and ``max_length`` tokens just do not fit for that reason,
        ``max_position_embeddings`` is raised by what is missing; to ``max_length`` where positions are not
        learned, and so have no end.

    Raises
    ------
    ValueError
        When there are no texts, or ``config.vocab_size`` is too small.

    Examples
    --------
    >>> from transformers import RobertaConfig
    >>> tokenizer, config = tokenizer_for_config(RobertaConfig(), ["le chat dort"] * 5, max_length=512)
    >>> config.vocab_size == len(tokenizer), config.max_position_embeddings
    (True, 514)
    """
    kind, style = _family(config)
    tokenizer = train_tokenizer(
        texts,
        kind=kind,
        vocab_size=config.vocab_size,
        max_length=max_length,
        style=style,
        token_types=style == "bert" and (getattr(config, "type_vocab_size", 0) or 0) > 1,
    )
    fitted = copy.deepcopy(config)
    _set_special_ids(fitted, config, tokenizer)
    fitted.vocab_size = len(tokenizer)
    positions = _fit_positions(fitted, max_length)
    if positions is not None:
        tokenizer.model_max_length = min(max_length, positions)
    return tokenizer, fitted


def _list_texts(texts: Iterable[str]) -> list[str]:
    if isinstance(texts, (str, bytes)):
        raise TypeError("texts must be a list of strings, got a single one; wrap it in a list.")
    listed = []
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"texts[{i}] must be str, got {type(text).__name__}.")
        # Lone surrogates can't leave Python; the tokenizer sees a question mark, as everywhere else.
        valid = text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
        listed.append(_LONG_WORD.sub(r"\g<0> ", _LONG_BLANK.sub(r"\1", valid)))
    if not listed:
        raise ValueError(
            "a model that is trained from scratch learns its tokenizer from the texts, and there are none; "
            "pass texts, or a checkpoint instead of a configuration."
        )
    return listed


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        hint = did_you_mean(str(value), choices)
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.{hint}")


def _add_template(backend: Tokenizer, layout: _Layout, *, byte_level: bool) -> None:
    from tokenizers import processors

    ids = [(token, backend.token_to_id(token)) for token in layout.special]
    template: Any = processors.TemplateProcessing(single=layout.single, pair=layout.pair, special_tokens=ids)
    if byte_level:  # offsets without the blank that a byte-level piece carries in front
        template = processors.Sequence([processors.ByteLevel(trim_offsets=True), template])
    backend.post_processor = template


def _wrap(
    backend: Tokenizer, layout: _Layout, style: Style, max_length: int, token_types: bool
) -> PreTrainedTokenizerFast:
    from transformers import PreTrainedTokenizerFast

    inputs = ["input_ids", *(["token_type_ids"] if token_types else []), "attention_mask"]
    arguments: dict[str, Any] = {f"{role}_token": token for role, token in layout.tokens.items()}
    if style == "t5":  # the last ids, from the highest number down, as in the published vocabularies
        arguments["extra_special_tokens"] = [f"<extra_id_{i}>" for i in reversed(range(T5_SENTINELS))]
    make: Any = PreTrainedTokenizerFast  # untyped in Transformers
    tokenizer: PreTrainedTokenizerFast = make(
        tokenizer_object=backend,
        model_max_length=max_length,
        padding_side=layout.padding_side,
        model_input_names=inputs,
        clean_up_tokenization_spaces=False,
        **arguments,
    )
    return tokenizer


def _family(config: PretrainedConfig) -> tuple[Kind, Style]:
    from transformers.models.auto import modeling_auto

    model_type = config.model_type
    if isinstance(config, TransformerConfig):
        return _family_of_ours(config)
    if model_type in _FAMILIES:
        return _FAMILIES[model_type]
    generates = model_type in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    fills_masks = model_type in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    causal = generates and not fills_masks and not config.is_encoder_decoder
    return "byte_bpe", "causal" if causal else "roberta"


def _family_of_ours(config: TransformerConfig) -> tuple[Kind, Style]:
    usual: dict[str, Kind] = {"encoder": "wordpiece", "decoder": "byte_bpe", "encoder-decoder": "unigram"}
    kind: Any = config.tokenizer or usual[config.architecture]
    if config.architecture == "encoder":
        return kind, _STYLE_OF_KIND[kind]
    return kind, "causal" if config.architecture == "decoder" else "seq2seq"


def _set_special_ids(
    fitted: PretrainedConfig, config: PretrainedConfig, tokenizer: PreTrainedTokenizerFast
) -> None:
    """Write the tokenizer's ids wherever the configuration keeps one."""
    begin = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.cls_token_id
    end = tokenizer.eos_token_id if tokenizer.eos_token_id is not None else tokenizer.sep_token_id
    ids = {
        "bos_token_id": begin,
        "eos_token_id": end,
        "cls_token_id": tokenizer.cls_token_id,
        "sep_token_id": tokenizer.sep_token_id,
        "unk_index": tokenizer.unk_token_id,
        "mask_index": tokenizer.mask_token_id,
        "forced_bos_token_id": begin,
        "forced_eos_token_id": end,
    }
    fitted.pad_token_id = tokenizer.pad_token_id
    for name, value in ids.items():
        if getattr(config, name, None) is not None:
            setattr(fitted, name, value)
    if config.is_encoder_decoder:
        start = getattr(config, "decoder_start_token_id", None)
        # BART starts decoding with its end token, T5 and Marian with the padding; a new start plays the same
        # role.
        same_as_end = start is not None and start == config.eos_token_id
        fitted.decoder_start_token_id = end if same_as_end else tokenizer.pad_token_id


def _fit_positions(fitted: PretrainedConfig, max_length: int) -> int | None:
    """Make room for the offset of positions, and return the longest window; None where it is not bounded."""
    positions = getattr(fitted, "max_position_embeddings", None)
    if not isinstance(positions, int) or positions < 1:
        return None
    if isinstance(fitted, TransformerConfig) and fitted.positions != "learned":
        fitted.max_position_embeddings = max(positions, max_length)
        return int(fitted.max_position_embeddings)
    offset = first_position(fitted)
    if max_length <= positions < max_length + offset:
        positions = max_length + offset
        fitted.max_position_embeddings = positions
    return int(positions - offset)
