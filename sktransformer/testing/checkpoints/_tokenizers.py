"""Tokenizers of every family, trained on the spot with the special tokens and templates of the real ones."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._engine.checkpoints.vocabularies import learn_unigram, learn_wordpiece
from ..._engine.errors import optional_import
from ._corpus import CORPUS, SENTENCES

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase

MAX_LENGTH = 64
VOCABULARY = 200
BYTE_VOCABULARY = 400  # the 256 bytes, and merges
ROBERTA_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
BERT_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

# A maker gets the folder of the checkpoint, where tokenizers without a "tokenizers" backend keep their files.
Maker = Callable[[Path], "PreTrainedTokenizerBase"]


def _train(tokenizer: Tokenizer, trainer: Any) -> dict[str, Any]:
    tokenizer.train_from_iterator(CORPUS, trainer)
    model: dict[str, Any] = json.loads(tokenizer.to_str())["model"]
    return model


def _merges(model: dict[str, Any]) -> Any:  # Transformers takes pairs, and annotates lines
    # Lists of two since tokenizers 0.20, "a b" before.
    pairs = (merge if isinstance(merge, list) else merge.split(" ") for merge in model["merges"])
    return [(left, right) for left, right in pairs]


def _wordpieces() -> dict[str, int]:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    learn_wordpiece(tokenizer, CORPUS, VOCABULARY, BERT_SPECIAL, "[UNK]")
    return dict(tokenizer.get_vocab())


def bert(folder: Path) -> PreTrainedTokenizerBase:
    from transformers import BertTokenizer

    return BertTokenizer(vocab=_wordpieces(), do_lower_case=True, model_max_length=MAX_LENGTH)


def _byte_bpe(special: list[str]) -> dict[str, Any]:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return _train(
        tokenizer,
        trainers.BpeTrainer(
            vocab_size=BYTE_VOCABULARY,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )


def roberta(folder: Path) -> PreTrainedTokenizerBase:
    from transformers import RobertaTokenizer

    model = _byte_bpe(ROBERTA_SPECIAL)
    return RobertaTokenizer(vocab=model["vocab"], merges=_merges(model), model_max_length=MAX_LENGTH)


def bart(folder: Path) -> PreTrainedTokenizerBase:
    from transformers import BartTokenizer

    model = _byte_bpe(ROBERTA_SPECIAL)
    return BartTokenizer(vocab=model["vocab"], merges=_merges(model), model_max_length=MAX_LENGTH)


def gpt2(folder: Path) -> PreTrainedTokenizerBase:
    from transformers import GPT2Tokenizer

    end = "<|endoftext|>"
    model = _byte_bpe([end])
    return GPT2Tokenizer(
        vocab=model["vocab"], merges=_merges(model), pad_token=end, model_max_length=MAX_LENGTH
    )


def modernbert(folder: Path) -> PreTrainedTokenizerBase:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=BYTE_VOCABULARY,
        special_tokens=BERT_SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    make: Any = PreTrainedTokenizerFast  # untyped in Transformers
    fast: PreTrainedTokenizerBase = make(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=MAX_LENGTH,
        model_input_names=["input_ids", "attention_mask"],
    )
    return fast


def _unigram(special: list[str]) -> list[tuple[str, float]]:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    learn_unigram(tokenizer, CORPUS, VOCABULARY, special, "<unk>")
    return [(piece, score) for piece, score in json.loads(tokenizer.to_str())["model"]["vocab"]]


def camembert(folder: Path) -> PreTrainedTokenizerBase:
    from transformers import CamembertTokenizer

    # The order of the special tokens is that of the published checkpoints.
    special = ["<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED", "<s>", "</s>", "<mask>"]
    return CamembertTokenizer(vocab=_unigram(special), model_max_length=MAX_LENGTH)


def xlm_roberta(folder: Path) -> PreTrainedTokenizerBase:
    from transformers import XLMRobertaTokenizer

    return XLMRobertaTokenizer(vocab=_unigram(ROBERTA_SPECIAL), model_max_length=MAX_LENGTH)


def t5(folder: Path) -> PreTrainedTokenizerBase:
    from transformers import T5Tokenizer

    vocabulary = _unigram(["<pad>", "</s>", "<unk>"])
    return T5Tokenizer(vocab=vocabulary, extra_ids=10, model_max_length=MAX_LENGTH)


def llama(folder: Path) -> PreTrainedTokenizerBase:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import LlamaTokenizer

    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    model = _train(
        tokenizer, trainers.BpeTrainer(vocab_size=500, special_tokens=special, show_progress=False)
    )
    fast = LlamaTokenizer(vocab=model["vocab"], merges=_merges(model), model_max_length=MAX_LENGTH)
    fast.pad_token = "</s>"
    fast.padding_side = "left"
    return fast


def flaubert(folder: Path) -> PreTrainedTokenizerBase:
    """Train FlauBERT's pure Python tokenizer (fastBPE, ``</w>`` at the ends of words)."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    from transformers import FlaubertTokenizer

    optional_import("sacremoses", "flaubert")
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.NFC()
    splitter = pre_tokenizers.BertPreTokenizer()
    tokenizer.pre_tokenizer = splitter
    special = ["<s>", "</s>", "<pad>", "<unk>", *(f"<special{i}>" for i in range(10))]
    # Left to the trainer, the characters at the ends of words get ids in the order of a hash map.
    words = [word for sentence in SENTENCES for word, _ in splitter.pre_tokenize_str(sentence)]
    last = sorted({f"{word[-1]}</w>" for word in words})
    model = _train(
        tokenizer,
        trainers.BpeTrainer(
            vocab_size=VOCABULARY,
            special_tokens=special + last,
            end_of_word_suffix="</w>",
            show_progress=False,
        ),
    )
    vocabulary, merges = folder / "vocab.json", folder / "merges.txt"
    vocabulary.write_text(json.dumps(model["vocab"], ensure_ascii=False), encoding="utf-8")
    # Lines of the XLM format are "left right count", and its reader drops what follows the last line break.
    lines = (f"{left} {right} 1\n" for left, right in _merges(model))
    merges.write_text("".join(lines), encoding="utf-8")
    make: Any = FlaubertTokenizer  # untyped in Transformers
    slow: PreTrainedTokenizerBase = make(
        vocab_file=str(vocabulary),
        merges_file=str(merges),
        do_lowercase=False,
        model_max_length=MAX_LENGTH,
    )
    return slow


def marian(folder: Path) -> PreTrainedTokenizerBase:
    """Train Marian's SentencePiece tokenizer, one model for both languages."""
    from transformers import MarianTokenizer

    sentencepiece = optional_import("sentencepiece", "dev")
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS),
        model_writer=written,
        vocab_size=120,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(written.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
    learned = (processor.id_to_piece(i) for i in range(processor.get_piece_size()))
    pieces = ["</s>", "<unk>", *(p for p in learned if p not in ("<unk>", "<s>", "</s>")), "<pad>"]
    vocabulary = folder / "vocab.json"
    vocabulary.write_text(
        json.dumps({p: i for i, p in enumerate(pieces)}, ensure_ascii=False), encoding="utf-8"
    )
    return MarianTokenizer(
        source_spm=str(folder / "source.spm"),
        target_spm=str(folder / "target.spm"),
        vocab=str(vocabulary),
        source_lang="en",
        target_lang="fr",
        model_max_length=MAX_LENGTH,
    )
