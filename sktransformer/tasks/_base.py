"""The estimator contract, once: documents in, one row a document out, and a state that travels.

Every estimator of `tasks/` is one of these. `fit` reads as five steps everywhere, **validate, load, encode, train,
record**, and only the last one writes on the estimator: a fit that fails or is interrupted leaves what was there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._engine.checkpoints.bundle import from_bundle, to_bundle
from .._engine.checkpoints.heads import Head
from .._engine.checkpoints.loading import Checkpoint, load_checkpoint
from .._engine.checkpoints.sources import resolve
from .._engine.checkpoints.structure import first_position, max_tokens
from .._engine.compat import check_columns
from .._engine.cpu.linear import GRAIN
from .._engine.devices import resolve_device, resolve_precision
from .._engine.inference.aggregation import by_document
from .._engine.inference.forward import Passes, Reader, forward
from .._engine.text.batches import Collator, Rows
from .._engine.text.documents import Documents, as_documents, first_texts
from .._engine.text.encoding import TextEncoder
from .._engine.text.windows import Cut, Encoded, warn_cut
from .._engine.validation import check_number

# Tokens of one forward pass when token_budget="auto". On a CPU the caches decide (benchmarks/budget.py): packed rows
# gain up to 2048 tokens, padded ones lose more to padding than they gain from 512 on. A GPU wants to be filled.
PACKED_CPU, PADDED_CPU = 2048, 512
TRAINING_BUDGET = {"cuda": 16_384, "mps": 4096}
INFERENCE_BUDGET = {"cuda": 65_536, "mps": 8192}

_MOVING = threading.Lock()


class TransformerEstimator(BaseEstimator):
    """What estimators of texts share; not to be used by itself."""

    _head: ClassVar[Head] = "encoder"

    model: Any
    max_length: int
    truncation: Any
    head_length: int
    stride: int
    missing: Any
    token_budget: Any
    device: Any
    precision: str
    verbose: int

    # -- reading what users pass ------------------------------------------------------------------------------------

    def _documents(self, X: Any) -> Documents:
        """Read `X` for `fit`: at least one document."""
        documents = as_documents(X, missing=self.missing)
        if not len(documents):
            raise ValueError(
                f"Found array with 0 sample(s) while a minimum of 1 is required by {type(self).__name__}."
            )
        # bad names of columns show before training
        check_columns(SimpleNamespace(), X, documents.width, reset=True)
        return documents

    def _documents_again(self, X: Any) -> Documents:
        """Read `X` for a fitted estimator: the same columns as in `fit`; it may be empty."""
        documents = as_documents(X, missing=self.missing)
        if len(documents):
            self._check_pairs(documents)
            check_columns(self, X, documents.width, reset=False)
        return documents

    def _check_pairs(self, documents: Documents) -> None:
        if self.pairs_ is not None and (documents.second is not None) != self.pairs_:
            fitted, given = ("pairs of", "single") if self.pairs_ else ("single", "pairs of")
            raise ValueError(
                f"X has {given} texts, but {type(self).__name__} was fitted on {fitted} texts; pass X as in fit."
            )

    def _cut(self, limit: int | None = None) -> Cut:
        longest = self.max_length if limit is None else min(self.max_length, limit)
        return Cut(longest, self.truncation, self.head_length, self.stride)

    # -- load, encode, forward --------------------------------------------------------------------------------------

    def _validate_common(self) -> None:
        """Check the parameters that all estimators have, before anything is loaded."""
        self._cut()
        resolve_precision(self.precision, resolve_device(self.device))
        if self.token_budget != "auto":
            check_number("token_budget", self.token_budget, low=1, integer=True)

    def _load_checkpoint(self, documents: Documents, **options: Any) -> Checkpoint:
        source = resolve(self.model, progress=bool(self.verbose))
        texts = first_texts(documents) if source.config is not None else ()
        return load_checkpoint(source, self._head, texts=texts, max_length=self.max_length, **options)

    def _encode(self, encoder: TextEncoder, documents: Documents, limit: int | None) -> Encoded:
        return encoder.encode(documents, self._cut(limit))

    def _encode_parts(
        self, encoder: TextEncoder, documents: Documents, limit: int | None, parts: Sequence[Rows]
    ) -> list[Encoded]:
        """Encode groups of rows, with one warning for the documents that are cut in all of them."""
        cut = self._cut(limit)
        encoded = [encoder.encode(documents.take(rows), cut, warn=False) for rows in parts]
        warn_cut(sum(part.n_cut for part in encoded), len(documents), cut)
        return encoded

    def _collator(self, checkpoint: Checkpoint, device: torch.device) -> Collator:
        config = checkpoint.model.config
        return Collator(
            layout="packed" if checkpoint.packable and _packs_well(device, self.precision) else "padded",
            pad_token_id=_pad_token_id(checkpoint),
            first_position=first_position(config),
            device=device,
            segments=(getattr(config, "type_vocab_size", None) or 0) > 1,
            # the balance of experts is that of all tokens of a row
            grain=GRAIN if device.type == "cpu" and getattr(config, "num_experts", 1) == 1 else 1,
        )

    def _budget(self, collator: Collator, *, training: bool) -> int:
        if self.token_budget != "auto":
            return int(self.token_budget)
        if collator.device.type == "cpu":
            return PACKED_CPU if collator.layout == "packed" else PADDED_CPU
        return (TRAINING_BUDGET if training else INFERENCE_BUDGET).get(collator.device.type, 4096)

    def _forward(
        self,
        X: Any,
        read: Reader,
        width: int,
        *,
        finish: Callable[[npt.NDArray[np.float32]], npt.NDArray[np.float32]] | None = None,
        aggregation: str = "mean",
        progress: bool = False,
    ) -> npt.NDArray[np.float32]:
        """Run the fitted model over `X`; one row a document, in order; `width` columns when `X` is empty.

        `finish` is applied to the rows of windows before those of a document are aggregated.
        """
        check_is_fitted(self, "model_")
        self._validate_common()  # parameters may have been set since the fit
        encoded = self._encode_again(X)
        if not encoded.n_documents:
            return np.empty((0, width), dtype=np.float32)
        rows = forward(self._passes(progress), encoded, read)
        return by_document(rows if finish is None else finish(rows), encoded, aggregation)

    def _passes(self, progress: bool = False) -> Passes:
        """Return how the fitted model is run, with the model on its device."""
        device = resolve_device(self.device)
        checkpoint = self._fitted_checkpoint()
        with _MOVING:
            checkpoint.model.to(device)  # type: ignore[arg-type]  # the stubs lose `self` there
            if checkpoint.model.training:  # as whoever trained it further may have left it
                checkpoint.model.eval()
        collator = self._collator(checkpoint, device)
        return Passes(
            checkpoint.model,
            collator,
            token_budget=self._budget(collator, training=False),
            precision=resolve_precision(self.precision, device),
            progress=progress,
        )

    def _encode_again(self, X: Any) -> Encoded:
        return self._encode(self.text_encoder_, self._documents_again(X), self.max_length_)

    # -- record -----------------------------------------------------------------------------------------------------

    def _shadow(self) -> Self:
        """Return a second estimator with the same attributes, to be written on and then taken over in one assignment.

        An interrupt between two assignments would leave half an estimator.
        """
        shadow = object.__new__(type(self))
        shadow.__dict__.update(self.__dict__)
        return shadow

    def _record_checkpoint(self, checkpoint: Checkpoint, encoder: TextEncoder, documents: Documents) -> None:
        """Write what every fitted estimator has."""
        self.model_ = checkpoint.model
        self.tokenizer_ = checkpoint.tokenizer
        self.packable_ = checkpoint.packable
        self.text_encoder_ = encoder
        limit = max_tokens(checkpoint.model.config, checkpoint.tokenizer)
        self.max_length_ = int(self.max_length if limit is None else min(self.max_length, limit))
        self.pairs_: bool | None = documents.second is not None

    def _fitted_checkpoint(self) -> Checkpoint:
        return Checkpoint(self.model_, self.tokenizer_, self.packable_)

    @property
    def _stored_head(self) -> Head:
        """The head of the fitted model, where it is not the same for all."""
        return self._head

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    # -- a state that travels ---------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Return parameters and learned state, the model as a bundle of arrays, bytes and strings."""
        state: dict[str, Any] = dict(super().__getstate__())
        if "model_" in state:
            state["bundle_"] = to_bundle(self._fitted_checkpoint(), self._stored_head)
            for rebuilt in ("model_", "tokenizer_", "text_encoder_", "packable_"):
                del state[rebuilt]
        if isinstance(state.get("history_"), pd.DataFrame):
            state["history_"] = state["history_"].to_dict("list")
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Rebuild the model on the CPU; `device` is looked up again when it is used."""
        state = dict(state)
        bundle = state.pop("bundle_", None)
        if bundle is not None:
            checkpoint = from_bundle(bundle)
            state["model_"], state["tokenizer_"] = checkpoint.model, checkpoint.tokenizer
            state["packable_"] = checkpoint.packable
            state["text_encoder_"] = text_encoder(checkpoint)
        if isinstance(state.get("history_"), dict):
            state["history_"] = pd.DataFrame(state["history_"])
        super().__setstate__(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = True
        tags.input_tags.allow_nan = False
        return tags


def text_encoder(checkpoint: Checkpoint) -> TextEncoder:
    """Return the encoder of a checkpoint's documents."""
    config = checkpoint.model.config
    # the heads of T5 and BART read the last end token, and refuse documents with different numbers of them
    ends_once = getattr(config, "is_encoder_decoder", False) and isinstance(config.eos_token_id, int)
    return TextEncoder(checkpoint.tokenizer, left_out=config.eos_token_id if ends_once else None)


def _pad_token_id(checkpoint: Checkpoint) -> int:
    """Any id serves where a mask hides it, so a model without a padding token pads with id 0."""
    for holder in (checkpoint.model.config, checkpoint.tokenizer):
        pad = getattr(holder, "pad_token_id", None)
        if isinstance(pad, int):
            return pad
    return 0


def _packs_well(device: torch.device, precision: str) -> bool:
    """Packing pays on a CPU, and on a GPU where the variable-length flash kernel takes the dtype (not float32)."""
    return device.type == "cpu" or resolve_precision(precision, device) is not torch.float32
