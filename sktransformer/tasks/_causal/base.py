"""How a decoder is trained and goes on from texts: what `CausalLMGenerator` does behind its methods."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils.validation import check_consistent_length

from ..._engine.checkpoints.heads import Head
from ..._engine.checkpoints.loading import Checkpoint
from ..._engine.compat import check_columns, n_rows, sample_weights
from ..._engine.inference.forward import forward
from ..._engine.inference.likelihood import TokenLosses, reads_packed
from ..._engine.text.batches import Collator
from ..._engine.text.documents import Documents
from ..._engine.text.encoding import TextEncoder
from ..._engine.training.data import Examples, TokenTargets, TrainingData, normalized_weights
from ..._engine.training.language_modelling import OnNextTokens
from ..._engine.validation import check_choice, check_flag, check_number
from .._base import PADDED_CPU
from .._holdout import Parts, held_out
from .._unfitted import WritesUnfitted
from .examples import Lines, Responses, lines, read_responses, warn_cut_examples
from .prompts import PromptEncoder, Prompts, end_tokens, read_prompts, start_token

CHATS = ("auto", "always", "never")


class ContinuingTransformer(WritesUnfitted):
    """A model that goes on from texts; not to be used by itself."""

    _head: ClassVar[Head] = "causal"
    # a prompt that is too long keeps its end, and windows of whole texts do not overlap
    truncation = "tail"
    head_length = 1
    stride = 0

    chat: str
    packing: bool
    responds_: bool

    # -- reading what users pass ------------------------------------------------------------------------------------

    def _validate(self, X: Any, y: Any, sample_weight: Any) -> tuple[Prompts, Responses, Any]:
        self._validate_training()
        prompts = self._prompts(X)
        if not len(prompts):
            raise ValueError(
                f"Found array with 0 sample(s) while a minimum of 1 is required by {type(self).__name__}."
            )
        check_columns(SimpleNamespace(), X, prompts.width, reset=True)
        if y is not None:
            check_consistent_length(prompts.first, range(n_rows(y)))
        return prompts, self._as_targets(prompts, y), sample_weights(sample_weight, len(prompts))

    def _validate_common(self) -> None:
        super()._validate_common()
        check_number(
            "max_length", self.max_length, low=2, integer=True
        )  # one token to tell, one to tell it from
        check_choice("chat", self.chat, CHATS)
        check_flag("packing", self.packing)

    def _validate_training(self) -> None:
        super()._validate_training()
        if isinstance(self.scoring, str):
            raise TypeError(
                f"scoring must be None or a callable, got {self.scoring!r}: scikit-learn's named scorers read no texts."
            )

    def _prompts(self, X: Any) -> Prompts:
        return read_prompts(X, self.missing)

    def _prompts_again(self, X: Any) -> Prompts:
        prompts = self._prompts(X)
        if len(prompts):
            check_columns(self, X, prompts.width, reset=False)
        return prompts

    # -- what the five steps of fit ask -----------------------------------------------------------------------------

    def _as_targets(self, documents: Any, y: Any) -> Responses:
        return read_responses(y, len(documents))

    def _load(self, documents: Documents, targets: Responses) -> Checkpoint:
        # a tokenizer that is trained here learns from both sides
        return super()._load(Documents(documents.first + targets.texts), targets)

    def _load_checkpoint(self, documents: Documents, **options: Any) -> Checkpoint:
        return super()._load_checkpoint(documents, need_head=True, **options)

    def _head_config(self, targets: Responses) -> dict[str, Any]:
        return {}

    def _examples(
        self,
        encoder: TextEncoder,
        documents: Documents,
        targets: Responses,
        limit: int,
        parts: Parts,
    ) -> Examples:
        found = [self._lines(documents.take(rows), targets.take(rows), limit, ends=True) for rows in parts]
        warn_cut_examples(sum(one.n_cut for one in found), len(documents), limit)
        examples = found[0]
        if not examples.tokens.any():
            raise ValueError("no text of X has two tokens, so there is nothing to learn; pass longer texts.")
        shares = examples.counted / np.maximum(examples.tokens[examples.encoded.document], 1)
        return Examples(examples.encoded, TokenTargets(examples.targets), shares)

    def _training_data(self, examples: Examples, targets: Responses, weights: torch.Tensor) -> TrainingData:
        # by their tokens, since losses are means over them: so each token of an epoch counts the same
        counts = (examples.targets.values >= 0).numpy()  # type: ignore[attr-defined]
        owners = np.repeat(examples.encoded.document, examples.encoded.lengths)
        tokens = np.bincount(owners, weights=counts, minlength=examples.encoded.n_documents)
        by_token = normalized_weights(weights.double().numpy() * tokens, len(tokens))
        return TrainingData(examples.encoded, examples.targets, by_token, examples.shares)

    def _objective(self, targets: Responses) -> OnNextTokens:
        return OnNextTokens()

    def _hold_out(self, targets: Responses, seed: int) -> Parts:
        one = np.zeros(len(targets.original), dtype=np.int64)
        return held_out(one, np.array(["texts"]), self.validation_fraction, seed)

    def _require_same(self, targets: Responses) -> None:
        """Nothing: a model writes any text."""

    def _record_targets(self, targets: Responses) -> None:
        self.responds_ = targets.given

    def _adopt_head(self, config: Any) -> None:
        self.responds_ = False

    def _scorer_names(self) -> list[str]:
        return (
            [self.scoring] if isinstance(self.scoring, str) else []
        )  # `_validate_training` refuses it, and says why

    def _default_scorer(self) -> Callable[..., float]:
        return lambda candidate, rows, expected: float(candidate.score(rows, _none(expected)))

    def _collator(self, checkpoint: Checkpoint, device: torch.device) -> Collator:
        padded = super()._collator(checkpoint, device)
        packs = self.packing and reads_packed(checkpoint.model)
        return Collator("packed" if packs else "padded", padded.pad_token_id, 0, device)

    def _budget(self, collator: Collator, *, training: bool) -> int:
        if self.token_budget == "auto" and collator.device.type == "cpu":
            return PADDED_CPU  # a packed row's attention is over all of it, its mask hides the other texts
        return super()._budget(collator, training=training)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags

    # -- tokens and their likelihoods -------------------------------------------------------------------------------

    def _prompt_encoder(self) -> PromptEncoder:
        start = start_token(self.model_, self.tokenizer_)
        return PromptEncoder(self.text_encoder_, self.tokenizer_, self.chat, start)

    def _lines(self, prompts: Any, responses: Responses, limit: int, *, ends: bool) -> Lines:
        stops = end_tokens(self.model_, self.tokenizer_) if ends or responses.given else ()
        end = (
            self.tokenizer_.eos_token_id if self.tokenizer_.eos_token_id in stops else next(iter(stops), None)
        )
        return lines(self._prompt_encoder(), prompts, responses, end, limit)

    def _losses(self, X: Any, y: Any) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Return the sum of -log p, in nats, of each row's tokens that count, and their number."""
        self._ready()
        self._validate_common()
        prompts = self._prompts_again(X)
        if y is not None:
            check_consistent_length(prompts.first, range(n_rows(y)))
        if not len(prompts):
            return np.zeros(0), np.zeros(0, dtype=np.int64)
        found = self._lines(prompts, read_responses(y, len(prompts)), self._limit(), ends=False)
        warn_cut_examples(found.n_cut, len(prompts), self._limit())
        sums = forward(self._passes(), found.encoded, TokenLosses(found.encoded, found.targets))[:, 0]
        totals = np.bincount(found.encoded.document, weights=sums, minlength=len(prompts))
        return totals.astype(np.float64), found.tokens

    def _limit(self) -> int:
        return min(int(self.max_length), self.max_length_)


def _none(expected: Any) -> Any:
    """Return the held-out responses; None where there are none."""
    return None if len(expected) and expected[0] is None else expected
