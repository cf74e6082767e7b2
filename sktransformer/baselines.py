"""What a Transformer has to beat: TF-IDF with a linear support vector machine. No torch here."""

from collections.abc import Iterable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import BaseCrossValidator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.svm import LinearSVC
from sklearn.utils import Tags

from ._engine.validation import check_choice, check_flag, check_number

__all__ = ["tfidf_svm"]

# Words of one letter count ("l", "d", "1"), and so do question and exclamation marks; a text of marks alone
# then has a word too, where scikit-learn's own pattern would stop with "empty vocabulary".
_TOKEN = r"(?u)\b\w+\b|[^\w\s]"
_ROWS_NAMED = 10


def tfidf_svm(
    *,
    calibrated: bool = False,
    C: float = 1.0,
    class_weight: dict[Any, float] | str | None = "balanced",
    word_ngrams: tuple[int, int] = (1, 2),
    char_ngrams: tuple[int, int] = (2, 5),
    min_df: int | float = 1,
    max_iter: int = 10_000,
    missing: str = "error",
    random_state: int | np.random.RandomState | None = 0,
) -> Pipeline:
    """Build a text classifier from TF-IDF features and a linear support vector machine.

    Words and word pairs are counted beside runs of characters inside words, which see through inflection
    and typing errors; counts are damped by their logarithm. Linear classifiers on such counts are hard to
    beat on short texts [1]_.

    Parameters
    ----------
    calibrated : bool, default=False
        Whether the classifier gives probabilities (``predict_proba``). It then averages up to five
        machines, each fitted on four fifths of the data and calibrated by Platt's sigmoid on the rest [2]_,
        and takes five times as long.
    C : float, default=1.0
        Inverse strength of the regularisation; above 0.
    class_weight : {"balanced"}, dict or None, default="balanced"
        Weight of each class, as in scikit-learn's ``LinearSVC``.
    word_ngrams : tuple of (int, int), default=(1, 2)
        Shortest and longest run of words, in words.
    char_ngrams : tuple of (int, int), default=(2, 5)
        Shortest and longest run of characters inside a word, in characters.
    min_df : int or float, default=1
        Leave out what occurs in fewer texts than this (int) or in a smaller share of them (float). With a
        few hundred texts, 2 is often better.
    max_iter : int, default=10_000
        Most passes of the solver over the data.
    missing : {"error", "empty"}, default="error"
        Whether a missing text (None, NaN) raises or counts as empty.
    random_state : int, RandomState instance or None, default=0
        Seed of the order in which the solver takes the texts; an int, so that the same texts give the same
        classifier and the global generator is left alone.

    Returns
    -------
    Pipeline
        A scikit-learn pipeline with the steps "text" (:class:`TextJoiner`), "tfidf" (a union of "word" and
        "char") and "svm". Parameters to search over are, for example, ``svm__C`` (with ``calibrated=True``:
        ``svm__estimator__C``), ``tfidf__word__ngram_range`` and ``tfidf__char__min_df``.

    Raises
    ------
    TypeError
        If a parameter is of the wrong kind.
    ValueError
        If a parameter is out of range.

    See Also
    --------
    sktransformer.email.EmailCleaner : What to put in front of it for e-mails.

    Notes
    -----
    The pipeline takes lists, arrays, Series and frames of str. The columns of a frame are joined by line
    ends. It also takes what :class:`~sktransformer.email.EmailCleaner` gives, with and without
    ``set_output``.

    A class needs no minimum of examples for calibration, see :class:`StratifiedFolds`; with one or two
    examples its probabilities are guesses all the same.

    References
    ----------
    .. [1] S. Wang and C. Manning, "Baselines and Bigrams: Simple, Good Sentiment and Topic
       Classification", ACL 2012, https://aclanthology.org/P12-2018
    .. [2] J. Platt, "Probabilistic Outputs for Support Vector Machines and Comparisons to Regularized
       Likelihood Methods", Advances in Large Margin Classifiers, 1999, section 2.

    Examples
    --------
    >>> from sktransformer.baselines import tfidf_svm
    >>> mails = ["facture fausse", "erreur de facture", "colis perdu", "mon colis est en retard"]
    >>> classifier = tfidf_svm().fit(mails, ["facturation", "facturation", "livraison", "livraison"])
    >>> classifier.predict(["où est mon colis ?", "la facture"])
    array(['livraison', 'facturation'], dtype='<U11')
    """
    check_flag("calibrated", calibrated)
    check_number("C", C, low=0, open_low=True)
    check_choice("missing", missing, ("error", "empty"))
    words = TfidfVectorizer(ngram_range=word_ngrams, token_pattern=_TOKEN, min_df=min_df, sublinear_tf=True)
    characters = TfidfVectorizer(
        analyzer="char_wb", ngram_range=char_ngrams, min_df=min_df, sublinear_tf=True
    )
    svm: BaseEstimator = LinearSVC(
        C=C, class_weight=class_weight, max_iter=max_iter, random_state=random_state
    )
    if calibrated:
        svm = CalibratedClassifierCV(svm, cv=StratifiedFolds(), ensemble=True)
    features = _SparseUnion([("word", words), ("char", characters)])
    return Pipeline([("text", TextJoiner(missing=missing)), ("tfidf", features), ("svm", svm)])


