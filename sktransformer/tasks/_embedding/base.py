"""What `TransformerEmbedder` does behind its methods: roles, vectors by way of the cache, the steps of a training."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ..._engine.checkpoints.fingerprint import fingerprint, shared_checkpoint
from ..._engine.checkpoints.heads import Head
from ..._engine.checkpoints.loading import Checkpoint, load_checkpoint
from ..._engine.checkpoints.sentence_files import SentenceFiles, read_sentence_files, write_sentence_files
from ..._engine.checkpoints.sources import resolve
from ..._engine.compat import check_columns
from ..._engine.devices import draw_seed, resolve_device, resolve_precision, seeded
from ..._engine.inference.aggregation import AGGREGATIONS, by_document
from ..._engine.inference.forward import Reader, forward
from ..._engine.inference.output import DTYPES, Output, calibration_rows, scale_of
from ..._engine.inference.pooling import POOLINGS, reader
from ..._engine.inference.vector_cache import Entry, VectorCache, cache_for, key_of
from ..._engine.text.batches import Collator
from ..._engine.text.documents import Documents
from ..._engine.text.encoding import TextEncoder
from ..._engine.text.windows import Cut, Encoded, warn_cut
from ..._engine.training.contrastive import CosineRanking, InBatchNegatives, SupervisedContrastive
from ..._engine.training.data import DocumentTargets, Examples
from ..._engine.training.fit import TrainingSettings
from ..._engine.training.groups import GroupedData
from ..._engine.training.net import Data
from ..._engine.training.steps import CachedGradients, Step
from ..._engine.validation import check_choice, check_number
from .._base import text_encoder
from .._holdout import Parts
from .._training import TrainedTransformer
from .prompts import ROLES, check_prompts, own_prompts, prompt_of, prompted
from .targets import FINE_TUNE, EmbeddingTargets, as_targets, default_score, held_out

Vectors = npt.NDArray[np.float32]
OBJECTIVES = {"labels": SupervisedContrastive, "pairs": InBatchNegatives, "graded": CosineRanking}


class EmbedderBase(TrainedTransformer):
    """The steps of an embedder; not to be used by itself."""

    _head: ClassVar[Head] = "encoder"

    aggregation: str
    pooling: str
    last_layers: int
    prompt: str | None
    prompts: Any
    role: str
    normalize: Any
    truncate_dim: int | None
    output_dtype: str
    memory: Any
    fine_tune: str | None
    temperature: float
    mixing: float

    # -- parameters -------------------------------------------------------------------------------------------------

    def _validate_common(self) -> None:
        super()._validate_common()
        check_choice("pooling", self.pooling, ("auto", *POOLINGS))
        check_choice("aggregation", self.aggregation, AGGREGATIONS)
        check_choice("output_dtype", self.output_dtype, DTYPES)
        check_number("last_layers", self.last_layers, low=1, integer=True)
        check_number("verbose", self.verbose, low=0, integer=True)
        if self.truncate_dim is not None:
            check_number("truncate_dim", self.truncate_dim, low=1, integer=True)
        if self.normalize != "auto" and not isinstance(self.normalize, (bool, np.bool_)):
            raise TypeError(
                f"normalize must be True or False, got {type(self.normalize).__name__} ({self.normalize!r}), "
                f'or be "auto".'
            )
        check_prompts(self.prompt, self.prompts, self.role)
        cache_for(self.memory)

    def _validate_training(self) -> None:
        super()._validate_training()
        check_number("temperature", self.temperature, low=0, open_low=True)
        check_number("mixing", self.mixing, low=0, high=1, open_low=True)
        if self.fine_tune is None:
            return
        check_choice("fine_tune", self.fine_tune, FINE_TUNE)
        if self.freeze == "all":
            raise ValueError('freeze="all" leaves fine_tune nothing to train; pass fine_tune=None.')
        if self.batch_size < 2:
            raise ValueError("batch_size=1 leaves a row nothing to be compared with; pass 2 or more.")
        if isinstance(self.scoring, str):
            raise ValueError(
                f"scoring={self.scoring!r} scores predictions, and an embedder has none; pass None or a callable "
                f"scoring(embedder, X, y)."
            )

    def _check_shape(self, config: Any) -> None:
        """Compare parameters with the model that they are for."""
        width, n_layers = int(config.hidden_size), int(config.num_hidden_layers)
        if self.truncate_dim is not None and self.truncate_dim > width:
            raise ValueError(
                f"truncate_dim={self.truncate_dim} is more than the {width} columns of the model."
            )
        if self.pooling == "mean_last" and self.last_layers > n_layers:
            raise ValueError(
                f"last_layers={self.last_layers} is more than the {n_layers} layers of the model."
            )

    # -- what the checkpoint's own files say -------------------------------------------------------------------------

    def _files_of(self, checkpoint: Checkpoint) -> SentenceFiles:
        """Read them, or go on with those of an earlier fit, whose weights a warm start goes on with."""
        fitted = hasattr(self, "history_") and hasattr(self, "sentence_files_")
        goes_on = fitted and self.fine_tune is not None and bool(self.warm_start)
        return self._files if goes_on else read_sentence_files(checkpoint.folder)

    def _pooling(self, files: SentenceFiles) -> str:
        if self.pooling != "auto":
            return self.pooling
        if files.fault is not None:
            raise ValueError(
                f'pooling="auto": {self.model} was trained with {files.fault}, which is not read here; name a pooling '
                f"to go without it: one of {POOLINGS}."
            )
        return files.pooling or "mean"

    @property
    def _files(self) -> SentenceFiles:
        return SentenceFiles(**self.sentence_files_)

    def _reader(self, files: SentenceFiles) -> Reader:
        return reader(self._pooling(files), int(self.last_layers))

    def _output(self) -> Output:
        normalize = self._files.normalize if isinstance(self.normalize, str) else bool(self.normalize)
        return Output(self.truncate_dim, normalize, self.output_dtype)

    def _prompted(self, documents: Documents, role: str | None) -> Documents:
        own = own_prompts(self.model, self._files)
        words = prompt_of(role, own, prompt=self.prompt, prompts=self.prompts, default_role=self.role)
        return prompted(documents, words)

    def _check_role(self, role: Any) -> None:
        if role is not None:
            check_choice("role", role, ROLES)

    def _view(self, role: str) -> Self:
        """Return a fitted embedder with the very same weights, whose texts have `role`."""
        check_is_fitted(self, "model_")
        self._check_role(role)
        own = own_prompts(self.model, self._files)
        view = self._shadow()
        view.prompt = prompt_of(role, own, prompt=self.prompt, prompts=self.prompts, default_role=self.role)
        view.role = role
        return view

    def _check_pairs(self, documents: Documents) -> None:
        if self.fine_tune in ("pairs", "graded") and documents.second is not None:
            raise ValueError(
                f"X has pairs of texts, but {type(self).__name__} was fine-tuned on pairs, whose texts it embeds one "
                f"by one; pass one column."
            )
        super()._check_pairs(documents)

    # -- vectors ----------------------------------------------------------------------------------------------------

    def _floats(self, documents: Documents, role: str | None) -> Vectors:
        """Return unit vectors of documents in a role, whatever the user wants them turned into."""
        found = self._vectors(self._prompted(documents, role))
        return Output(self.truncate_dim, True, "float32").floats(found)

    def _vectors(self, documents: Documents) -> Vectors:
        """Return a raw vector (n, H) a document; each different document is read once, or found in the cache."""
        rows = list(zip(*(column for column in (documents.first, documents.second) if column), strict=True))
        cache = cache_for(self.memory)
        context = b"" if cache is None else self._context()
        keys = [key_of(context, row) for row in rows]
        known = {} if cache is None else cache.get(list(dict.fromkeys(keys)))
        # the first row of each key that is not known
        places = {key: i for i, key in reversed(list(enumerate(keys))) if key not in known}
        order = sorted(places.values())
        if order:
            known |= self._encoded_anew(documents.take(order), [keys[i] for i in order], cache)
        warn_cut(sum(known[key].cut for key in keys), len(rows), self._cut(self.max_length_))
        return np.stack([known[key].vector for key in keys])

    def _encoded_anew(
        self, documents: Documents, keys: list[bytes], cache: VectorCache | None
    ) -> dict[bytes, Entry]:
        cut = self._cut(self.max_length_)
        encoded = self.text_encoder_.encode(documents, cut, warn=False)
        rows = forward(self._passes(bool(self.verbose)), encoded, self._reader(self._files))
        vectors = by_document(rows, encoded, self.aggregation)
        is_cut = _which_cut(self.text_encoder_, documents, encoded, cut)
        entries = {key: Entry(*entry) for key, *entry in zip(keys, vectors, is_cut, strict=True)}
        if cache is not None:
            cache.put(entries)
        return entries

    def _context(self) -> bytes:
        """Everything but the text that a raw vector depends on."""
        cut = self._cut(self.max_length_)
        device = resolve_device(self.device)
        how = (cut.max_length, cut.truncation, cut.head_length, cut.stride, self.aggregation)
        read = (
            self._pooling(self._files),
            int(self.last_layers),
            str(resolve_precision(self.precision, device)),
        )
        return fingerprint(self.model_, self.tokenizer_) + repr((how, read)).encode()

    # -- a frozen fit -----------------------------------------------------------------------------------------------

    def _fit_frozen(self, X: Any) -> Self:
        self._validate_training()
        documents = self._documents(X)
        with seeded(
            draw_seed(0), resolve_device(self.device)
        ):  # a config's random weights, the same each time
            checkpoint = self._load_frozen(documents)
        self._check_shape(checkpoint.model.config)
        encoder = text_encoder(checkpoint)
        self._encode(encoder, documents.take([]), None)  # raises when max_length leaves no room for a text
        after = self._shadow()
        for name in ("history_", "best_epoch_", "n_epochs_", "classes_", "warm_key_"):
            after.__dict__.pop(name, None)
        check_columns(after, X, documents.width, reset=True)
        after._record_checkpoint(checkpoint, encoder, documents)
        after._pooling(after._files)
        after._calibrate(documents)
        self.__dict__ = after.__dict__
        return self

    def _load_frozen(self, documents: Documents) -> Checkpoint:
        """Load the encoder; with a cache, share it with all that read the same files."""
        source = resolve(self.model, progress=bool(self.verbose))
        if source.folder is None or cache_for(self.memory) is None:
            return self._load_checkpoint(documents)
        return shared_checkpoint(
            source.folder, str(resolve_device(self.device)), lambda: load_checkpoint(source, self._head)
        )

    def _calibrate(self, documents: Documents) -> None:
        """Find the scale of int8 on documents of the fit; other kinds need none."""
        self.__dict__.pop("int8_scale_", None)
        if self.output_dtype != "int8":
            return
        sample = self._prompted(documents.take(calibration_rows(len(documents))), None)
        self.int8_scale_ = scale_of(self._output().floats(self._vectors(sample)))

    def _record_checkpoint(self, checkpoint: Checkpoint, encoder: TextEncoder, documents: Documents) -> None:
        files = self._files_of(checkpoint)
        super()._record_checkpoint(checkpoint, encoder, documents)
        self.sentence_files_ = dict(vars(files))
        if self.fine_tune in ("pairs", "graded"):
            self.pairs_ = False  # the two texts of a row are embedded one by one

    # -- what the steps of a training ask ------------------------------------------------------------------------------

    def _validate(self, X: Any, y: Any, sample_weight: Any) -> tuple[Documents, Any, Any]:
        documents, targets, weights = super()._validate(X, y, sample_weight)
        if self.fine_tune != "labels":  # not the columns that `transform` will get
            documents = Documents(documents.first, documents.second)
        return documents, targets, weights

    def _as_targets(self, documents: Documents, y: Any) -> EmbeddingTargets:
        return as_targets(str(self.fine_tune), documents, y)

    def _row_weights(self, targets: Any, weights: Any) -> Any:
        return None

    def _head_config(self, targets: EmbeddingTargets) -> dict[str, Any]:
        return {}

    def _load(self, documents: Documents, targets: EmbeddingTargets) -> Checkpoint:
        checkpoint = super()._load(documents, targets)
        self._check_shape(checkpoint.model.config)
        return checkpoint

    def _candidate(self, checkpoint: Checkpoint, *args: Any) -> Self:
        candidate = super()._candidate(checkpoint, *args)
        candidate.memory = None  # its weights change under it
        candidate.sentence_files_ = dict(vars(self._files_of(checkpoint)))
        return candidate

    def _hold_out(self, targets: EmbeddingTargets, seed: int) -> Parts:
        return held_out(targets, float(self.validation_fraction), seed)

    def _examples(
        self, encoder: TextEncoder, documents: Documents, targets: EmbeddingTargets, limit: int, parts: Any
    ) -> Examples:
        if targets.kind == "labels":
            encoded, _ = self._encode_parts(encoder, self._prompted(documents, None), limit, parts)
        else:
            roles = ("query", "document") if targets.kind == "pairs" else (None, None)
            columns = (documents.first, documents.second or [])
            texts = [
                self._prompted(Documents(column), role).first
                for column, role in zip(columns, roles, strict=True)
            ]
            rows = [np.concatenate([part, part + len(documents)]) for part in parts]
            encoded, _ = self._encode_parts(encoder, Documents(texts[0] + texts[1]), limit, rows)
        return Examples(encoded, DocumentTargets(targets.take(parts[0]).targets))

    def _training_data(self, examples: Examples, targets: EmbeddingTargets, weights: Any) -> Data:
        n = len(targets.original)
        members = np.arange(examples.encoded.n_documents).reshape(-1, n).T.copy()
        if targets.kind == "labels":
            return GroupedData(examples.encoded, members, targets.targets, targets.targets.numpy())
        if targets.kind == "pairs":  # a text that comes again in its column is read once a batch
            for texts, ids in zip(members.T, targets.targets.numpy().T, strict=True):
                _, firsts, again = np.unique(ids, return_index=True, return_inverse=True)
                texts[:] = texts[firsts][again]
        # the others of its group are hard contrasts, and rows of other groups are needed too
        together = max(2, int(self.batch_size) // 4)
        return GroupedData(examples.encoded, members, targets.targets, targets.groups, together)

    def _settings(self, collator: Collator, seed: int) -> TrainingSettings:
        return replace(super()._settings(collator, seed), mixing=float(self.mixing))

    def _objective(self, targets: EmbeddingTargets) -> Any:
        return OBJECTIVES[targets.kind](float(self.temperature), self.truncate_dim)

    def _step(self, checkpoint: Checkpoint) -> Step:
        return CachedGradients(self._reader(self._files_of(checkpoint)), self.aggregation)

    def _require_same(self, targets: EmbeddingTargets) -> None:
        """Any targets will do: no head was shaped by the earlier ones."""

    def _record_targets(self, targets: EmbeddingTargets) -> None:
        self.__dict__.pop("classes_", None)
        if targets.classes is not None:
            self.classes_ = targets.classes

    def _record(self, X: Any, documents: Documents, checkpoint: Checkpoint, *learned: Any) -> None:
        """Write all that was learned, and what is found with it, at once."""
        after, files = self._shadow(), self._files_of(checkpoint)
        super(EmbedderBase, after)._record(X, documents, checkpoint, *learned)
        after.sentence_files_ = dict(vars(files))
        after._calibrate(documents if self.fine_tune == "labels" else Documents(documents.first))
        self.__dict__ = after.__dict__

    def _warm_checkpoint(self) -> Checkpoint | None:
        # a frozen fit has trained nothing that could be gone on with
        return super()._warm_checkpoint() if hasattr(self, "history_") else None

    def _default_scorer(self) -> Any:
        kind = str(self.fine_tune)
        return lambda candidate, rows, expected: default_score(kind, candidate._floats, rows, expected)

    def _adopt_head(self, config: Any) -> None:
        """There is none."""

    def _adopt(self) -> Self:
        self._validate_training()
        checkpoint = self._load_frozen(Documents([]))
        self._check_shape(checkpoint.model.config)
        self._record_checkpoint(checkpoint, text_encoder(checkpoint), Documents([]))
        self._pooling(self._files)
        self.pairs_ = None  # a checkpoint does not say whether it was trained on pairs
        return self

    def _save(self, folder: str | os.PathLike[str]) -> None:
        """Write the checkpoint, and beside it what sentence-transformers and ``pooling="auto"`` need."""
        super().save_pretrained(folder)
        own = own_prompts(self.model, self._files)
        chosen = {
            role: prompt_of(role, own, prompt=self.prompt, prompts=self.prompts, default_role=self.role)
            for role in ROLES
        }
        write_sentence_files(
            Path(folder).expanduser(),
            pooling=self._pooling(self._files),
            width=int(self.model_.config.hidden_size),
            normalize=self._output().normalize,
            prompts={role: words for role, words in chosen.items() if words},
        )


def _which_cut(
    encoder: TextEncoder, documents: Documents, encoded: Encoded, cut: Cut
) -> npt.NDArray[np.bool_]:
    """Return whether each document lost tokens: those that fill a window and, read alone, are counted."""
    n = encoded.n_documents
    if encoded.n_cut in (0, n):
        return np.full(n, encoded.n_cut > 0)
    full = np.unique(encoded.document[encoded.lengths >= cut.max_length])
    lost = np.zeros(n, dtype=bool)
    for row in full:
        lost[row] = encoder.encode(documents.take([int(row)]), cut, warn=False).n_cut > 0
    return lost
