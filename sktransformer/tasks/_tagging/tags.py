"""What users pass as `y` of a tagger: a tag a word, or the spans of raw texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils.multiclass import check_classification_targets

from ..._engine.errors import did_you_mean, warn_user
from ..._engine.validation import check_one_kind
from .schemes import SCHEMES, Span, detect_scheme, first_fault, split_tag, tags_of
from .sentences import Sentences
from .words import Place

ROWS = (list, tuple, np.ndarray, pd.Series, pd.Index)


@dataclass(frozen=True)
class Tags:
    """A tag a word: `index` (n_words,) are the classes of all sentences' words, end to end.

    `original` (n,) holds each sentence's tags as a list; `scheme` is None for tags that spell no entities.
    """

    classes: npt.NDArray[Any]
    scheme: str | None
    index: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    original: npt.NDArray[Any]

    def take(self, rows: npt.NDArray[np.int64]) -> Tags:
        """Return the tags of the sentences at `rows`, over the same classes."""
        parts = np.split(self.index, np.cumsum(self.lengths)[:-1]) if len(self.lengths) else []
        index = np.concatenate([np.zeros(0, dtype=np.int64), *(parts[i] for i in rows)])
        return Tags(self.classes, self.scheme, index, self.lengths[rows], self.original[rows])


def check_scheme(scheme: Any) -> None:
    """Raise ValueError unless `scheme` is one of the parameter's values."""
    if scheme is not None and scheme not in ("auto", *SCHEMES):
        hint = did_you_mean(str(scheme), ("auto", *SCHEMES))
        raise ValueError(f"scheme={scheme!r} is not known; choose 'auto', None or one of {SCHEMES}.{hint}")