class TextJoiner(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    r"""Make one text a row of lists, arrays, Series and frames, as scikit-learn's vectorizers need it.

    Parameters
    ----------
    missing : {"error", "empty"}, default="error"
        Whether a missing text (None, NaN) raises or counts as empty.

    See Also
    --------
    tfidf_svm : The pipeline that it is the first step of.

    Notes
    -----
    It has no state, and no ``set_output``: its output stays an array whatever a pipeline around it is set to.

    Examples
    --------
    >>> import pandas as pd
    >>> from sktransformer.baselines import TextJoiner
    >>> TextJoiner().transform(pd.DataFrame({"subject": ["Facture"], "body": ["Elle est fausse."]}))
    array(['Facture\nElle est fausse.'], dtype=object)
    """

    def __init__(self, *, missing: str = "error") -> None:
        self.missing = missing

    def fit(self, X: Any, y: object = None) -> Self:
        """Do nothing; `X` is read by :meth:`transform` alone, so that it may be a generator.

        Parameters
        ----------
        X : object
            Ignored.
        y : object, default=None
            Ignored.

        Returns
        -------
        TextJoiner
            The transformer itself.
        """
        return self

    def transform(self, X: Any) -> NDArray[np.object_]:
        """Join the columns of each row by line ends.

        Parameters
        ----------
        X : list, array, Series or frame of str
            Texts, in one column or several.

        Returns
        -------
        ndarray of shape (n_texts,), dtype object
            One text a row.

        Raises
        ------
        TypeError
            If `X` is a bare string or no sequence, or a cell is no string.
        ValueError
            If a text is missing, or the rows differ in length.
        """
        check_choice("missing", self.missing, ("error", "empty"))
        columns = [_checked(cells, name, self.missing) for name, cells in _columns(X)]
        texts = np.empty(len(columns[0]) if columns else 0, dtype=object)
        texts[:] = ["\n".join(cells) for cells in zip(*columns, strict=True)]
        return texts

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Name the one column of the output.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Ignored.

        Returns
        -------
        ndarray of shape (1,), dtype object
            The name "text".
        """
        return np.array(["text"], dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = True
        tags.no_validation = True  # transform checks texts; scikit-learn's checks of numbers don't apply
        tags.requires_fit = False
        return tags


class StratifiedFolds(BaseCrossValidator):
    """Split into folds of which every training part holds every class, however rare.

    A class with fewer examples than folds is spread over as many folds as it has examples; a single example
    is in all training parts and in no test part. scikit-learn's ``StratifiedKFold`` leaves such a class out
    of the training part, and ``CalibratedClassifierCV`` refuses the data.

    Parameters
    ----------
    max_splits : int, default=5
        Most folds; fewer if no class has as many examples.

    Notes
    -----
    The folds depend on the order of `y` alone: the examples of each class go to the folds in turn.

    Examples
    --------
    >>> from sktransformer.baselines import StratifiedFolds
    >>> for train, test in StratifiedFolds(2).split([0, 1, 2, 3, 4], ["a", "a", "a", "b", "c"]):
    ...     print(train, test)
    [1 3 4] [0 2]
    [0 2 3 4] [1]
    """

    def __init__(self, max_splits: int = 5) -> None:
        self.max_splits = max_splits

    def get_n_splits(self, X: object = None, y: ArrayLike | None = None, groups: object = None) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X : object, default=None
            Ignored.
        y : array-like of shape (n_samples,), default=None
            Labels.
        groups : object, default=None
            Ignored.

        Returns
        -------
        int
            `max_splits`, or the size of the largest class if that is smaller.

        Raises
        ------
        ValueError
            If no class has two examples.
        """
        check_number("max_splits", self.max_splits, low=2, integer=True)
        if y is None:
            return self.max_splits
        largest = int(np.unique(np.asarray(y), return_counts=True)[1].max(initial=0))
        if largest < 2:
            raise ValueError(
                "Calibration needs a class with two examples, but every class has one; add examples, "
                "or pass calibrated=False."
            )
        return min(self.max_splits, largest)

    def split(
        self, X: object, y: ArrayLike, groups: object = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Give the indices of each fold.

        Parameters
        ----------
        X : object
            Ignored.
        y : array-like of shape (n_samples,)
            Labels.
        groups : object, default=None
            Ignored.

        Yields
        ------
        train, test : ndarray of int
            Indices of the training and the test part.
        """
        n_splits = self.get_n_splits(X, y)
        _, codes = np.unique(np.asarray(y), return_inverse=True)
        fold = np.full(len(codes), -1)
        placed = 0
        for code in range(codes.max() + 1):
            members = np.flatnonzero(codes == code)
            if len(members) > 1:
                fold[members] = (placed + np.arange(len(members))) % n_splits
                placed += len(members)
        for number in range(n_splits):
            yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)


class _SparseUnion(FeatureUnion, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """A union whose output stays sparse whatever ``sklearn.set_config(transform_output=...)`` asks for."""


def _columns(X: Any) -> Iterable[tuple[str, list[Any]]]:
    """The columns of `X` with names for messages."""
    if isinstance(X, (str, bytes)):
        raise TypeError(f"X must hold one text a row, got a bare {type(X).__name__}; pass [text].")
    if hasattr(X, "columns") and hasattr(X, "shape"):
        names = list(X.columns)
        if not names:
            raise ValueError("X is a frame without columns; at least one of str is needed.")
        cells = [X.iloc[:, place] if hasattr(X, "iloc") else X[:, place] for place in range(len(names))]
        return [(f"X[{name!r}]", list(column)) for name, column in zip(names, cells, strict=True)]
    if isinstance(X, (dict, set, frozenset)) or not isinstance(X, Iterable):
        raise TypeError(f"X must be a list, array, Series or frame of str, got {type(X).__name__}.")
    rows = X.tolist() if isinstance(X, np.ndarray) else list(X)
    if not rows or not isinstance(rows[0], (list, tuple)):
        return [("X", rows)]
    width = len(rows[0])
    for number, row in enumerate(rows):
        if not isinstance(row, (list, tuple)) or len(row) != width:
            raise ValueError(f"X[{number}] must hold {width} text(s) like X[0], got {row!r:.60}.")
    return [(f"X[:, {place}]", list(column)) for place, column in enumerate(zip(*rows, strict=True))]


def _checked(cells: list[Any], name: str, missing: str) -> list[str]:
    """The cells of a column as plain strings; missing ones empty, or named in an error."""
    texts, absent = [], []
    for row, cell in enumerate(cells):
        if isinstance(cell, str):
            texts.append(str(cell))
        elif cell is None or _is_nan(cell):
            absent.append(row)
            texts.append("")
        else:
            raise TypeError(f"{name}[{row}] must be str, got {type(cell).__name__}.")
    if absent and missing == "error":
        rows = ", ".join(map(str, absent[:_ROWS_NAMED])) + (", ..." if len(absent) > _ROWS_NAMED else "")
        raise ValueError(
            f"{name} has {len(absent)} missing text(s), in row(s) {rows}; drop or fill missing texts, or "
            "pass missing='empty'."
        )
    return texts


def _is_nan(cell: Any) -> bool:
    # pandas' NA and NaT are told by name: comparing NA gives NA.
    return type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and bool(np.isnan(cell)))
