"""Vocabularies learned from texts: byte-level BPE, BPE, WordPiece and Unigram, the same for the same texts.

The trainers of the ``tokenizers`` library keep words in hash maps with random seeds. Byte-level BPE does not
depend on their order, but the ids and with them the ties of WordPiece do, and so do the last digits of
Unigram's sums: in tokenizers 0.23.3 three runs over one corpus of 2.6 MB gave three WordPiece vocabularies,
and Unigram scores that differed by 1e-3. A seeded ``fit`` must not differ, so the functions here fix the
alphabet beforehand, and give Unigram pieces their scores by themselves.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["KINDS", "Kind", "learn", "learn_unigram", "learn_wordpiece"]

Kind = Literal["wordpiece", "bpe", "byte_bpe", "unigram"]
KINDS: tuple[Kind, ...] = ("wordpiece", "bpe", "byte_bpe", "unigram")

MIN_FREQUENCY = 2  # a pair seen once teaches nothing
# Characters (bytes where the vocabulary is bytes) in a piece. Without a limit one run of a repeated character
# makes pieces of thousands, and segmenting costs the square of their length.
MAX_PIECE = 32
CONTINUING = "##"
MAX_ALPHABET = 1000  # characters that get a piece of their own, as in BERT's; rarer ones are unknown
# Unigram: candidates per piece that is kept, and rounds of estimating.
CANDIDATES = 1.25
ROUNDS = 3
PSEUDO_COUNT = 0.1  # of pieces that no word uses, so that every score is finite


def _set_pipeline(tokenizer: Tokenizer, kind: Kind, *, lowercase: bool) -> None:
    """Give a tokenizer the normalizer, pre-tokenizer and decoder of a kind; accents are always kept."""
    from tokenizers import decoders, normalizers, pre_tokenizers

    lower = [normalizers.Lowercase()] if lowercase else []
    if kind == "wordpiece":
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=False)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece(prefix=CONTINUING)
    elif kind == "byte_bpe":
        # No Unicode normalisation: the vocabulary is bytes, and decoding gives back exactly what was encoded.
        if lower:
            tokenizer.normalizer = lower[0]
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
    else:
        tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), *lower])
        metaspace = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace])
        tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")


def learn(
    texts: Sequence[str],
    kind: Kind,
    *,
    vocab_size: int,
    special: Sequence[str],
    unknown: str,
    lowercase: bool,
) -> Tokenizer:
    """Learn a vocabulary.

    Parameters
    ----------
    texts : sequence of str
        What to learn from.
    kind : {"wordpiece", "bpe", "byte_bpe", "unigram"}
        The kind of vocabulary.
    vocab_size : int
        Largest number of pieces, special tokens included.
    special : sequence of str
        Special tokens; they get the first ids, in this order.
    unknown : str
        The one of them that stands for what can't be encoded.
    lowercase : bool
        Whether case is ignored.

    Returns
    -------
    Tokenizer
        With its model, normalizer, pre-tokenizer and decoder; it adds no special tokens yet.
    """
    from tokenizers import AddedToken, Tokenizer, models

    tokenizer = Tokenizer(models.BPE())
    _set_pipeline(tokenizer, kind, lowercase=lowercase)
    build: Callable[[Tokenizer, Sequence[str], int, Sequence[str], str], None] = {
        "byte_bpe": _learn_byte_bpe,
        "bpe": _learn_bpe,
        "wordpiece": learn_wordpiece,
        "unigram": learn_unigram,
    }[kind]
    build(tokenizer, texts, vocab_size, special, unknown)
    # A mask token swallows the blank before it, so that masking a word leaves no stray one (as in RoBERTa).
    tokenizer.add_special_tokens(
        [AddedToken(token, lstrip=token == "<mask>", normalized=False, special=True) for token in special]
    )
    return tokenizer


def _learn_byte_bpe(
    tokenizer: Tokenizer, texts: Sequence[str], vocab_size: int, special: Sequence[str], unknown: str
) -> None:
    from tokenizers import pre_tokenizers, trainers

    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=MIN_FREQUENCY,
        max_token_length=MAX_PIECE,
        special_tokens=list(special),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)


def _learn_bpe(
    tokenizer: Tokenizer, texts: Sequence[str], vocab_size: int, special: Sequence[str], unknown: str
) -> None:
    from tokenizers import models

    words = _count_words(tokenizer, texts)
    tokenizer.model = models.BPE(unk_token=unknown, fuse_unk=True)
    _train_bpe(tokenizer, texts, vocab_size, special, _alphabet(words, vocab_size - len(special)))


def _train_bpe(
    tokenizer: Tokenizer, texts: Sequence[str], vocab_size: int, special: Sequence[str], alphabet: list[str]
) -> None:
    from tokenizers import trainers

    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=MIN_FREQUENCY,
        max_token_length=MAX_PIECE,
        special_tokens=list(special),
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)


def learn_wordpiece(
    tokenizer: Tokenizer, texts: Sequence[str], vocab_size: int, special: Sequence[str], unknown: str
) -> None:
    """Give a tokenizer with normalizer and pre-tokenizer a WordPiece model; arguments as for `learn`."""
    from tokenizers import models, trainers

    words = _count_words(tokenizer, texts)
    # Each character may need two pieces: at the beginning of a word and inside.
    alphabet = _alphabet(words, (vocab_size - len(special)) // 2)
    inside = sorted({CONTINUING + c for word in words for c in word[1:]} & {CONTINUING + c for c in alphabet})
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=MIN_FREQUENCY,
        max_token_length=MAX_PIECE,
        # Left to the trainer, the inner characters get ids in the order of a hash map; as special tokens they
        # come first, in this order.
        special_tokens=[*special, *inside],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        continuing_subword_prefix=CONTINUING,
        show_progress=False,
    )
    learner = _same_pipeline(tokenizer)
    learner.train_from_iterator(texts, trainer)
    tokenizer.model = models.WordPiece(
        learner.get_vocab(), unk_token=unknown, continuing_subword_prefix=CONTINUING
    )


def learn_unigram(
    tokenizer: Tokenizer, texts: Sequence[str], vocab_size: int, special: Sequence[str], unknown: str
) -> None:
    """Give a tokenizer with normalizer and pre-tokenizer a Unigram model; arguments as for `learn`.

    Candidates come from BPE, probabilities from Viterbi ("hard") EM, and the rarest candidates are dropped
    before the last round.
    """
    from tokenizers import models

    words = _count_words(tokenizer, texts)
    room = vocab_size - len(special)
    alphabet = _alphabet(words, room)
    learner = _same_pipeline(tokenizer)
    _train_bpe(learner, texts, len(alphabet) + math.ceil(CANDIDATES * room), (), alphabet)
    ranked = sorted(learner.get_vocab().items(), key=lambda piece_and_id: piece_and_id[1])
    # Merges come in the order of their frequency, so the first scores follow Zipf's law.
    scores = {piece: -math.log(rank + 2.0) for rank, (piece, _) in enumerate(ranked)}
    for round_ in range(ROUNDS):
        counts = _viterbi_counts(words, scores)
        if round_ == ROUNDS - 2:
            scores = _prune(scores, counts, room, set(alphabet))
            counts = {piece: counts.get(piece, 0) for piece in scores}
        total = sum(counts.values()) + PSEUDO_COUNT * len(scores)
        scores = {piece: math.log((counts.get(piece, 0) + PSEUDO_COUNT) / total) for piece in scores}
    learned = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    vocabulary = [(token, 0.0) for token in special] + learned
    tokenizer.model = models.Unigram(vocabulary, unk_id=list(special).index(unknown), byte_fallback=False)


def _viterbi_counts(words: Mapping[str, int], scores: Mapping[str, float]) -> dict[str, int]:
    """Count the pieces in the most probable segmentation of every word."""
    from tokenizers import models

    unknown = ("<unk>", min(scores.values(), default=0.0) - 10.0)
    model = models.Unigram([unknown, *scores.items()], unk_id=0, byte_fallback=False)
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for token in model.tokenize(word):
            if token.id != 0:
                counts[token.value] += count
    return counts


def _prune(
    scores: Mapping[str, float], counts: Mapping[str, int], room: int, keep: set[str]
) -> dict[str, float]:
    others = sorted(
        (piece for piece in scores if piece not in keep), key=lambda piece: (-counts.get(piece, 0), piece)
    )
    used = [piece for piece in others if counts.get(piece, 0) >= MIN_FREQUENCY]
    kept = keep | set(used[: max(0, room - len(keep))])
    return {piece: score for piece, score in scores.items() if piece in kept}


def _count_words(tokenizer: Tokenizer, texts: Sequence[str]) -> Counter[str]:
    normalizer, splitter = tokenizer.normalizer, tokenizer.pre_tokenizer
    words: Counter[str] = Counter()
    for text in texts:
        clean = text if normalizer is None else normalizer.normalize_str(text)
        words.update(word for word, _ in splitter.pre_tokenize_str(clean))
    return words


def _alphabet(words: Mapping[str, int], room: int) -> list[str]:
    """Return the most frequent characters, sorted; ties are broken by the character, never by a hash."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    ranked = sorted(counts, key=lambda character: (-counts[character], character))
    return sorted(ranked[: max(0, min(room, MAX_ALPHABET))])


def _same_pipeline(tokenizer: Tokenizer) -> Tokenizer:
    from tokenizers import Tokenizer, models

    other = Tokenizer(models.BPE())
    other.normalizer = tokenizer.normalizer
    other.pre_tokenizer = tokenizer.pre_tokenizer
    return other
