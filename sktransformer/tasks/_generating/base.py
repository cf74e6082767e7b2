"""How an encoder-decoder is trained and writes: what `Seq2SeqGenerator` does behind its methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch

from ..._engine.checkpoints.heads import Head
from ..._engine.checkpoints.loading import Checkpoint
from ..._engine.checkpoints.structure import max_tokens
from ..._engine.devices import draw_seed
from ..._engine.inference.generation.generate import generate
from ..._engine.inference.generation.options import EARLY_STOPPING, Decoding
from ..._engine.inference.generation.positions import RELATIVE
from ..._engine.inference.generation.processors import Never
from ..._engine.inference.generation.rows import Generated, Prompt
from ..._engine.inference.generation.schedule import Run, writing_budget
from ..._engine.text.documents import Documents
from ..._engine.text.encoding import TextEncoder
from ..._engine.text.windows import Cut, Encoded
from ..._engine.training.data import Examples, TrainingData, normalized_weights
from ..._engine.training.sequences import OnSequences
from ..._engine.validation import check_choice, check_number
from .._base import text_encoder
from .._embedding.prompts import prompted
from .._holdout import Parts, held_out
from .._unfitted import WritesUnfitted
from .ids import WritingIds, writing_ids
from .languages import (
    check_languages,
    first_token,
    set_source,
    starts_with_language,
    words_before,
)
from .targets import TargetTexts, encode_targets, longest_target, read_targets, warn_cut_sources

TRUNCATIONS = ("head", "tail", "head_tail")


class SequenceTransformer(WritesUnfitted):
    """A model that turns texts into others; not to be used by itself."""

    _head: ClassVar[Head] = "seq2seq"
    stride = 0

    prefix: str
    target_prefix: str
    source_language: str | None
    target_language: str | None
    max_target_length: int
    label_smoothing: float
    max_new_tokens: int
    min_new_tokens: int
    num_beams: int
    length_penalty: float
    beam_stopping: bool | str
    no_repeat_ngram_size: int
    repetition_penalty: float
    do_sample: bool
    temperature: float
    top_k: int | None
    top_p: float | None
    min_p: float | None

    # -- reading what users pass ------------------------------------------------------------------------------------

    def _validate_common(self) -> None:
        super()._validate_common()
        check_choice("truncation", self.truncation, TRUNCATIONS)
        if self.beam_stopping not in EARLY_STOPPING:
            raise ValueError(f'beam_stopping must be True, False or "never", got {self.beam_stopping!r}.')
        check_number("max_target_length", self.max_target_length, low=1, integer=True)
        for name in ("prefix", "target_prefix"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be str, got {type(getattr(self, name)).__name__}.")
        for name in ("source_language", "target_language"):
            if getattr(self, name) is not None and not isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be str or None, got {type(getattr(self, name)).__name__}.")
        self._decoding(1)

    def _validate_training(self) -> None:
        super()._validate_training()
        check_number("label_smoothing", self.label_smoothing, low=0, high=1, open_high=True)

    def _documents(self, X: Any) -> Documents:
        return _single(super()._documents(X))

    def _documents_again(self, X: Any) -> Documents:
        return _single(super()._documents_again(X))

    def _encode(self, encoder: TextEncoder, documents: Documents, limit: int | None) -> Encoded:
        return self._encode_parts(encoder, documents, limit, [np.arange(len(documents))])[0]

    def _encode_parts(
        self,
        encoder: TextEncoder,
        documents: Documents,
        limit: int | None,
        parts: Sequence[npt.NDArray[np.int64]],
    ) -> list[Encoded]:
        cut = self._cut(limit)
        written = prompted(documents, self._words_before())
        encoded = [encoder.encode(written.take(rows), cut, warn=False) for rows in parts]
        n_cut = sum(part.n_cut for part in encoded)
        warn_cut_sources(n_cut, len(documents), cut.max_length, cut.truncation)
        return encoded

    def _cut(self, limit: int | None = None) -> Cut:
        longest = self.max_length if limit is None else min(self.max_length, limit)
        return Cut(longest, self.truncation, self.head_length)

    def _words_before(self) -> str:
        languages = self.source_language, self.target_language
        return words_before(self.model_.config, self.tokenizer_, *languages) + self.prefix

    # -- what the five steps of fit ask -----------------------------------------------------------------------------

    def _as_targets(self, documents: Documents, y: Any) -> TargetTexts:
        return read_targets(y)

    def _head_config(self, targets: TargetTexts) -> dict[str, Any]:
        return {}

    def _load(self, documents: Documents, targets: TargetTexts) -> Checkpoint:
        # a tokenizer that is trained here learns from both sides
        checkpoint = super()._load(Documents(documents.first + targets.texts), targets)
        self._set_languages(checkpoint)
        return checkpoint

    def _load_checkpoint(self, documents: Documents, **options: Any) -> Checkpoint:
        return super()._load_checkpoint(documents, need_head=True, **options)

    def _set_languages(self, checkpoint: Checkpoint) -> None:
        config, tokenizer = checkpoint.model.config, checkpoint.tokenizer
        check_languages(config, tokenizer, self.source_language, self.target_language)
        set_source(config, tokenizer, self.source_language)

    def _examples(
        self,
        encoder: TextEncoder,
        documents: Documents,
        targets: TargetTexts,
        limit: int,
        parts: Parts,
    ) -> Examples:
        encoded, _ = self._encode_parts(encoder, documents, limit, parts)
        ids = self._writing_ids()
        targets.begin = self._begin(ids)
        longest = longest_target(self._positions(), targets.begin, int(self.max_target_length))
        sequences = encode_targets(encoder, targets.take(parts[0]), ids.end, longest)
        return Examples(encoded, sequences, more=sequences.lengths)

    def _training_data(self, examples: Examples, targets: TargetTexts, weights: torch.Tensor) -> TrainingData:
        # by their tokens, since losses are means over them: so each token of an epoch counts the same
        tokens = examples.targets.lengths  # type: ignore[attr-defined]
        by_token = normalized_weights(weights.double().numpy() * tokens, len(tokens))
        return TrainingData(examples.encoded, examples.targets, by_token, examples.shares, examples.more)

    def _objective(self, targets: TargetTexts) -> OnSequences:
        # where a target ends, any id serves: no token that counts reads it
        return OnSequences(targets.begin, 0, float(self.label_smoothing))

    def _hold_out(self, targets: TargetTexts, seed: int) -> Parts:
        one = np.zeros(len(targets.original), dtype=np.int64)
        return held_out(one, np.array(["pairs"]), self.validation_fraction, seed)

    def _require_same(self, targets: TargetTexts) -> None:
        """Nothing: a model writes any text."""

    def _record_targets(self, targets: TargetTexts) -> None:
        """Nothing is learned but weights."""

    def _adopt_head(self, config: Any) -> None:
        """Nothing: the head is the vocabulary."""

    def _warm_key(self) -> str:
        return f"{super()._warm_key()} {self.source_language}"

    # -- a checkpoint as it is --------------------------------------------------------------------------------------

    def _record_checkpoint(self, checkpoint: Checkpoint, encoder: TextEncoder, documents: Documents) -> None:
        self._set_languages(checkpoint)  # before the encoder is made, which asks the tokenizer
        super()._record_checkpoint(checkpoint, text_encoder(checkpoint), documents)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "model_") and self.source_language is not None:
            set_source(self.model_.config, self.tokenizer_, self.source_language)
            self.text_encoder_ = text_encoder(self._fitted_checkpoint())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    # -- writing ----------------------------------------------------------------------------------------------------

    def _decoding(self, n_outputs: int, ids: WritingIds | None = None, seed: int = 0) -> Decoding:
        own: dict[str, Any] = {}
        if ids is not None:
            first = None if self.target_prefix else self._start(ids)[1]
            own = {"stop_ids": ids.stops, "forced_first": first, "forced_last": ids.last}
        return Decoding(
            max_new_tokens=self.max_new_tokens,
            min_new_tokens=self.min_new_tokens,
            num_beams=self.num_beams,
            length_penalty=self.length_penalty,
            early_stopping=self.beam_stopping,
            no_repeat_ngram_size=self.no_repeat_ngram_size,
            repetition_penalty=self.repetition_penalty,
            do_sample=self.do_sample,
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            num_outputs=n_outputs,
            seed=seed,
            **own,
        )

    def _writing_ids(self) -> WritingIds:
        return writing_ids(self.model_, self.tokenizer_)

    def _positions(self) -> int | None:
        """Return how many tokens the decoder can read; None where it counts distances."""
        config = self.model_.config
        return None if config.model_type in RELATIVE else max_tokens(config, None)

    def _start(self, ids: WritingIds) -> tuple[int, int | None]:
        """Return the token that the decoder starts with, and the one that its text has to begin with, if any."""
        language = first_token(self.model_.config, self.tokenizer_, self.target_language)
        if language is not None and starts_with_language(self.tokenizer_):
            return language, None
        return ids.start, ids.first if language is None else language

    def _begin(self, ids: WritingIds) -> tuple[int, ...]:
        """Return what the decoder reads before a text: the start, a language or another token, the target's prefix."""
        start, first = self._start(ids)
        begin = (start,) if first is None else (start, first)
        if not self.target_prefix:
            return begin
        return (*begin, *self.text_encoder_.targets([self.target_prefix])[0].tolist())

    def _written(self, X: Any, n_outputs: int) -> list[list[Generated]]:
        """Return the texts of each row, as ids with their scores."""
        self._ready()
        self._validate_common()  # parameters may have been set since the fit
        self._set_languages(self._fitted_checkpoint())
        encoded = self._encode_again(X)
        ids = self._writing_ids()
        options = self._decoding(n_outputs, ids, draw_seed(self.random_state) if self.do_sample else 0)
        begin = self._begin(ids) if self.target_prefix else self._start(ids)[:1]
        prompts = [Prompt(part, begin) for part in np.split(encoded.ids, encoded.starts[1:-1])]
        passes = self._passes()
        device = passes.collator.device
        run = Run(passes.model, device, passes.precision, writing_budget(self.token_budget, device))
        never = [Never(ids.never)] if ids.never else []
        return generate(run, prompts if encoded.n_documents else [], options, processors=never)

    def _described(self, written: Generated) -> dict[str, Any]:
        return {
            "text": self.text_encoder_.text(written.ids),
            "score": written.score,
            "n_tokens": len(written.ids),
            "finish": written.finish,
        }


def _single(documents: Documents) -> Documents:
    if documents.second is not None:
        raise ValueError("X must hold one text a row, got pairs; join the two, or pass one column.")
    return documents
