"""The sample of invented French customer mails."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any, Literal, overload

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

_PACKAGE = "sktransformer.datasets"
_FILES = (
    "french_emails_a.jsonl",
    "french_emails_b.jsonl",
    "french_emails_c.jsonl",
    "french_emails_d.jsonl",
    "french_emails_e.jsonl",
    "french_emails_f.jsonl",
    "french_emails_g.jsonl",
    "french_emails_h.jsonl",
    "french_emails_i.jsonl",
)
_DESCRIPTION = "french_emails.md"
_COLUMNS = ["subject", "body", "sender", "date", "language", "label"]
_FEATURES = ["subject", "body"]
_TARGET = "label"


@overload
def load_french_emails(*, return_X_y: Literal[False] = False, as_frame: bool = True) -> Bunch: ...


@overload
def load_french_emails(*, return_X_y: Literal[True], as_frame: bool = True) -> tuple[Any, Any]: ...


def load_french_emails(*, return_X_y: bool = False, as_frame: bool = True) -> Bunch | tuple[Any, Any]:
    """Load the sample of invented mails to a French company (classification).

    Each mail was written to the customer service of an invented online shop of
    household devices and carries one of eight labels. Rows are in the order of
    their dates, so that labels are not in blocks. Every mail is invented:
    a score on this sample illustrates a method and is no evidence about real
    mail (``DESCR`` says why).

    Parameters
    ----------
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
        target_names : ndarray of shape (8,)
            The labels, sorted.
        feature_names : list of str
            The names of the columns of `data`.
        frame : DataFrame of shape (n_mails, 6) or None
            The columns subject, body, sender, date (datetime64, local time of
            the company), language (ISO 639-1 code) and label. None if
            `as_frame` is False.
        DESCR : str
            How the sample was made, what it holds and where it stops.
        filename : list of str
            The names of the files in the package's folder ``datasets/data``.

    (data, target) : tuple if ``return_X_y`` is True
        The `data` and `target` above.

    Raises
    ------
    TypeError
        If an argument is not a bool.

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
    ['subject', 'body', 'sender', 'date', 'language', 'label']
    >>> X, y = load_french_emails(return_X_y=True)
    >>> X.shape == (len(y), 2)
    True
    """
    for name, value in (("return_X_y", return_X_y), ("as_frame", as_frame)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be a bool, got {type(value).__name__}; pass True or False.")

    frame = _read_frame()
    data: Any = frame[_FEATURES]
    target: Any = frame[_TARGET]
    target_names = np.array(sorted(target.unique()), dtype=object)
    if not as_frame:
        data = data.to_numpy(dtype=object)
        target = target.to_numpy(dtype=object)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame if as_frame else None,
        target_names=target_names,
        feature_names=list(_FEATURES),
        DESCR=_read_text(_DESCRIPTION),
        filename=list(_FILES),
    )


def _read_text(name: str) -> str:
    """Return the text of one file of the data folder, also from inside a zipped package."""
    return resources.files(_PACKAGE).joinpath("data", name).read_text(encoding="utf-8")


def _read_frame() -> pd.DataFrame:
    # Split at "\n" alone: str.splitlines would also cut at U+2028 and U+0085, which JSON leaves raw in a string.
    lines = [line for name in _FILES for line in _read_text(name).split("\n") if line.strip()]
    frame = pd.DataFrame([json.loads(line) for line in lines], columns=_COLUMNS)
    frame["date"] = pd.to_datetime(frame["date"], format="ISO8601")
    # The files hold a few labels each; the dates of all of them overlap. A stable sort keeps ties in file order.
    return frame.sort_values("date", kind="stable", ignore_index=True)