def as_tags(y: Any, sentences: Sentences, scheme: str | None) -> Tags:
    """Read `y`, and the scheme of its tags where `scheme` is "auto".

    Raises
    ------
    TypeError
        For a row that is no sequence, or tags of several kinds.
    ValueError
        For missing tags, unequal lengths, tags that break the scheme, a single tag.
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None; pass one tag a word.")
    rows = tag_rows(y, sentences, scheme)
    flat = _flat(rows)
    classes, index = np.unique(flat, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            "This solver needs samples of at least 2 classes in the data, but the data contains only one class: "
            f"{classes.tolist()[0]!r}; pass sentences, or spans, with two tags."
            if len(classes)
            else "y holds no tag: every sentence is empty; pass sentences with words."
        )
    found = detect_scheme(_readable(classes)) if scheme == "auto" else scheme
    if found is not None:
        check_spelling(rows, found, hint=scheme == "auto")
    return Tags(classes, found, index.astype(np.int64), sentences.lengths, _objects(rows))


def tag_rows(y: Any, sentences: Sentences, scheme: str | None, name: str = "y") -> list[list[Any]]:
    """Return the tags of each sentence as a list, one a word, also where `y` holds spans."""
    rows = [_row(row, f"{name}[{i}]") for i, row in enumerate(_listed(y, name))]
    if len(rows) != len(sentences):
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: [{len(sentences)}, {len(rows)}]"
        )
    if sentences.raw is not None and sentences.places is not None and _hold_spans(rows):
        return _from_spans(rows, sentences.raw, sentences.places, scheme, name)
    for i, (row, words) in enumerate(zip(rows, sentences.words, strict=True)):
        if len(row) != len(words):
            raise ValueError(
                f"{name}[{i}] has {len(row)} tag(s), but X[{i}] has {len(words)} word(s); pass one tag a word."
            )
        for j, tag in enumerate(row):
            if _is_missing(tag):
                raise ValueError(
                    f"{name}[{i}][{j}] is missing ({type(tag).__name__}); pass a tag for every word."
                )
            if isinstance(tag, (*ROWS, Mapping, set)):
                raise TypeError(
                    f"{name}[{i}][{j}] must be one tag (str or int), got {type(tag).__name__}; "
                    f"pass one tag a word, or raw texts as X and spans as y."
                )
    return rows


def check_spelling(rows: list[list[Any]], scheme: str, *, hint: bool = False, name: str = "y") -> None:
    """Raise ValueError at the first tag that leaves the scheme, unless none does."""
    for i, row in enumerate(rows):
        fault = first_fault(row, scheme)
        if fault is not None:
            j, why = fault
            found = " (the scheme was found by the spelling)" if hint else ""
            raise ValueError(
                f"{name}[{i}][{j}] is {row[j]!r}, but {why}{found}; mend it, or pass scheme=None to learn the tags "
                f"as they are."
            )


def require_spelt(rows: list[list[Any]], name: str = "y") -> None:
    """Raise ValueError at a tag that is spelt in no scheme; types that nobody has seen are welcome."""
    for i, row in enumerate(rows):
        for j, tag in enumerate(row):
            if split_tag(tag) is None:
                raise ValueError(
                    f"{name}[{i}][{j}] is {tag!r}, no tag of a scheme; pass 'O' or 'PREFIX-TYPE'."
                )


def _listed(y: Any, name: str) -> list[Any]:
    if isinstance(y, (str, bytes, Mapping, Set)) or not isinstance(y, Iterable):
        raise TypeError(f"{name} must be a list with the tags of each sentence, got {type(y).__name__}.")
    frame: Any = y
    if isinstance(y, pd.DataFrame) or hasattr(y, "get_columns"):  # polars has the second
        if frame.shape[1] != 1:
            raise ValueError(f"{name} must have one column, got {frame.shape[1]}; pass the column.")
        y = frame.iloc[:, 0] if isinstance(y, pd.DataFrame) else frame.get_columns()[0]
    if isinstance(y, np.ndarray) and y.dtype.kind == "O" and y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0] if isinstance(y[0, 0], ROWS) else y
    rows: list[Any] = list(y.to_list() if hasattr(y, "to_list") else y)
    return rows


def _row(row: Any, name: str) -> list[Any]:
    if not isinstance(row, ROWS) and not hasattr(row, "to_list"):
        raise TypeError(
            f"{name} must be the list of a sentence's tags, got {type(row).__name__} ({row!r:.40}); "
            f"pass one list of tags a sentence."
        )
    tags: list[Any] = list(row.tolist() if isinstance(row, np.ndarray) else row)
    return [str.__str__(tag) if isinstance(tag, str) else tag for tag in tags]  # plain, also of NumPy's


def _is_missing(tag: Any) -> bool:
    return tag is None or tag is pd.NA or (isinstance(tag, float) and np.isnan(tag))


def _hold_spans(rows: list[list[Any]]) -> bool:
    first = next((row[0] for row in rows if row), ())
    return isinstance(first, (tuple, list, Mapping))


def _flat(rows: list[list[Any]]) -> npt.NDArray[Any]:
    tags = list(chain.from_iterable(rows))
    values = np.empty(len(tags), dtype=object)
    values[:] = tags
    check_one_kind(values)
    if tags and not isinstance(tags[0], str):
        values = np.asarray(tags)
        check_classification_targets(values)
        return values
    return values.astype(str) if all(type(tag) is str for tag in tags) and tags else values


def _readable(classes: npt.NDArray[Any]) -> list[Any]:
    """Return the classes, unless they are those of a scheme that is not among ours, which is said."""
    tags: list[Any] = classes.tolist()
    prefixes = {tag[0] for tag in tags if isinstance(tag, str) and len(tag) > 2 and tag[1] == "-"}
    if prefixes & set("LU") and prefixes <= set("BILU") and "O" in tags:
        raise ValueError(
            "y is tagged in BILOU, whose L- and U- are the E- and S- of BIOES; rename them, or pass scheme=None."
        )
    return tags


def _objects(rows: list[list[Any]]) -> npt.NDArray[Any]:
    array = np.empty(len(rows), dtype=object)
    array[:] = rows
    return array


# -- spans ---------------------------------------------------------------------------------------------------------


def _from_spans(
    rows: list[list[Any]], raw: list[str], places: list[list[Place]], scheme: str | None, name: str
) -> list[list[Any]]:
    """Turn spans of characters into tags of the words that they touch."""
    if scheme is None:
        raise ValueError(f"{name} holds spans, which need a scheme; pass scheme='auto' or one of {SCHEMES}.")
    tags, uneven = [], []
    for i, (row, text, words) in enumerate(zip(rows, raw, places, strict=True)):
        spans = sorted(_span(span, text, f"{name}[{i}][{j}]") for j, span in enumerate(row))
        found = [_on_words(span, words, f"{name}[{i}]") for span in spans]
        for one, other in pairwise(found):
            if other.start < one.end:
                raise ValueError(
                    f"{name}[{i}] has spans that share a word ({one.label!r} and {other.label!r} at "
                    f"{text[words[other.start][0] : words[other.start][1]]!r}); a word has one tag: drop one."
                )
        uneven += [i for span, one in zip(spans, found, strict=True) if not _fits(span, one, text, words)]
        tags.append(tags_of(found, len(words), "IOB2" if scheme == "auto" else scheme))
    if uneven:
        warn_user(
            f"{len(uneven)} span(s) begin or end inside a word, the first in {name}[{uneven[0]}]; they are learned as "
            f"the whole words.",
            UserWarning,
        )
    return tags


def _span(given: Any, text: str, name: str) -> Span:
    if isinstance(given, Mapping):
        try:
            given = tuple(given[key] for key in ("start", "end", "label"))
        except KeyError as error:
            raise ValueError(f"{name} lacks {error}; a span has start, end and label.") from error
    if not isinstance(given, (tuple, list)) or len(given) != 3:
        raise TypeError(f"{name} must be (start, end, label) or a dict of them, got {given!r:.60}.")
    start, end, label = given
    whole = all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in (start, end))
    if not whole or not isinstance(label, str):
        raise TypeError(f"{name} must be two integers and a str, got {given!r:.60}.")
    if not 0 <= start < end <= len(text) or not text[start:end].strip() or not label:
        if not label:
            why = "has an empty label"
        elif start < 0 or end > len(text):
            why = f"reaches out of a text of {len(text)} characters"
        else:
            why = "holds no visible character"
        raise ValueError(
            f"{name} is {(start, end, label)!r:.60}, which {why}; give the first character, the one after "
            f"the last, and a label."
        )
    return Span(int(start), int(end), label)


def _on_words(span: Span, words: list[Place], name: str) -> Span:
    touched = [i for i, (start, end) in enumerate(words) if start < span.end and span.start < end]
    if not touched:
        raise ValueError(f"{name} has a span without a word, {tuple(span)}; drop it.")
    return Span(touched[0], touched[-1] + 1, span.label)


def _fits(span: Span, found: Span, text: str, words: list[Place]) -> bool:
    """Whether a span begins and ends where words do, blanks at its ends aside."""
    cut = text[span.start : span.end]
    start = span.start + len(cut) - len(cut.lstrip())
    return (start, start + len(cut.strip())) == (words[found.start][0], words[found.end - 1][1])
