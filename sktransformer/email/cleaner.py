"""The newest message of an e-mail, without quotes, headers, signatures and disclaimers."""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from .._engine.validation import check_flag, check_number
from ._html import HTML, Markup, looks_like_html, parse_html
from ._inputs import Mails, describe_input, read_mails
from ._label import label_mail
from ._normalise import line_spans, normalise, split_lines
from ._page import BODY, DISCLAIMER, FOOTER, GREETING, HEADER, QUOTE, SIGNATURE, Page
from ._subject import clean_subject

TRUNCATED = "truncated"


class Removed(NamedTuple):
    r"""A piece of a mail that cleaning takes away; see :meth:`EmailCleaner.explain`.

    Parameters
    ----------
    kind : {"quote", "header", "greeting", "signature", "disclaimer", "footer", "html", "truncated"}
        What it is: an older message with the line that introduces it; the header block of a forward; a
        salutation; a signature with its closing; a legal notice or a warning about outside mail; what a phone
        or a mail program adds; markup that is not shown; what lies beyond `max_chars`.
    start : int
        Where it begins in the raw text, in characters.
    end : int
        Where it ends, in characters.
    text : str
        The raw text from `start` to `end`.

    Examples
    --------
    >>> from sktransformer.email import EmailCleaner
    >>> [piece] = EmailCleaner().explain("Merci ! Je relance.\n> Bonjour")
    >>> piece.kind, piece.start, piece.end
    ('quote', 20, 29)
    """

    kind: str
    start: int
    end: int
    text: str


