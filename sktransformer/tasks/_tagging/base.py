"""What a tagger does with words and tensors: the steps of fit and prediction below its public methods."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..._engine.checkpoints.extra_weights import read_extra_weights
from ..._engine.checkpoints.heads import Head
from ..._engine.checkpoints.loading import Checkpoint
from ..._engine.checkpoints.sources import resolve
from ..._engine.compat import sample_weights
from ..._engine.errors import CheckpointCorruptError, WrongTaskError, warn_user
from ..._engine.inference.forward import forward_tokens, read_token_logits
from ..._engine.text.documents import Documents
from ..._engine.text.encoding import TextEncoder
from ..._engine.text.windows import Cut
from ..._engine.text.words import encode_words
from ..._engine.training.data import Examples, TokenTargets
from ..._engine.training.losses import Objective
from ..._engine.training.token_losses import BEGINS, ENDS, NOT_COUNTED, OnChain, OnTokens
from ..._engine.validation import check_choice, check_number
from ...nn.crf import LinearChainCRF
from .._holdout import Parts, held_out
from .._training import TrainedTransformer
from .chains import DECODINGS, Scores, chain_of
from .entity_scores import require_entity_scores
from .schemes import OUTSIDE, detect_scheme
from .sentences import Sentences, as_sentences
from .tags import Tags, as_tags, check_scheme

CHAIN = "crf"  # its place in the model, and the beginning of its weights' names
LOOKED_AT = 64  # sentences that are tagged at the end of a fit


class Tagger(TrainedTransformer):
    """A `TrainedTransformer` over words; not to be used by itself."""

    _head: ClassVar[Head] = "tokens"

    scheme: str | None
    decoding: str
    classes_: npt.NDArray[Any]
    scheme_: str | None
    score: Callable[[Any, Any], float]
    predict: Callable[[Any], list[npt.NDArray[Any]]]

    # -- the five steps of fit --------------------------------------------------------------------------------------

    def _validate_common(self) -> None:
        check_scheme(self.scheme)
        check_choice("decoding", self.decoding, DECODINGS)
        check_number("max_length", self.max_length, low=1, integer=True)
        check_number("stride", self.stride, low=0, integer=True)
        super()._validate_common()

    def _cut(self, limit: int | None = None) -> Cut:
        longest = self.max_length if limit is None else min(self.max_length, limit)
        return Cut(longest, "chunk", stride=min(self.stride, longest // 4))

    def _validate(self, X: Any, y: Any, sample_weight: Any) -> tuple[Documents, Any, Any]:
        self._validate_training()
        sentences = as_sentences(X, missing=self.missing)
        if not len(sentences):
            raise ValueError(
                f"Found array with 0 sample(s) while a minimum of 1 is required by {type(self).__name__}."
            )
        tags = self._as_targets(sentences, y)
        weights = sample_weights(sample_weight, len(sentences))
        if self.early_stopping and self.scoring is None and tags.scheme is not None:
            require_entity_scores()  # before training, not after its first epoch
        kept = np.flatnonzero(sentences.lengths)  # a sentence without words has nothing to learn
        if len(kept) < len(sentences):
            sentences, tags = sentences.take(kept), tags.take(kept)
            weights = None if weights is None else weights[kept]
        return sentences, tags, weights

    def _load(self, documents: Documents, targets: Tags) -> Checkpoint:
        checkpoint = super()._load(documents, targets)
        before = getattr(checkpoint.model, CHAIN, None)  # of an earlier fit, where this one goes on
        if before is not None:
            delattr(checkpoint.model, CHAIN)
        if self.decoding == "crf":
            chain = chain_of(targets.classes.tolist(), targets.scheme, float(self.learning_rate))
            if before is not None:
                chain.load_state_dict(before.state_dict())
            checkpoint.model.add_module(CHAIN, chain)
        return checkpoint

    def _examples(
        self,
        encoder: TextEncoder,
        documents: Documents,
        targets: Tags,
        limit: int,
        parts: Parts,
    ) -> Examples:
        chosen, words = targets.take(parts[0]), _words_of(documents.take(parts[0]))
        placed = encode_words(encoder, words, self._cut(limit))
        n_tokens, n_windows = len(placed.encoded.ids), placed.encoded.n_windows
        labels = np.full(n_tokens, NOT_COUNTED, dtype=np.int64)
        labels[placed.tokens] = chosen.index
        # a window has the share of its sentence's weight that it has of its words
        held = np.bincount(placed.window, minlength=n_windows)
        shares = held / chosen.lengths[placed.encoded.document]
        if self.decoding != "crf":
            return Examples(placed.encoded, TokenTargets(torch.from_numpy(labels)), shares)
        marks = np.zeros(n_tokens, dtype=np.int64)
        behind = np.cumsum(chosen.lengths)
        marks[placed.tokens[behind - chosen.lengths]] += BEGINS
        marks[placed.tokens[behind - 1]] += ENDS
        return Examples(
            placed.encoded, TokenTargets(torch.from_numpy(np.stack([labels, marks], axis=1))), shares
        )

    def _as_targets(self, documents: Any, y: Any) -> Tags:
        return as_tags(y, documents, self.scheme)

    def _head_config(self, targets: Tags) -> dict[str, Any]:
        names = [str(tag) for tag in targets.classes]
        return {
            "num_labels": len(names),
            "id2label": dict(enumerate(names)),
            "label2id": {name: i for i, name in enumerate(names)},
        }

    def _objective(self, targets: Tags) -> Objective:
        return OnChain() if self.decoding == "crf" else OnTokens()

    def _row_weights(
        self, targets: Tags, weights: npt.NDArray[np.float64] | None
    ) -> npt.NDArray[np.float64] | None:
        # by their words, since losses are means over them: so each word of a step counts the same
        words = targets.lengths.astype(np.float64)
        return words if weights is None else weights * words

    def _hold_out(self, targets: Tags, seed: int) -> Parts:
        """Keep sentences with and without entities apart, where there are several of both."""
        marked = np.array([any(tag != OUTSIDE for tag in tags) for tags in targets.original], dtype=np.int64)
        if targets.scheme is None or np.bincount(marked, minlength=2).min() < 2:
            marked = np.zeros_like(marked)
        names = np.array(["without entities", "with entities"])[: marked.max() + 1]
        return held_out(marked, names, self.validation_fraction, seed)

    def _require_same(self, targets: Tags) -> None:
        if not np.array_equal(self.classes_, targets.classes) or self.scheme_ != targets.scheme:
            raise ValueError(
                f"warm_start=True needs the tags of the first fit, {self.classes_.tolist()}, "
                f"got {targets.classes.tolist()}; pass warm_start=False."
            )

    def _check_outcome(self, candidate: Self, documents: Documents, targets: Tags) -> None:
        """Warn when sentences of several tags are given a single one."""
        varied = [i for i, tags in enumerate(targets.original) if len(set(tags)) > 1][:LOOKED_AT]
        if not varied:
            return
        found = {tag for row in candidate.predict(_words_of(documents.take(varied))) for tag in row.tolist()}
        if len(found) == 1:
            warn_user(
                f"training collapsed: every word is taken for {found.pop()!r}; lower learning_rate, raise "
                f"warmup_ratio or max_epochs, or try another random_state.",
                ConvergenceWarning,
            )

    def _record_targets(self, targets: Tags) -> None:
        self.classes_, self.scheme_ = targets.classes, targets.scheme

    def _default_scorer(self) -> Any:
        return _own_score

    # -- prediction -------------------------------------------------------------------------------------------------

    def _scores(self, X: Any) -> tuple[list[Scores], Sentences]:
        """Return the scores (n_words, C) of each sentence's words, and the sentences."""
        check_is_fitted(self, "model_")
        self._validate_common()  # parameters may have been set since the fit
        sentences = as_sentences(X, missing=self.missing)
        lengths = sentences.lengths
        full = np.flatnonzero(lengths)
        rows = np.empty((0, len(self.classes_)), dtype=np.float32)
        if len(full):
            words = [sentences.words[i] for i in full]
            placed = encode_words(self.text_encoder_, words, self._cut(self.max_length_))
            rows = forward_tokens(self._passes(), placed.encoded, read_token_logits)[placed.tokens]
        return np.split(rows, np.cumsum(lengths)[:-1]) if len(lengths) else [], sentences

    def _chain(self) -> LinearChainCRF | None:
        """Return what ties a word's tag to its neighbours', on the CPU in float64; None where nothing does."""
        if self.decoding == "argmax" or (self.decoding == "bio" and self.scheme_ is None):
            return None
        chain = chain_of(self.classes_.tolist(), self.scheme_)
        if self.decoding == "crf":
            learned = getattr(self.model_, CHAIN, None)
            if learned is None:
                raise ValueError(
                    f"decoding='crf' needs transitions that are learned in fit, but this {type(self).__name__} was "
                    f"fitted without; fit it again, or pass decoding='bio'."
                )
            chain.load_state_dict(learned.state_dict())
        return chain.double().eval()

    # -- a state that travels ---------------------------------------------------------------------------------------

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Rebuild the model, and the transitions beside it, which Transformers' class does not know."""
        super().__setstate__(state)
        stored = (state.get("bundle_") or {}).get("weights", {})
        weights = {
            name.removeprefix(f"{CHAIN}."): torch.from_numpy(np.array(array))
            for name, array in stored.items()
            if name.startswith(f"{CHAIN}.")
        }
        if weights:
            self._adopt_chain(weights)

    def _adopt_chain(self, weights: dict[str, torch.Tensor]) -> None:
        chain = chain_of(self.classes_.tolist(), self.scheme_)
        chain.load_state_dict(weights)
        self.model_.add_module(CHAIN, chain.eval())

    def _adopt(self) -> Self:
        super()._adopt()
        if self.decoding == "crf":
            folder = resolve(self.model).folder
            weights = {} if folder is None else read_extra_weights(Path(folder), f"{CHAIN}.")
            if not weights:
                raise WrongTaskError(
                    f"{self.model} holds no transitions of a CRF; pass decoding='bio', or fit it with decoding='crf'."
                )
            self._adopt_chain(weights)
        return self

    def _adopt_head(self, config: Any) -> None:
        names = dict(config.id2label or {})
        labels = [names.get(i) for i in range(len(names))]
        if (
            len(labels) < 2
            or not all(isinstance(label, str) for label in labels)
            or len(set(labels)) < len(labels)
        ):
            raise CheckpointCorruptError(
                f"{self.model}: id2label in config.json must give ids from 0 different names, got {names}; mend it."
            )
        self.classes_ = np.array(labels)
        self.scheme_ = detect_scheme(labels) if self.scheme == "auto" else self.scheme


def _own_score(estimator: Any, X: Any, y: Any) -> float:
    return float(estimator.score(X, y))


def _words_of(documents: Any) -> list[list[str]]:
    words: list[list[str]] = documents.words
    return words
