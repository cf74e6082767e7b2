"""Different models that vote with their probabilities."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.ensemble import VotingClassifier
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import Bunch
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from .._engine.validation import check_flag, check_number
from ._candidates import check_name, members_of
from ._inputs import as_labels, as_rows, as_weights
from ._members import Floats, copy_names, fit_clone, folds, needs_probabilities, out_of_fold
from ._pool import best_temperature, likelihoods, losses, pool_weights, tempered
from ._tables import TablesTravel

__all__ = ["WeightedSoftVote", "soft_vote"]

DEFAULT_MODELS = ("almanach/camembert-base", "flaubert/flaubert_base_cased")


def soft_vote(
    models: Sequence[Any] = DEFAULT_MODELS,
    *,
    weights: Any = None,
    cv: Any = 5,
    n_jobs: int | None = None,
    **parameters: Any,
) -> VotingClassifier:
    """Build scikit-learn's VotingClassifier of several Transformers, which averages their probabilities.

    Parameters
    ----------
    models : sequence, default=("almanach/camembert-base", "flaubert/flaubert_base_cased")
        What :class:`~sktransformer.TransformerClassifier` takes as `model` (hub ids, folders, configs), or pairs of a
        name and a classifier of any kind, also mixed.
    weights : {"fit"}, sequence of float or None, default=None
        Weight of each model; None weighs them alike. ``"fit"`` learns the weights on held-out folds, see
        :class:`WeightedSoftVote`, which fits each model `cv` times more.
    cv : int, splitter or iterable, default=5
        Folds for ``weights="fit"``.
    n_jobs : int or None, default=None
        Models fitted at the same time, as in joblib. Leave it at None on a GPU.
    **parameters
        Further parameters of each `TransformerClassifier`, for example ``max_epochs=5``.

    Returns
    -------
    VotingClassifier
        With ``voting="soft"``, not fitted. Its members are called after the last part of their model's name, so that a
        search reaches ``{"camembert-base__learning_rate": [2e-5, 5e-5]}``.

    Raises
    ------
    TypeError
        For unknown parameters, or parameters where no `TransformerClassifier` is built.
    ValueError
        For fewer than two models, names used twice, or weights that do not fit.

    See Also
    --------
    error_correlation : Whether the vote can pay: how often the models are wrong together.
    SeedEnsemble : One model with several seeds.

    Notes
    -----
    scikit-learn fits the members on the positions of the labels in `classes_`, so that their warnings name positions
    and a `class_weight` dict keyed by the labels does not work in them; ``"balanced"`` does. With ``weights="fit"`` the
    members see the labels themselves.

    Examples
    --------
    >>> from sktransformer.ensemble import soft_vote
    >>> vote = soft_vote(max_epochs=5, class_weight="balanced")
    >>> [name for name, _ in vote.estimators]
    ['camembert-base', 'flaubert_base_cased']
    >>> vote.get_params()["camembert-base__max_epochs"]
    5

    Classifiers of any kind, with weights learned from the data:

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> pairs = [("bayes", GaussianNB()), ("neighbours", KNeighborsClassifier(15))]
    >>> vote = soft_vote(pairs, weights="fit").fit(*load_iris(return_X_y=True))
    >>> vote.weights_.round(1)
    array([0., 1.])
    """
    if isinstance(models, (str, os.PathLike)) or not isinstance(models, Sequence) or len(models) < 2:
        raise ValueError(f"models must be a list of two models or more, got {models!r:.80}.")
    estimators = members_of(models, parameters)
    if isinstance(weights, str):
        if weights != "fit":
            raise ValueError(f"weights={weights!r} is not known; pass 'fit', None or one number a model.")
        return WeightedSoftVote(estimators, cv=cv, n_jobs=n_jobs)
    if weights is not None:
        if not isinstance(weights, Iterable):
            raise TypeError(
                f"weights must be 'fit', None or one number a model, got {type(weights).__name__}."
            )
        weights = list(weights)
        if len(weights) != len(estimators):
            raise ValueError(
                f"weights must hold one number for each of {len(estimators)} models, got {len(weights)}."
            )
        for i, weight in enumerate(weights):
            check_number(f"weights[{i}]", weight, low=0)
        if not sum(weights):
            raise ValueError("weights are all zero; give at least one model a positive weight.")
    return VotingClassifier(estimators, voting="soft", weights=weights, n_jobs=n_jobs)


class WeightedSoftVote(TablesTravel, VotingClassifier):
    """Soft vote of scikit-learn, with weights that are learned on held-out folds.

    Each member predicts folds that it was not fitted on. A temperature makes it neither too timid nor too sure there
    [3]_. The weights, not negative and with a sum of 1, are those whose weighted mean of probabilities then has the
    smallest log loss: a linear opinion pool [1]_ fitted by stacking [2]_. The members that vote are fitted on
    everything.

    Parameters
    ----------
    estimators : list of (str, classifier)
        The members, with names. ``"drop"`` in the place of one leaves it out.
    cv : int, splitter or iterable, default=5
        Folds. An int gives stratified ones of which every training part holds every class; a class with one member is
        then in no test part.
    calibrate : bool, default=True
        Fit a temperature for each member. Without, weights follow confidence as well as knowledge.
    n_jobs : int or None, default=None
        Fits at the same time, as in joblib.
    flatten_transform : bool, default=True
        As in scikit-learn's VotingClassifier: the shape of what `transform` gives.
    verbose : bool, default=False
        As in scikit-learn's VotingClassifier.

    Attributes
    ----------
    weights_ : ndarray of shape (n_members,)
        The learned weights.
    temperatures_ : ndarray of shape (n_members,)
        Temperature of each member: below 1 for a timid one, above 1 for one that is too sure.
    held_out_log_loss_ : Series
        Log loss on the held-out folds: of each member by its name, of ``"equal weights"`` and of ``"fitted weights"``,
        all with the temperatures.
    estimators_ : list of classifiers
        The members, fitted on everything; their `classes_` are the labels.
    named_estimators_ : Bunch
        The same by name.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.

    See Also
    --------
    soft_vote : Builds it from names of models.

    Notes
    -----
    On the held-out folds the fitted weights are at or above the best member and equal weights, in log loss. That is no
    promise for other scores, nor for other documents; with few documents equal weights are hard to beat.

    `sample_weight` reaches the members and the log loss.

    References
    ----------
    .. [1] C. Genest and J. Zidek, "Combining Probability Distributions: A Critique and an Annotated Bibliography",
       Statistical Science 1(1), 1986, section 3, doi:10.1214/ss/1177013825
    .. [2] P. Smyth and D. Wolpert, "Stacked Density Estimation", NIPS 1997, section 3.
    .. [3] C. Guo et al., "On Calibration of Modern Neural Networks", ICML 2017, section 4.2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sktransformer.ensemble import WeightedSoftVote
    >>> X, y = load_iris(return_X_y=True)
    >>> members = [("good", LogisticRegression(max_iter=500)), ("guess", DummyClassifier(strategy="uniform"))]
    >>> vote = WeightedSoftVote(members).fit(X, y)
    >>> vote.weights_
    array([1., 0.])
    """

    _series = ("held_out_log_loss_",)
    voting = "soft"  # what scikit-learn's class reads as parameters
    weights = None

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        *,
        cv: Any = 5,
        calibrate: bool = True,
        n_jobs: int | None = None,
        flatten_transform: bool = True,
        verbose: bool = False,
    ) -> None:
        self.estimators = estimators
        self.cv = cv
        self.calibrate = calibrate
        self.n_jobs = n_jobs
        self.flatten_transform = flatten_transform
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the members on everything, and learn the weights on held-out folds.

        Parameters
        ----------
        X : list, array, sparse matrix, Series or frame of n rows
            What the members take.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), optional
            Weights that each member's `fit` is given, and of the rows in the log loss.

        Returns
        -------
        WeightedSoftVote
            The classifier itself.

        Raises
        ------
        TypeError
            When a member has no `predict_proba`, or `sample_weight` is given and it takes none.
        ValueError
            For labels of a single class, unequal lengths, or classes with a single member each.
        """
        check_flag("calibrate", self.calibrate)
        X = as_rows(X)
        classes, index, values = as_labels(X, y)
        row_weights = as_weights(sample_weight, len(values))
        names, members = self._active()
        parts = folds(self.cv, X, index)
        # The members first: what is wrong with a document is then told by its place in X, not in a fold. And not by
        # the parent's `fit`, which hands no weights to pipelines, and shows members numbers where there were labels.
        fitted = Parallel(n_jobs=self.n_jobs)(
            delayed(fit_clone)(one, X, values, row_weights) for one in members
        )
        probabilities, rows = out_of_fold(members, X, values, row_weights, parts, self.n_jobs)
        among = None if row_weights is None else row_weights[rows]
        temperatures = np.ones(len(members))
        if self.calibrate:
            temperatures = np.array([best_temperature(p, index[rows], among) for p in probabilities])
        pairs = zip(probabilities, temperatures, strict=True)
        likelihood = likelihoods([tempered(p, temperature) for p, temperature in pairs], index[rows])
        weights = pool_weights(likelihood, among)
        table = np.column_stack([likelihood, likelihood.mean(axis=1), likelihood @ weights])
        self.le_, self.classes_ = LabelEncoder().fit(values), classes
        self.estimators_ = fitted
        placed = iter(fitted)
        self.named_estimators_ = Bunch(
            **{name: one if one == "drop" else next(placed) for name, one in self.estimators}
        )
        copy_names(self, fitted[0])
        self.weights_, self.temperatures_ = weights, temperatures
        self.held_out_log_loss_ = pd.Series(
            losses(table, among), index=[*names, "equal weights", "fitted weights"], name="log loss"
        )
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the label with the highest weighted mean of probabilities.

        Parameters
        ----------
        X : list, array, sparse matrix, Series or frame of n rows
            As in `fit`.

        Returns
        -------
        ndarray of shape (n,)
            Labels out of `classes_`.
        """
        choice = self.predict_proba(X).argmax(axis=1)  # which checks that there are classes
        labels: npt.NDArray[Any] = self.classes_[choice]
        return labels

    def predict_proba(self, X: Any) -> Floats:
        """Return the weighted mean of the members' class probabilities.

        Parameters
        ----------
        X : list, array, sparse matrix, Series or frame of n rows
            As in `fit`.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Columns in the order of `classes_`.
        """
        check_is_fitted(self)
        X = as_rows(X)
        pairs = zip(self.estimators_, self.temperatures_, strict=True)
        each = np.stack([tempered(member.predict_proba(X), temperature) for member, temperature in pairs])
        mean: Floats = np.tensordot(self.weights_.astype(each.dtype), each, axes=1)
        return mean

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Name the columns that `transform` gives: one a member and class.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Ignored.

        Returns
        -------
        ndarray of str objects
            Names.

        Raises
        ------
        ValueError
            With ``flatten_transform=False``, where `transform` gives no columns.
        """
        check_is_fitted(self)
        if not self.flatten_transform:
            raise ValueError(
                "transform gives three dimensions with flatten_transform=False, and no columns to name."
            )
        names, _ = self._active()
        return np.array([f"{name}{i}" for name in names for i in range(len(self.classes_))], dtype=object)

    def _active(self) -> tuple[list[str], list[Any]]:
        """Return names and members that are not dropped."""
        pairs = self.estimators if isinstance(self.estimators, list) else []
        active = [pair for pair in pairs if pair[1] != "drop"]
        names = [name for name, _ in pairs]
        if not active or len(set(names)) < len(names):
            raise ValueError(
                f"estimators must be a list of (name, classifier) with different names, and not all of them 'drop', "
                f"got {self.estimators!r:.80}."
            )
        for name in names:
            check_name(name, self.get_params(deep=False))
        for name, member in active:
            needs_probabilities(self, member, name)
        return [name for name, _ in active], [member for _, member in active]
