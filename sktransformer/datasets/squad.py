"""Questions and answers in the files of SQuAD, whose answers are pieces of a context."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.utils import Bunch

COLUMNS = ["question", "context", "id", "title", "answers"]
HALF = re.compile("[\ud800-\udfff]")  # of a pair, which the reader of JSON has joined, if both were there
REPORT = ["id", "answer", "answer_start", "found_at", "finding"]


def load_squad(path: str | os.PathLike[str], *, return_X_y: bool = False) -> Bunch | tuple[Any, Any]:
    """Load a file of questions in the format of SQuAD 1.1 or 2.0.

    SQuAD [1]_, FQuAD, PIAF and many data sets of one's own have it: articles hold paragraphs, a paragraph a context and
    its questions, a question its answers with their places in the context. An answer that does not stand where the
    file says is put where it stands nearest to that; one that stands nowhere in its context is left out, and so is a
    question that had no other. Both are listed in `report`.

    Parameters
    ----------
    path : path
        A JSON file.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    squad : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        data : DataFrame of shape (n, 2)
            The question and the context of each row.
        target : Series of shape (n,)
            The answers of each row, a dict of two lists, ``text`` and ``answer_start`` (in characters of the context);
            both are empty for a question that its context does not answer, as SQuAD 2.0 [2]_ has them.
        frame : DataFrame of shape (n, 5)
            The columns question, context, id, title (of the article) and answers, which is `target`.
        report : DataFrame
            One row an answer at fault: its question's id, its text, the `answer_start` of the file, where it was found
            (-1 for nowhere) and the finding, "moved" or "absent".
        version : str
            What the file calls its version; empty when it does not.

    (data, target) : tuple if ``return_X_y`` is True
        The `data` and `target` above.

    Raises
    ------
    TypeError
        If `path` is no path, or `return_X_y` no bool.
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is no JSON, or not of that format; the message names the place.

    See Also
    --------
    TransformerQuestionAnswerer : Learns from them.

    Notes
    -----
    Questions of one article are alike: split the rows into parts by `title`, with scikit-learn's ``GroupKFold`` or
    ``GroupShuffleSplit``, or scores come out too high.

    References
    ----------
    .. [1] Rajpurkar et al. 2016, "SQuAD: 100,000+ Questions for Machine Comprehension of Text", section 3.
    .. [2] Rajpurkar et al. 2018, "Know What You Don't Know: Unanswerable Questions for SQuAD", section 4.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> from sktransformer import load_squad
    >>> asked = {"id": "1", "question": "Où ?", "answers": [{"text": "à Lyon", "answer_start": 13}]}
    >>> paragraph = {"context": "Elle habite à Lyon.", "qas": [asked]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "squad.json")
    ...     _ = file.write_text(json.dumps({"data": [{"title": "Elle", "paragraphs": [paragraph]}]}))
    ...     squad = load_squad(file)
    >>> squad.target[0]
    {'text': ['à Lyon'], 'answer_start': [12]}
    >>> squad.report["finding"].tolist()
    ['moved']
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path must be a str or a path, got {type(path).__name__}; pass a file's path.")
    if not isinstance(return_X_y, bool):
        raise TypeError(f"return_X_y must be a bool, got {type(return_X_y).__name__}; pass True or False.")
    file = Path(path)
    content = _parse(file)
    rows: list[list[Any]] = []
    report: list[list[Any]] = []
    for title, context, asked, place in _questions(content, file):
        answers, faults, n_given = _answers(asked, context, place)
        name = asked.get("id")
        name = _mended(name) if isinstance(name, str) else name
        report += [[name, *fault] for fault in faults]
        if answers["text"] or not n_given:
            rows.append([asked["question"], context, name, title, answers])
    frame = pd.DataFrame(rows, columns=COLUMNS)
    data, target = frame[COLUMNS[:2]], frame["answers"]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        report=pd.DataFrame(report, columns=REPORT),
        version=_name(content, "version"),
    )


def nearest_occurrence(context: str, text: str, start: int) -> int:
    """Return where `text` begins in `context`, nearest to `start`; -1 when it does not stand there at all."""
    start = max(0, start)
    before = context.rfind(text, 0, start + len(text))
    after = context.find(text, start)
    if before < 0 or after < 0:
        return max(before, after)
    return before if start - before <= after - start else after


def _parse(file: Path) -> dict[str, Any]:
    text = file.read_bytes()
    try:
        content = json.loads(text.decode("utf-8-sig"))  # some editors write a byte order mark
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{file} is no JSON file in UTF-8 ({error}); pass one in the format of SQuAD."
        ) from error
    if not isinstance(content, dict):
        raise ValueError(
            f"{file} holds a {type(content).__name__}, not an object with 'data', as SQuAD's files do."
        )
    return content


def _questions(content: dict[str, Any], file: Path) -> Iterator[tuple[str, str, dict[str, Any], str]]:
    """Yield title, context, question and its place in the file."""
    for i, article in enumerate(_listed(content, "data", f"{file}: ")):
        for j, paragraph in enumerate(_listed(article, "paragraphs", f"{file}: data[{i}].")):
            place = f"{file}: data[{i}].paragraphs[{j}]."
            context = _text(paragraph, "context", place)
            for k, asked in enumerate(_listed(paragraph, "qas", place)):
                asked["question"] = _text(asked, "question", f"{place}qas[{k}].")
                yield _name(article, "title"), context, asked, f"{place}qas[{k}]."


def _listed(holder: dict[str, Any], key: str, place: str) -> list[dict[str, Any]]:
    items = holder.get(key)
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        kind = "missing" if items is None else f"a {type(items).__name__}"
        raise ValueError(f"{place}{key} must be a list of objects, as in SQuAD's files; it is {kind}.")
    return items


def _text(holder: dict[str, Any], key: str, place: str) -> str:
    text = holder.get(key)
    if not isinstance(text, str):
        kind = "missing" if text is None else f"a {type(text).__name__}"
        raise ValueError(f"{place}{key} must be a text; it is {kind}.")
    return _mended(text)


def _name(holder: dict[str, Any], key: str) -> str:
    name = holder.get(key)
    return "" if name is None else _mended(str(name))


def _mended(text: str) -> str:
    """Replace halves of characters, which JSON may spell and UTF-8 can't: as many characters, so places stay."""
    return HALF.sub("\ufffd", text)


def _answers(
    asked: dict[str, Any], context: str, place: str
) -> tuple[dict[str, list[Any]], list[list[Any]], int]:
    """Return the answers of a question, those at fault (text, start, where found, finding), and how many there were."""
    impossible = asked.get("is_impossible")
    if impossible not in (None, True, False):  # "false", say, which would be taken for true
        raise ValueError(f"{place}is_impossible must be true or false; it is {impossible!r:.40}.")
    given = [] if impossible or "answers" not in asked else _listed(asked, "answers", place)
    found: dict[str, list[Any]] = {"text": [], "answer_start": []}
    faults: list[list[Any]] = []
    for n, answer in enumerate(given):
        text, start = _text(answer, "text", f"{place}answers[{n}]."), answer.get("answer_start")
        if isinstance(start, bool) or not isinstance(start, int):
            raise ValueError(f"{place}answers[{n}].answer_start must be a whole number; it is {start!r}.")
        where = nearest_occurrence(context, text, start) if text.strip() else -1
        if where != start:
            faults.append([text, start, where, "absent" if where < 0 else "moved"])
        if where >= 0:
            found["text"].append(text)
            found["answer_start"].append(where)
    return found, faults, len(given)
