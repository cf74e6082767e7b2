"""The sample of invented French customer mails."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any, Literal, overload

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from .._engine.validation import check_choice

_PACKAGE = "sktransformer.datasets"
_FILES = tuple(f"french_emails_{letter}.jsonl" for letter in "abcdefghi")
_DESCRIPTION = "french_emails.md"
_COLUMNS = ["subject", "body", "sender", "date", "language", "label", "split"]
_FEATURES = ["subject", "body"]
_TARGET = "label"
_SPLIT = "split"
_SUBSETS = ("all", "train", "test")
_Subset = Literal["all", "train", "test"]


@overload
def load_french_emails(
    *, subset: _Subset = "all", return_X_y: Literal[False] = False, as_frame: bool = True
) -> Bunch: ...


@overload
def load_french_emails(
    *, subset: _Subset = "all", return_X_y: Literal[True], as_frame: bool = True
) -> tuple[Any, Any]: ...


def load_french_emails(
    *, subset: _Subset = "all", return_X_y: bool = False, as_frame: bool = True
) -> Bunch | tuple[Any, Any]:
    """Load the sample of invented mails to a French company (classification).

    Each mail was written to the customer service of an invented online shop of
    household devices and carries one of eight labels. Rows are in the order of
    their dates, so that labels are not in blocks. Every mail is invented:
    a score on this sample illustrates a method and is no evidence about real
    mail (``DESCR`` says why).

    The mails are divided into two halves of equal size. Choose models and
    hyperparameters on "train", by cross-validation for example, and keep "test"
    for one last measurement.

    Parameters
    ----------
    subset : {"all", "train", "test"}, default="all"
        Which mails to load: all of them, the half to learn from or the half held
        out. The halves have the same shares of labels, languages, replies, HTML
        and long mails, and no affair is in both.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        If True, `data` is a DataFrame and `target` a Series; otherwise both are
        numpy arrays of dtype object.

    Returns
    -------
    mails : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        data : DataFrame or ndarray of shape (n_mails, 2)
            The subject and the body of each mail, as received: HTML, quoted
            messages, signatures and disclaimers included. A subject may be "".
        target : Series or ndarray of shape (n_mails,)
            The label of each mail, a str.
        split : Series or ndarray of shape (n_mails,)
            The half of each mail, "train" or "test".
        target_names : ndarray of shape (8,)
            The labels, sorted.
        feature_names : list of str
            The names of the columns of `data`.
        frame : DataFrame of shape (n_mails, 7) or None
            The columns subject, body, sender, date (datetime64, local time of
            the company), language (ISO 639-1 code), label and split. Its index
            counts from 0 in every subset. None if `as_frame` is False.
        DESCR : str
            How the sample was made, what it holds and where it stops.
        filename : list of str
            The names of the files in the package's folder ``datasets/data``.

    (data, target) : tuple if ``return_X_y`` is True
        The `data` and `target` above.

    Raises
    ------
    TypeError
        If `return_X_y` or `as_frame` is not a bool.
    ValueError
        If `subset` is none of the three.

    See Also
    --------
    sklearn.datasets.fetch_20newsgroups : Real newsgroup posts, in English.

    Notes
    -----
    The mails are released under CC0 1.0.

    Examples
    --------
    >>> from sktransformer.datasets import load_french_emails
    >>> mails = load_french_emails()
    >>> mails.feature_names
    ['subject', 'body']
    >>> list(mails.frame.columns)
    ['subject', 'body', 'sender', 'date', 'language', 'label', 'split']

    Learn on one half, measure once on the other:

    >>> from sklearn.pipeline import make_pipeline
    >>> from sktransformer import EmailCleaner, tfidf_svm
    >>> X_train, y_train = load_french_emails(subset="train", return_X_y=True)
    >>> X_test, y_test = load_french_emails(subset="test", return_X_y=True)
    >>> router = make_pipeline(EmailCleaner(), tfidf_svm()).fit(X_train, y_train)
    >>> router.predict(X_test).shape == y_test.shape
    True
    """
    for name, value in (("return_X_y", return_X_y), ("as_frame", as_frame)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be a bool, got {type(value).__name__}; pass True or False.")
    check_choice("subset", subset, _SUBSETS)

    frame = _read_frame(subset)
    data: Any = frame[_FEATURES]
    target: Any = frame[_TARGET]
    split: Any = frame[_SPLIT]
    target_names = np.array(sorted(target.unique()), dtype=object)
    if not as_frame:
        data = data.to_numpy(dtype=object)
        target = target.to_numpy(dtype=object)
        split = split.to_numpy(dtype=object)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        split=split,
        frame=frame if as_frame else None,
        target_names=target_names,
        feature_names=list(_FEATURES),
        DESCR=_read_text(_DESCRIPTION),
        filename=list(_FILES),
    )


def _read_text(name: str) -> str:
    """Return the text of one file of the data folder, also from inside a zipped package."""
    return resources.files(_PACKAGE).joinpath("data", name).read_text(encoding="utf-8")


def _read_frame(subset: _Subset) -> pd.DataFrame:
    # Split at "\n" alone: str.splitlines would also cut at U+2028 and U+0085, which JSON leaves raw in a string.
    lines = [line for name in _FILES for line in _read_text(name).split("\n") if line.strip()]
    frame = pd.DataFrame([json.loads(line) for line in lines], columns=_COLUMNS)
    if subset != "all":
        frame = frame[frame[_SPLIT] == subset].copy()
    frame["date"] = pd.to_datetime(frame["date"], format="ISO8601")
    # The files hold a few labels each; the dates of all of them overlap. A stable sort keeps ties in file order.
    return frame.sort_values("date", kind="stable", ignore_index=True)
