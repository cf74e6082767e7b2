"""What it costs to leave documents to a person, and what it saves: risk against coverage."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._engine.errors import optional_import
from ._inputs import as_rows, as_targets

__all__ = ["RiskCoverageDisplay", "risk_coverage_curve"]

Floats = npt.NDArray[np.float64]


def risk_coverage_curve(y_true: Any, proba: Any, classes: Any = None) -> tuple[Floats, Floats, Floats]:
    """Compute the share of errors among the documents that are answered, for each share that is answered.

    Documents are answered in the order of their confidence, the highest class probability [1]_.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    proba : array-like of shape (n, n_classes)
        Class probabilities.
    classes : array-like of shape (n_classes,), default=None
        What the columns stand for; None takes the sorted labels of `y_true`.

    Returns
    -------
    coverage : ndarray of float
        Shares of the documents that are answered, rising up to 1.
    risk : ndarray of float
        Share of errors among these.
    thresholds : ndarray of float
        Least confidence at which a document is answered, falling. Documents of one confidence are answered together.

    Raises
    ------
    ValueError
        For unequal lengths, no documents, probabilities that are not finite, or another number of columns than classes.

    See Also
    --------
    RiskCoverageDisplay : Draws it.
    RejectOption : Chooses a point of it and keeps to it.

    References
    ----------
    .. [1] Y. Geifman and R. El-Yaniv, "Selective Classification for Deep Neural Networks", NIPS 2017, section 2,
       https://arxiv.org/abs/1705.08500

    Examples
    --------
    >>> from sktransformer.ensemble import risk_coverage_curve
    >>> proba = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]
    >>> coverage, risk, thresholds = risk_coverage_curve(["a", "b", "b", "a"], proba)
    >>> coverage
    array([0.25, 0.5 , 0.75, 1.  ])
    >>> risk.round(2)
    array([0.  , 0.  , 0.33, 0.25])
    >>> thresholds
    array([0.9, 0.8, 0.6, 0.5])
    """
    labels = as_targets(y_true, y_true)
    probability = np.asarray(proba)
    columns = np.unique(labels) if classes is None else np.asarray(classes)
    if probability.ndim != 2 or probability.shape[1] != len(columns):
        raise ValueError(
            f"proba must have one column for each of {len(columns)} classes, got shape {probability.shape}; pass what "
            f"predict_proba gives, and classes=estimator.classes_."
        )
    check_consistent_length(labels, probability)
    if not np.isfinite(probability).all():
        raise ValueError("proba holds values that are not finite; look at the classifier that gave them.")
    return curve(probability.max(axis=1), columns[probability.argmax(axis=1)] != labels)


def curve(confidence: npt.NDArray[Any], wrong: npt.NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
    """Return coverage, risk and threshold at each confidence that occurs, from the highest down."""
    order = np.argsort(-confidence, kind="stable")
    ranked = confidence[order]
    errors = np.cumsum(wrong[order])
    last = np.append(ranked[1:] != ranked[:-1], True).nonzero()[0]  # of those of one confidence, the last
    answered = last + 1
    return answered / len(ranked), errors[last] / answered, ranked[last].astype(np.float64)


def area(coverage: Floats, risk: Floats) -> float:
    """Return the mean risk over all coverages.

    Without ties that is the mean of the risks at 1, 2, ..., n answered documents (Geifman, Uziel and El-Yaniv,
    "Bias-Reduced Uncertainty Estimation for Deep Neural Classifiers", ICLR 2019, section 2).
    """
    return float((risk * np.diff(coverage, prepend=0.0)).sum())


class RiskCoverageDisplay:
    """Draw risk against coverage: how many errors are left when the least certain documents go to a person.

    Parameters
    ----------
    coverage : ndarray of float
        Shares of the documents that are answered, rising.
    risk : ndarray of float
        Share of errors among these.
    aurc : float, default=None
        Mean risk over all coverages, for the legend; lower is better [1]_.
    name : str, default=None
        Name for the legend.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The curve.
    ax_ : matplotlib Axes
        Where it is drawn.
    figure_ : matplotlib Figure
        The figure of these axes.

    See Also
    --------
    risk_coverage_curve : The numbers.

    Notes
    -----
    It needs matplotlib: ``pip install "sktransformer-text[plot]"``. The right end is the error rate of a classifier
    that answers everything. At the left end few documents are answered, and the curve is noisy there.

    References
    ----------
    .. [1] Y. Geifman, G. Uziel and R. El-Yaniv, "Bias-Reduced Uncertainty Estimation for Deep Neural Classifiers",
       ICLR 2019, section 2, https://arxiv.org/abs/1805.08206

    Examples
    --------
    >>> from sktransformer.ensemble import RiskCoverageDisplay
    >>> proba = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]
    >>> display = RiskCoverageDisplay.from_predictions(["a", "b", "b", "a"], proba, name="router")
    >>> display.line_.get_label()
    'router (AURC = 0.146)'
    """

    def __init__(
        self, *, coverage: Floats, risk: Floats, aurc: float | None = None, name: str | None = None
    ) -> None:
        self.coverage = coverage
        self.risk = risk
        self.aurc = aurc
        self.name = name

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where; None makes a new figure.
        name : str, default=None
            Name for the legend in place of the display's own.
        **kwargs
            For matplotlib's `plot`, for example ``color="black"``.

        Returns
        -------
        RiskCoverageDisplay
            The display itself.

        Raises
        ------
        MissingExtraError
            Without matplotlib.
        """
        if ax is None:
            _, ax = optional_import("matplotlib.pyplot", "plot").subplots()
        name = self.name if name is None else name
        score = None if self.aurc is None else f"AURC = {self.aurc:.3f}"
        label = f"{name} ({score})" if name and score else name or score
        (self.line_,) = ax.plot(
            self.coverage, self.risk, **{"label": label, "drawstyle": "steps-pre", **kwargs}
        )
        self.ax_, self.figure_ = ax, ax.figure
        top = max(line.get_ydata().max() for line in ax.get_lines())
        ax.set(
            xlabel="Coverage (share of documents answered)",
            ylabel="Risk (share of errors among them)",
            xlim=(0, 1.01),
            ylim=(-0.02 * (top or 1), 1.08 * (top or 1)),
        )
        if self.line_.get_label() and not str(self.line_.get_label()).startswith("_"):
            ax.legend(loc="best")
        return self

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        proba: Any,
        *,
        classes: Any = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve of class probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        proba : array-like of shape (n, n_classes)
            Class probabilities, for instance from ``cross_val_predict(method="predict_proba")``.
        classes : array-like of shape (n_classes,), default=None
            What the columns stand for; None takes the sorted labels of `y_true`.
        name : str, default=None
            Name for the legend.
        ax : matplotlib Axes, default=None
            Where; None makes a new figure.
        **kwargs
            For matplotlib's `plot`.

        Returns
        -------
        RiskCoverageDisplay
            The display, drawn.
        """
        coverage, risk, _ = risk_coverage_curve(y_true, proba, classes)
        display = cls(coverage=coverage, risk=risk, aurc=area(coverage, risk), name=name)
        return display.plot(ax, **kwargs)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, name: str | None = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the curve of a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            Fitted, with `predict_proba`.
        X : list, array, sparse matrix, Series or frame of n rows
            Documents that it was not fitted on.
        y : array-like of shape (n,)
            Their labels.
        name : str, default=None
            Name for the legend; None takes the estimator's class.
        ax : matplotlib Axes, default=None
            Where; None makes a new figure.
        **kwargs
            For matplotlib's `plot`.

        Returns
        -------
        RiskCoverageDisplay
            The display, drawn.
        """
        check_is_fitted(estimator)
        name = type(estimator).__name__ if name is None else name
        proba = estimator.predict_proba(as_rows(X))
        return cls.from_predictions(y, proba, classes=estimator.classes_, name=name, ax=ax, **kwargs)
