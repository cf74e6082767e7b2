"""How a model that points at spans is trained and read: what `TransformerQuestionAnswerer` does behind its methods."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ..._engine.checkpoints.heads import Head
from ..._engine.errors import WrongTaskError, warn_user
from ..._engine.inference.forward import forward_tokens
from ..._engine.inference.spans import read_span_logits
from ..._engine.text.documents import Documents
from ..._engine.text.encoding import TextEncoder
from ..._engine.text.windows import Cut
from ..._engine.training.data import Examples
from ..._engine.training.spans import SpanLoss
from ..._engine.validation import check_number
from .._holdout import Parts, held_out
from .._training import TrainedTransformer
from .agreement import agreements, best_threshold, f1
from .answers import Answers, locate, original_rows, read_answers
from .reading import Reading, reading
from .windows import Positions, answer_examples, context_windows, warn_of_cuts

LONGEST_STRIDE = 128  # of stride="auto": the doc_stride of BERT's run_squad.py
COLUMNS = ["question", "context"]


@dataclass
class AnswerTargets:
    """Answers as they were given and as they were read, and where they stand: `places` (n, 2), -1 for no answer.

    `threshold` is the one that the fit begins with, and at its end the one that it has learned.
    """

    original: npt.NDArray[Any]
    answers: list[Answers]
    places: Positions
    threshold: float | None

    def take(self, rows: npt.NDArray[np.int64]) -> AnswerTargets:
        """Return the answers of `rows`."""
        chosen = [self.answers[i] for i in rows]
        return AnswerTargets(self.original[rows], chosen, self.places[rows], self.threshold)


class SpanTransformer(TrainedTransformer):
    """A model that finds answers in contexts; not to be used by itself."""

    _head: ClassVar[Head] = "spans"
    truncation = "chunk"  # a context is always read whole
    head_length = 1

    stride: Any  # a number of tokens, or "auto"
    max_answer_length: int
    no_answer_threshold: Any

    # -- reading what users pass ------------------------------------------------------------------------------------

    def _documents(self, X: Any) -> Documents:
        return _require_pairs(super()._documents(X))

    def _documents_again(self, X: Any) -> Documents:
        X = question_columns(X)
        return _require_pairs(super()._documents_again(X))

    def _check_pairs(self, documents: Documents) -> None:
        """Nothing: single texts are refused anyway."""

    def _validate_common(self) -> None:
        super()._validate_common()
        check_number("max_answer_length", self.max_answer_length, low=1, integer=True)
        if self.no_answer_threshold is not None and self.no_answer_threshold != "auto":
            check_number("no_answer_threshold", self.no_answer_threshold)

    def _cut(self, limit: int | None = None) -> Cut:
        if self.stride != "auto":
            return super()._cut(limit)
        cut = Cut(self.max_length if limit is None else min(self.max_length, limit), "chunk")
        # in the smallest windows, below the room that up to four special tokens leave
        return replace(cut, stride=max(0, min(LONGEST_STRIDE, cut.max_length // 3, cut.max_length - 5)))

    def _validate(self, X: Any, y: Any, sample_weight: Any) -> tuple[Documents, AnswerTargets, Any]:
        documents, targets, weights = super()._validate(X, original_rows(y), sample_weight)
        targets.places = locate(targets.answers, documents.given_second)
        return documents, targets, weights

    # -- what the five steps of fit ask ------------------------------------------------------------------------------

    def _as_targets(self, documents: Documents, y: Any) -> AnswerTargets:
        answers = read_answers(y)
        threshold = self.no_answer_threshold
        if threshold == "auto":
            threshold = None if all(answers) else 0.0
        elif threshold is not None:
            threshold = float(threshold)  # it is written into the config, as JSON
        return AnswerTargets(y, answers, np.full((len(answers), 2), -1, dtype=np.int64), threshold)

    def _head_config(self, targets: AnswerTargets) -> dict[str, Any]:
        return {"num_labels": 2}  # a start and an end

    def _objective(self, targets: AnswerTargets) -> SpanLoss:
        return SpanLoss()

    def _hold_out(self, targets: AnswerTargets, seed: int) -> Parts:
        names = np.array(["questions without an answer", "questions with one"])
        answered = (targets.places[:, 0] >= 0).astype(np.int64)
        return held_out(answered, names, self.validation_fraction, seed)

    def _require_same(self, targets: AnswerTargets) -> None:
        """Nothing: the head is the same for all answers."""

    def _examples(
        self,
        encoder: TextEncoder,
        documents: Documents,
        targets: AnswerTargets,
        limit: int,
        parts: Parts,
    ) -> Examples:
        cut = self._cut(limit)
        training, held = parts
        windows = context_windows(encoder, documents.take(training), cut)
        n_cut = windows.encoded.n_cut + encoder.encode(documents.take(held), cut, warn=False).n_cut
        warn_of_cuts(n_cut, len(documents), cut)
        examples, n_lost = answer_examples(windows, targets.places[training])
        if n_lost:
            warn_user(
                f"{n_lost} of {len(training)} answers are in no window of {cut.max_length} tokens as a whole, and are "
                f"not trained on; raise stride ({cut.stride}) or max_length.",
                UserWarning,
            )
        return examples

    def _scoring(self, candidate: Any, held: Documents, expected: npt.NDArray[Any]) -> Any:
        candidate.held_out_ = held.rows(), expected
        return super()._scoring(candidate, held, expected)

    def _check_outcome(self, candidate: Any, documents: Documents, targets: AnswerTargets) -> None:
        """Learn the threshold on the held-out questions, with the weights of the best epoch."""
        rows, expected = candidate.held_out_
        if self.no_answer_threshold == "auto" and targets.threshold is not None and len(rows):
            targets.threshold = _learned_threshold(candidate._reading(rows), read_answers(expected))
        # beside the weights, for `from_pretrained`
        candidate.model_.config.no_answer_threshold = targets.threshold

    def _record_targets(self, targets: AnswerTargets) -> None:
        self.no_answer_threshold_ = targets.threshold

    def _adopt_head(self, config: Any) -> None:
        if config.num_labels != 2:
            raise WrongTaskError(
                f"{self.model} has a head of {config.num_labels} outputs a token, not a start and an end; pass a "
                f"checkpoint that was trained to answer questions, or fit this one."
            )
        threshold = self.no_answer_threshold
        self.no_answer_threshold_ = (
            getattr(config, "no_answer_threshold", None) if threshold == "auto" else threshold
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    # -- reading contexts -------------------------------------------------------------------------------------------

    def _threshold(self) -> float | None:
        """Return the threshold that is asked for now: the parameter may have been set since the fit."""
        threshold = (
            self.no_answer_threshold_ if self.no_answer_threshold == "auto" else self.no_answer_threshold
        )
        return None if threshold is None else float(threshold)

    def _reading(self, X: Any) -> Reading | None:
        """Run the fitted model over questions and contexts; None for no rows at all."""
        check_is_fitted(self, "model_")
        self._validate_common()  # parameters may have been set since the fit
        documents = self._documents_again(X)
        if not len(documents):
            return None
        cut = self._cut(self.max_length_)
        windows = context_windows(self.text_encoder_, documents, cut)
        warn_of_cuts(windows.encoded.n_cut, len(documents), cut)
        logits = forward_tokens(self._passes(), windows.encoded, read_span_logits)
        return reading(windows, documents.given_second, logits, int(self.max_answer_length))


def question_columns(X: Any) -> Any:
    """Return the columns `question` and `context` of a frame that has them; anything else as it is.

    Raises
    ------
    TypeError
        For a bare string.
    ValueError
        For a frame of other than two columns without those names.
    """
    if isinstance(X, (str, bytes)):
        raise TypeError(
            f"X must be a list of pairs, [(question, context), ...], got one {type(X).__name__}; put the pair into a "
            f"list."
        )
    names = [str(name) for name in getattr(X, "columns", ())]
    if set(COLUMNS) <= set(names):
        return X[COLUMNS]
    if names and len(names) != 2 and len(X):
        raise ValueError(
            f"X has the columns {names}; name those to be read {COLUMNS[0]!r} and {COLUMNS[1]!r}, or pass two alone."
        )
    return X


def _require_pairs(documents: Documents) -> Documents:
    if len(documents) and documents.second is None:
        raise ValueError(
            "X must hold pairs, got single texts; pass [(question, context), ...], or a frame with the columns "
            "question and context."
        )
    return documents


def _learned_threshold(held: Reading, answers: list[Answers]) -> float:
    """Return the threshold with the highest F1 on held-out questions."""
    texts = [held.best_text(d) for d in range(len(answers))]
    return best_threshold(
        held.margins(), agreements(f1, answers, texts), agreements(f1, answers, [""] * len(answers))
    )