class EmailCleaner(TransformerMixin, BaseEstimator):
    """Keep the newest message of each e-mail and drop what surrounds it.

    Quoted replies, header blocks, signatures, legal notices and the lines that phones add are taken away;
    HTML becomes text; blanks, apostrophes and accents are normalised. The rules look at lines one by one
    and take time in proportion to the text. They know French and English best, and the quote headers and
    closings of Spanish, German, Italian, Dutch and Portuguese.

    Parameters
    ----------
    keep_greetings : bool, default=True
        Keep the salutation ("Bonjour Madame,") where it stands on a line of its own above the message. It says
        little about a mail's class, and a few hundred mails are not enough to learn that.
    keep_signatures : bool, default=False
        Keep signatures, closings ("Cordialement,") and lines such as "Envoyé de mon iPhone".
    keep_disclaimers : bool, default=False
        Keep legal notices and warnings about outside mail.
    keep_quotes : bool, default=False
        Keep older messages and header blocks.
    subject_column : str, default="subject"
        The column with the subjects, where `X` is a frame with several columns.
    body_column : str, default="body"
        The column with the bodies, where `X` is a frame with several columns.
    missing : {"error", "empty"}, default="error"
        Whether a missing text (None, NaN) raises or counts as empty.
    max_chars : int, default=1_000_000
        Longest text that is looked at, in characters; the rest is cut off, with one warning a call.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns seen in :meth:`fit`. Only defined when `X` has columns.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns seen in :meth:`fit`. Only defined when `X` has columns with str names.

    See Also
    --------
    sktransformer.email.read_mailbox : Makes the frame that goes in.
    sktransformer.email.LanguageRouter : One classifier a language, to put behind it.
    sktransformer.baselines.tfidf_svm : A strong baseline to put behind it.

    Notes
    -----
    The cleaner has no state: :meth:`transform` works without :meth:`fit`.

    :meth:`transform` returns a one-dimensional array of str, because that is what scikit-learn's
    vectorizers take (``make_pipeline(EmailCleaner(), TfidfVectorizer())``). With
    ``set_output(transform="pandas")`` or ``"polars"`` it returns a frame with the one column "text", which
    is what a ``ColumnTransformer`` needs; the estimators of this package take both.

    A frame with several columns gives one text a row: the subject without "Re:", "TR:" and the like, a
    blank line, and the cleaned body. Columns other than the two named ones are left out. An array or list
    with two columns is read as subject and body.

    A mail that holds any text never becomes empty. Of a forward without a word of its own, the payload is
    kept; of a mail that is nothing but quote marks, the quoted text; of one that is nothing but a
    signature, the signature. Replies written below or between quoted lines are kept. When in doubt, text
    stays.

    Examples
    --------
    >>> from sktransformer.email import EmailCleaner
    >>> mail = '''Bonjour,
    ... Je n'ai pas reçu ma facture.
    ...
    ... Cordialement,
    ... Jeanne Petit
    ...
    ... Le lun. 3 mars 2025 à 10:12, Service Client <contact@example.org> a écrit :
    ... > Votre dossier est en cours.'''
    >>> cleaner = EmailCleaner()
    >>> print(cleaner.transform([mail])[0])
    Bonjour,
    Je n'ai pas reçu ma facture.
    >>> for piece in cleaner.explain(mail):
    ...     print(piece.kind, piece.start, piece.end, piece.text.splitlines()[0][:40])
    signature 39 65 Cordialement,
    quote 67 172 Le lun. 3 mars 2025 à 10:12, Service Cli
    """

    def __init__(
        self,
        *,
        keep_greetings: bool = True,
        keep_signatures: bool = False,
        keep_disclaimers: bool = False,
        keep_quotes: bool = False,
        subject_column: str = "subject",
        body_column: str = "body",
        missing: str = "error",
        max_chars: int = 1_000_000,
    ) -> None:
        self.keep_greetings = keep_greetings
        self.keep_signatures = keep_signatures
        self.keep_disclaimers = keep_disclaimers
        self.keep_quotes = keep_quotes
        self.subject_column = subject_column
        self.body_column = body_column
        self.missing = missing
        self.max_chars = max_chars

    def fit(self, X: Any, y: object = None) -> Self:
        """Check `X` and the parameters; nothing is learned.

        Parameters
        ----------
        X : list, array, Series or frame of str
            Mails, one a row.
        y : object, default=None
            Ignored.

        Returns
        -------
        EmailCleaner
            The cleaner itself.

        Raises
        ------
        TypeError
            If `X` is a bare string, or a row is no string.
        ValueError
            If `X` is empty, a text is missing, the columns can't be told apart, or a parameter is out of
            range.
        """
        mails = self._read(X)
        if not mails.bodies:
            raise ValueError("X holds no mails (0 rows); at least one is needed to fit.")
        self._remember_columns(X)
        return self

    def fit_transform(self, X: Any, y: object = None) -> Any:
        """Clean the mails; the same as :meth:`fit` and then :meth:`transform`, also for a generator.

        Parameters
        ----------
        X : list, array, Series or frame of str
            Mails, one a row.
        y : object, default=None
            Ignored.

        Returns
        -------
        ndarray of shape (n_mails,) or frame with one column
            The cleaned texts, see :meth:`transform`.
        """
        if isinstance(X, Iterator):
            X = list(X)
        return self.fit(X, y).transform(X)

    def transform(self, X: Any) -> NDArray[np.object_]:
        r"""Clean the mails.

        Parameters
        ----------
        X : list, array, Series or frame of str
            Mails, one a row.

        Returns
        -------
        ndarray of shape (n_mails,), dtype object
            The cleaned texts. A frame with the column "text" instead if :meth:`set_output` asks for one.

        Raises
        ------
        TypeError
            If `X` is a bare string, or a row is no string.
        ValueError
            If a text is missing, or the columns can't be told apart or differ from those of :meth:`fit`.

        Examples
        --------
        >>> import pandas as pd
        >>> from sktransformer.email import EmailCleaner
        >>> frame = pd.DataFrame({"subject": ["Re: Facture"], "body": ["Merci.\n\nBien à vous,\nPaul"]})
        >>> EmailCleaner().transform(frame)
        array(['Facture\n\nMerci.'], dtype=object)
        """
        mails = self._read(X)
        self._check_columns(X)
        texts = np.empty(len(mails.bodies), dtype=object)
        texts[:] = [self._clean(body) for body in mails.bodies]
        if mails.subjects is not None:
            for row, subject in enumerate(mails.subjects):
                cleaned = clean_subject(normalise(subject[: self.max_chars]))
                texts[row] = "\n\n".join(part for part in (cleaned, texts[row]) if part)
        self._warn_truncated(mails)
        return texts

    def explain(self, text: str) -> list[Removed]:
        r"""Tell what cleaning takes away from one body, and where it stood.

        Parameters
        ----------
        text : str
            The raw body of a mail.

        Returns
        -------
        list of Removed
            The pieces from top to bottom; they don't overlap. Quote marks that are taken off a text that is
            kept, and the tags of HTML, are no pieces.

        Raises
        ------
        TypeError
            If `text` is no str.

        Examples
        --------
        >>> from sktransformer.email import EmailCleaner
        >>> EmailCleaner().explain("Merci !\n\nEnvoyé de mon iPhone")
        [Removed(kind='footer', start=9, end=29, text='Envoyé de mon iPhone')]
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be str, got {type(text).__name__}; explain takes one mail at a time.")
        self._check_parameters()
        limit = self.max_chars
        page, markup = self._label(text[:limit])
        spans = list(zip(markup.starts, markup.ends, strict=True)) if markup else line_spans(text[:limit])
        pieces = _without_nested(self._pieces(page, spans), markup.hidden if markup else [])
        if text[limit:].strip():
            pieces.append((TRUNCATED, limit, len(text)))
        return [Removed(kind, start, end, text[start:end]) for kind, start, end in pieces]

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Name the one column of the output.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Ignored; the name does not depend on the input.

        Returns
        -------
        ndarray of shape (1,), dtype object
            The name "text".
        """
        return np.array(["text"], dtype=object)

    def _read(self, X: Any) -> Mails:
        """Check the parameters and take subjects and bodies out of `X`."""
        self._check_parameters()
        return read_mails(
            X, subject_column=self.subject_column, body_column=self.body_column, missing=self.missing
        )

    def _check_parameters(self) -> None:
        check_number("max_chars", self.max_chars, low=1, integer=True)
        for name in ("keep_greetings", "keep_signatures", "keep_disclaimers", "keep_quotes"):
            check_flag(name, getattr(self, name))

    def _remember_columns(self, X: Any) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                delattr(self, name)
        if getattr(X, "ndim", 2) == 2 and hasattr(X, "shape"):
            validate_data(self, X, skip_check_array=True)

    def _check_columns(self, X: Any) -> None:
        """Columns must be those of `fit`, as everywhere in scikit-learn; plain lists have none to check."""
        if not hasattr(self, "n_features_in_") or len(getattr(X, "shape", ())) != 2:
            return
        if hasattr(X, "columns") == hasattr(self, "feature_names_in_"):
            validate_data(self, X, reset=False, skip_check_array=True)

    def _kept_kinds(self) -> set[str]:
        kinds = {BODY}
        if self.keep_greetings:
            kinds.add(GREETING)
        if self.keep_signatures:
            kinds |= {SIGNATURE, FOOTER}
        if self.keep_disclaimers:
            kinds.add(DISCLAIMER)
        if self.keep_quotes:
            kinds |= {QUOTE, HEADER}
        return kinds

    def _label(self, text: str) -> tuple[Page, Markup | None]:
        """Label the lines of one body; as HTML if it is HTML and shows anything."""
        if looks_like_html(text):
            markup = parse_html(text)
            lines = split_lines("\n".join(markup.lines))
            page = label_mail(lines, markup.presets, markup.cuts)
            if len(page):
                return page, markup
        return label_mail(split_lines(text)), None

    def _clean(self, text: str) -> str:
        page, _ = self._label(text[: self.max_chars])
        kept = self._kept_kinds()
        pieces: list[str] = []
        gap = False
        for line, gap_above, kind in zip(page.texts, page.gaps, page.kinds, strict=True):
            gap = gap or gap_above
            if kind in kept:
                pieces.append(f"\n{line}" if gap else line)
                gap = False
        return "\n".join(pieces).strip()

    def _pieces(self, page: Page, spans: list[tuple[int, int]]) -> list[tuple[str, int, int]]:
        """Neighbouring lines of one kind make one piece, over blank lines too."""
        kept = self._kept_kinds()
        pieces: list[tuple[str, int, int]] = []
        previous = BODY
        for first, last, kind in zip(page.numbers, page.ends, page.kinds, strict=True):
            start, end = spans[first][0], spans[last][1]
            if kind in kept:
                previous = BODY
                continue
            if kind == previous:
                start = pieces.pop()[1]
            pieces.append((kind, start, end))
            previous = kind
        return pieces

    def _warn_truncated(self, mails: Mails) -> None:
        count = sum(len(body) > self.max_chars for body in mails.bodies)
        if count:
            warnings.warn(
                f"{count} of {len(mails.bodies)} mails exceed max_chars={self.max_chars} characters; the "
                "rest of each was left out. Raise max_chars to keep it.",
                UserWarning,
                stacklevel=3,
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        describe_input(tags, self.missing)
        tags.requires_fit = False
        return tags


def _without_nested(
    pieces: list[tuple[str, int, int]], hidden: list[tuple[int, int]]
) -> list[tuple[str, int, int]]:
    """All pieces in order; a style sheet inside a quote is a part of the quote."""
    every = [*pieces, *((HTML, start, end) for start, end in hidden)]
    kept: list[tuple[str, int, int]] = []
    for kind, start, end in sorted(every, key=lambda piece: (piece[1], -piece[2])):
        if not kept or start >= kept[-1][2]:
            kept.append((kind, start, end))
    return kept
