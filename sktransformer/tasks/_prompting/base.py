"""How `PromptClassifier` gets ready and reads: everything but its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ..._engine.checkpoints.heads import Head, writes
from ..._engine.checkpoints.loading import Checkpoint, config_of, load_checkpoint
from ..._engine.checkpoints.sources import resolve
from ..._engine.compat import check_columns, n_rows
from ..._engine.devices import draw_seed, resolve_device, seeded
from ..._engine.errors import say_once
from ..._engine.inference.continuations import Continuations, continuation_scores
from ..._engine.inference.forward import forward, read_logits
from ..._engine.inference.generation.options import MOST_PENALTY
from ..._engine.text.documents import Documents
from ..._engine.text.windows import Cut, warn_cut
from ..._engine.validation import check_choice, check_number
from .._base import TransformerEstimator, text_encoder
from .entailment import entailment_column, judges, require_short
from .frames import FIELDS, PAIR, SINGLE, Frame, asks_for_pairs, check_template, frame
from .probabilities import Floats, label_scores, prior, probabilities
from .shots import check_labels, chosen_shots, classes_of, words_of
from .tokens import Prompter, harmless, label_tokens, special_texts

METHODS = ("auto", "likelihood", "entailment")
CALIBRATIONS = ("auto", "content_free", "none")
CHATS = ("auto", "always", "never")
TRUNCATIONS = ("head_tail", "head", "tail")


class Prompted(TransformerEstimator):
    """What `PromptClassifier` does; not to be used by itself."""

    labels: Any
    method: str
    template: str | None
    instruction: str
    chat: str
    n_shots: int
    length_penalty: float
    calibration: str
    content_free: Sequence[str]
    hypothesis_template: str
    random_state: Any

    classes_: npt.NDArray[Any]
    method_: str
    label_words_: tuple[str, ...]
    examples_: list[Any]
    frame_: dict[str, Any]
    content_free_proba_: npt.NDArray[np.float64] | None

    # -- the steps of fit -------------------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any) -> Self:
        documents, classes, index = self._validate(X, y)
        seed = draw_seed(self.random_state)
        # one fit at a time: Transformers 5.24 that loads T5 in two threads forgets in both, for good, which weights are
        # tied
        with seeded(seed, resolve_device(self.device)), say_once():
            checkpoint, method = self._load()
            after = self._shadow()
            check_columns(after, X, None if documents is None else documents.width, reset=True)
            after.classes_, after.label_words_ = classes, words_of(self.labels, classes)
            after.method_ = method
            after._record_checkpoint(checkpoint, text_encoder(checkpoint), documents or Documents([]))
            if documents is None:
                after.pairs_ = self.template is not None and asks_for_pairs(self.template)
            after._prepare(documents, index, seed)
        self.__dict__ = after.__dict__
        return self

    def _validate(
        self, X: Any, y: Any
    ) -> tuple[Documents | None, npt.NDArray[Any], npt.NDArray[np.int64] | None]:
        self._validate_common()
        check_labels(self.labels)
        documents = None if X is None else self._documents(X)
        if documents is not None and y is not None:
            check_consistent_length(documents.first, range(n_rows(y)))
        if documents is not None and self.template is not None:
            self._require_places(documents.second is not None)
        classes, index = classes_of(self.labels, y)
        if len(set(words_of(self.labels, classes))) < len(classes):
            raise ValueError(f"two labels have the same words: {words_of(self.labels, classes)}.")
        return documents, classes, index if documents is not None else None

    def _require_places(self, pairs: bool) -> None:
        if pairs != asks_for_pairs(str(self.template)):
            raise ValueError(
                f"template={self.template!r} has {'no ' if pairs else 'a '}{{text_pair}}, but X holds "
                f"{'pairs of' if pairs else 'single'} texts; pass a template that fits."
            )

    def _validate_common(self) -> None:
        super()._validate_common()
        check_choice("method", self.method, METHODS)
        check_choice("calibration", self.calibration, CALIBRATIONS)
        check_choice("chat", self.chat, CHATS)
        check_choice("truncation", self.truncation, TRUNCATIONS)
        if self.template is not None:
            check_template("template", self.template, FIELDS, "text")
        check_template("instruction", self.instruction, ("labels",))
        check_template("hypothesis_template", self.hypothesis_template, ("label",), "label")
        check_number("n_shots", self.n_shots, low=0, integer=True)
        check_number("length_penalty", self.length_penalty, low=0, high=MOST_PENALTY)
        free = self.content_free
        listed = isinstance(free, (Sequence, np.ndarray)) and not isinstance(free, str)
        if not listed or not len(free) or not all(isinstance(text, str) for text in free):
            raise ValueError(f"content_free must be a list of one text or more, got {free!r}.")

    def _load(self) -> tuple[Checkpoint, str]:
        source = resolve(self.model, progress=bool(self.verbose))
        if source.config is not None:
            raise ValueError(
                f"model={source.name} has no trained weights, and PromptClassifier trains none; pass a checkpoint, or "
                f"use TransformerClassifier to train one."
            )
        config = config_of(source)
        method = self.method
        if method == "auto":
            method = "entailment" if judges(config) else "likelihood"
        head: Head = "classification" if method == "entailment" else writes(config) or "causal"
        if method == "entailment":
            entailment_column(config, self.model)  # which raises where there is none
        return load_checkpoint(source, head, need_head=True), method

    def _prepare(self, documents: Documents | None, index: npt.NDArray[np.int64] | None, seed: int) -> None:
        """Choose the examples, put the prompt together, and see what texts without content get."""
        self.examples_, self.frame_, self.content_free_proba_ = [], {}, None
        if self.method_ == "entailment":
            if self.pairs_:
                raise ValueError('method="entailment" reads single texts, but X holds pairs of texts.')
            self._entailment(Documents([""]), self._passes())  # says whether there is room for the hypotheses
        else:
            self._put_together(documents, index, seed)
        wanted = {"auto": self.method_ == "likelihood", "content_free": True, "none": False}
        if wanted[self.calibration]:
            free = list(self.content_free)
            self.content_free_proba_ = prior(self._scores(Documents(free, free if self.pairs_ else None)))

    def _put_together(
        self, documents: Documents | None, index: npt.NDArray[np.int64] | None, seed: int
    ) -> None:
        examples: list[tuple[tuple[str, ...], str]] = []
        special = special_texts(self.tokenizer_)
        if documents is not None and index is not None:
            rows = chosen_shots(index, int(self.n_shots), seed)
            shown = documents.take(rows)
            self.examples_ = list(zip(shown.rows(), self.classes_[index[rows]].tolist(), strict=True))
            for row, label in zip(shown.rows(), index[rows], strict=True):
                texts = (row,) if isinstance(row, str) else row
                examples.append((tuple(harmless(text, special) for text in texts), self.label_words_[label]))
        template = self.template or (PAIR if self.pairs_ else SINGLE)
        chat = self.tokenizer_ if self._chats() else None
        put = frame(template, self.instruction, self.label_words_, examples, chat)
        self.frame_ = {"parts": list(put.parts), "gaps": list(put.gaps), "joint": put.joint}
        self._prompter().require_room()

    def _chats(self) -> bool:
        has = getattr(self.tokenizer_, "chat_template", None) is not None
        if self.chat == "always" and not has:
            raise ValueError(
                f'chat="always", but the tokenizer of {self.model} has no chat template; pass "auto".'
            )
        return has and self.chat != "never"

    # -- reading ----------------------------------------------------------------------------------------------------

    def _cut(self, limit: int | None = None) -> Cut:
        longest = self.max_length if limit is None else min(self.max_length, limit)
        return Cut(longest, self.truncation, self.head_length)

    def _continuations(self) -> Continuations:
        alone = self._stored_head == "seq2seq"
        return label_tokens(self.text_encoder_, Frame(**self.frame_), self.label_words_, alone=alone)

    def _prompter(self) -> Prompter:
        writes_apart = self._stored_head == "seq2seq"
        longest = 0 if writes_apart else self._continuations().longest
        return Prompter(
            self.text_encoder_,
            Frame(**self.frame_),
            min(self.max_length, self.max_length_) - longest,
            chat=self._chats(),
            ends=writes_apart,
            special=special_texts(self.tokenizer_),
        )

    def _scores(self, documents: Documents, progress: bool = False) -> npt.NDArray[np.float64]:
        """Return how well each label fits each document (n, C), before calibration."""
        passes = self._passes(progress)
        if self.method_ == "entailment":
            return self._entailment(documents, passes)
        continuations = self._continuations()
        prompts = self._prompter().prompts(documents, self._cut(self.max_length_))
        found = continuation_scores(passes, prompts, continuations)
        return label_scores(found, list(map(len, continuations.ids)), float(self.length_penalty))

    def _entailment(self, documents: Documents, passes: Any) -> npt.NDArray[np.float64]:
        column, cut = entailment_column(self.model_.config, self.model), self._cut(self.max_length_)
        logits, n_cut = [], 0
        hypotheses = [self.hypothesis_template.format(label=word) for word in self.label_words_]
        require_short(self.text_encoder_, hypotheses, cut.max_length)
        for hypothesis in hypotheses:
            pairs = Documents(documents.first, [hypothesis] * len(documents))
            encoded = self.text_encoder_.encode(pairs, cut, warn=False)
            n_cut = max(n_cut, encoded.n_cut)  # the documents that are cut beside the longest hypothesis
            logits.append(forward(passes, encoded, read_logits)[:, column].astype(np.float64))
        warn_cut(n_cut, len(documents), cut)
        return np.stack(logits, axis=1)

    def _probabilities(self, X: Any) -> Floats:
        check_is_fitted(self, "model_")
        self._validate_common()  # parameters may have been set since the fit
        documents = self._documents_again(X)
        if not len(documents):
            return np.empty((0, len(self.classes_)), dtype=np.float32)
        return probabilities(self._scores(documents, bool(self.verbose)), self.content_free_proba_)

    def _filled(self, *texts: str) -> str:
        check_is_fitted(self, "model_")
        if self.method_ == "entailment":
            raise ValueError(
                'method="entailment" has no prompt; a label is asked about as hypothesis_template says.'
            )
        special = special_texts(self.tokenizer_)
        return Frame(**self.frame_).filled([harmless(text, special) for text in texts])

    @property
    def _stored_head(self) -> Head:
        if self.method_ == "entailment":
            return "classification"
        return writes(self.model_.config) or "causal"
