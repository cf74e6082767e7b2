"""One estimator a language."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import Tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._engine.compat import check_columns
from ._identify import KNOWN, Languages, identifier
from ._inputs import describe_input
from ._parts import (
    FALLBACK,
    align,
    all_have,
    check_labels,
    check_parameters,
    count_routes,
    default_language,
    fit_one,
    parameters_of,
    plan_routes,
    scores_of,
)
from ._rows import Rows


class LanguageRouter(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Identify the language of each text and hand it to the classifier of that language.

    The languages are identified by py3langid (extra ``[email]``), restricted to a few, and a text that is too
    short or too odd to tell counts as one in the default language. A text gets the same language alone and in
    any company.

    Parameters
    ----------
    estimators : dict of str to classifier, or classifier, default=None
        A classifier for each language by ISO 639-1 code, ``{"fr": ..., "en": ...}``; or one, of which every
        language that occurs often enough gets a clone. None is enough for :meth:`identify`.
    fallback : classifier, default=None
        Takes the texts in other languages. It learns from all texts, since the others alone are few.
    default : str, default=None
        Language of texts that can't be told. None: the first one of `estimators` if it is a dict, otherwise the
        first one of `languages`.
    languages : sequence of str, default=None
        Languages that a text may be in, to which those of `estimators` and `default` are added. None: French,
        English, German, Spanish, Italian, Dutch and Portuguese.
    min_words : int, default=3
        Texts with fewer words count as undecided. Numbers, addresses and single letters are no words; in scripts
        without blanks each character is one.
    min_confidence : float, default=0.5
        Texts whose language is less probable than this count as undecided; between 0 and 1.
    min_samples : int, default=5
        Where `estimators` is one classifier, a language needs as many texts to get a clone. The texts in rarer
        ones go to the fallback, or else to the classifier of the default language.
    missing : {"error", "empty"}, default="error"
        Whether a missing text (None, NaN) raises or counts as empty.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels of all languages, sorted.
    languages_ : list of str
        The languages that have a classifier of their own, sorted.
    estimators_ : dict of str to classifier
        The fitted classifier of each of them.
    fallback_ : classifier or None
        The fitted fallback.
    default_ : str
        The language of undecided texts.
    default_route_ : str
        Where texts go whose language has no classifier: "fallback", or a language.
    routing_ : DataFrame
        What went where in :meth:`fit`: for each language that occurred the number of texts ("n_texts"), how
        many of them could not be told and are here by default ("n_undecided"), and whose classifier takes them
        ("estimator": a language, or "fallback").
    counts_ : list of tuple
        The rows of `routing_`.
    n_features_in_ : int
        Number of columns seen in :meth:`fit`. Only defined when `X` has columns.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns seen in :meth:`fit`. Only defined when `X` has columns with str names.

    See Also
    --------
    sktransformer.email.EmailCleaner : What to put in front of it: quoted messages and signatures may be in other
        languages.

    Notes
    -----
    Of a frame, all columns with texts count for the language, and the classifiers get all columns.

    A language that only occurs after :meth:`fit` goes to the fallback, or else to the classifier of the default
    language; where that language did not occur in :meth:`fit`, to the one with most texts.

    Languages may have different labels: a label that a language's classifier has not seen has probability 0, and
    in :meth:`decision_function` a value of 1 below the lowest. A language whose texts all have one label goes to the
    fallback; without one it gets a constant answer, with a warning.

    A pickle holds the classifiers, and not the identifier.

    References
    ----------
    .. [1] M. Lui and T. Baldwin, "langid.py: An Off-the-shelf Language Identification Tool", ACL 2012,
       https://aclanthology.org/P12-3005

    Examples
    --------
    >>> from sktransformer import LanguageRouter, tfidf_svm
    >>> texts = ["ma facture est fausse", "je veux payer la facture", "mon colis est perdu", "où est le colis",
    ...          "my invoice is wrong", "I want to pay the invoice", "my parcel is lost", "where is the parcel"]
    >>> labels = ["facture", "facture", "colis", "colis"] * 2
    >>> router = LanguageRouter({"fr": tfidf_svm(), "en": tfidf_svm()}).fit(texts, labels)
    >>> router.predict(["the invoice is wrong", "la facture est fausse", "le colis"]).tolist()
    ['facture', 'facture', 'colis']
    >>> router.identify(["the invoice is wrong", "la facture est fausse", "404"]).tolist()
    ['en', 'fr', 'fr']
    >>> router.routing_
              n_texts  n_undecided estimator
    language
    en              4            0        en
    fr              4            0        fr
    """

    def __init__(
        self,
        estimators: Any = None,
        *,
        fallback: Any = None,
        default: str | None = None,
        languages: Any = None,
        min_words: int = 3,
        min_confidence: float = 0.5,
        min_samples: int = 5,
        missing: str = "error",
    ) -> None:
        self.estimators = estimators
        self.fallback = fallback
        self.default = default
        self.languages = languages
        self.min_words = min_words
        self.min_confidence = min_confidence
        self.min_samples = min_samples
        self.missing = missing

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Identify the languages, and fit the classifier of each on its texts.

        Parameters
        ----------
        X : list, array, Series or frame
            Texts, one a row.
        y : array-like of shape (n_texts,)
            Labels.
        **fit_params : dict
            Handed to the `fit` of the classifiers; what has one value a row, such as ``sample_weight``, is cut into
            the rows of each. With metadata routing, what each of them has requested.

        Returns
        -------
        LanguageRouter
            The router itself.

        Raises
        ------
        MissingExtraError
            If py3langid is not installed.
        TypeError
            If `X` is a bare string, a row is no text, or `estimators` is no classifier or dict of them.
        ValueError
            If `X` is empty, a text is missing, there is one label only, a language has no classifier and there is no
            fallback, or a parameter is out of range.
        """
        check_parameters(self, self._parts())
        if not self._parts():
            raise ValueError(
                "estimators=None is only enough for identify; pass a classifier, or one a language: "
                "{'fr': ..., 'en': ...}."
            )
        rows = Rows(X, missing=self.missing)
        y = check_labels(y, len(rows), type(self).__name__)
        default = default_language(self)
        languages = self._languages_of(rows.texts)
        plan = plan_routes(self, default, languages.codes, y)
        params = self._routed(fit_params)
        own = {
            language: fit_one(part, language, rows, y, np.flatnonzero(plan.routes == language), params)
            for language, part in plan.own.items()
        }
        fallback = None
        if self.fallback is not None:
            fallback = fit_one(self.fallback, FALLBACK, rows, y, np.arange(len(rows)), params)
        check_columns(self, X if rows.width else rows.X, rows.width, reset=True)
        self.classes_ = np.unique(y)
        self.estimators_, self.fallback_, self.default_ = own, fallback, default
        self.languages_ = sorted(own)
        self.default_route_ = plan.default
        self.counts_ = count_routes(languages.codes, languages.undecided, plan.routes)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the label of each text with the classifier of its language.

        Parameters
        ----------
        X : list, array, Series or frame
            Texts, one a row.

        Returns
        -------
        ndarray of shape (n_texts,)
            Labels.
        """
        rows, routes = self._read_fitted(X)
        labels = np.empty(len(rows), dtype=self.classes_.dtype)
        for part, places in self._groups(routes):
            labels[places] = part.predict(rows.take(places))
        return labels

    @available_if(all_have("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Give the probability of each label; 0 for labels that the language's classifier has not seen.

        Parameters
        ----------
        X : list, array, Series or frame
            Texts, one a row.

        Returns
        -------
        ndarray of shape (n_texts, n_classes)
            Probabilities in the order of `classes_`.
        """
        rows, routes = self._read_fitted(X)
        parts = [(p, places, p.predict_proba(rows.take(places))) for p, places in self._groups(routes)]
        return align(self.classes_, len(rows), parts, absent=0)

    @available_if(all_have("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Give the score of each label; classifiers of different languages need not share a scale.

        Parameters
        ----------
        X : list, array, Series or frame
            Texts, one a row.

        Returns
        -------
        ndarray of shape (n_texts, n_classes), or (n_texts,) for two classes
            Scores in the order of `classes_`, or those of the second one.
        """
        rows, routes = self._read_fitted(X)
        parts = [(p, places, scores_of(p, rows.take(places))) for p, places in self._groups(routes)]
        scores = align(self.classes_, len(rows), parts, absent=None)
        return (scores[:, 1] - scores[:, 0]) / 2 if len(self.classes_) == 2 else scores

    def identify(self, X: Any) -> NDArray[np.object_]:
        """Tell the language of each text; works without :meth:`fit`.

        Parameters
        ----------
        X : list, array, Series or frame
            Texts, one a row.

        Returns
        -------
        ndarray of shape (n_texts,), dtype object
            ISO 639-1 codes; the default language where a text is too short or too odd to tell.
        """
        check_parameters(self, self._parts())
        return self._languages_of(Rows(X, missing=self.missing).texts).codes

    def route(self, X: Any) -> pd.DataFrame:
        """Tell where each text goes, and why.

        Parameters
        ----------
        X : list, array, Series or frame
            Texts, one a row.

        Returns
        -------
        DataFrame of shape (n_texts, 4)
            The columns "language"; "confidence", the probability of the best guess; "decided", whether that guess
            was taken; and "estimator", the language whose classifier takes the text, or "fallback". The index is
            that of `X` if it is a pandas object.
        """
        rows, routes = self._read_fitted(X)
        found = self._languages_of(rows.texts)
        index = X.index if isinstance(X, (pd.DataFrame, pd.Series)) else None
        columns = {"language": found.codes, "confidence": found.confidence, "decided": ~found.undecided}
        return pd.DataFrame({**columns, "estimator": routes}, index=index)

    @property
    def routing_(self) -> pd.DataFrame:
        """What went where in :meth:`fit`, made from `counts_`: a frame as an attribute can't be stored by skops."""
        columns = ["language", "n_texts", "n_undecided", "estimator"]
        return pd.DataFrame(self.counts_, columns=columns).set_index("language")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get the parameters, and those of the classifiers.

        Parameters
        ----------
        deep : bool, default=True
            Whether to add the classifiers of a dict by language, and their parameters as ``fr__...``.

        Returns
        -------
        dict
            Names and values.
        """
        own: dict[str, Any] = super().get_params(deep=deep)
        if deep and isinstance(self.estimators, Mapping):
            own.update(parameters_of(self.estimators))
        return own

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the router or of its classifiers.

        Parameters
        ----------
        **params : dict
            By the names of :meth:`get_params`.

        Returns
        -------
        LanguageRouter
            The router itself.
        """
        if "estimators" in params:
            self.estimators = params.pop("estimators")
        if isinstance(self.estimators, Mapping):
            replaced = {name: params.pop(name) for name in tuple(params) if name in self.estimators}
            if replaced:  # the dict is the user's
                self.estimators = {**self.estimators, **replaced}
        super().set_params(**params)
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """Tell scikit-learn which classifier wants what.

        Returns
        -------
        MetadataRouter
            One entry a classifier: its language, "estimators" for one of which all are clones, or "fallback".
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        for name, part in self._parts().items():
            router.add(method_mapping=MethodMapping().add(caller="fit", callee="fit"), **{name: part})
        return router

    def _parts(self) -> dict[str, Any]:
        """The classifiers as they were passed, by the names of their parameters."""
        named = self.estimators if isinstance(self.estimators, Mapping) else {"estimators": self.estimators}
        return {name: part for name, part in {**named, FALLBACK: self.fallback}.items() if part is not None}

    def _languages_of(self, texts: list[str]) -> Languages:
        named = self.estimators if isinstance(self.estimators, Mapping) else ()
        chosen = KNOWN if self.languages is None else self.languages
        default = default_language(self)
        of = identifier([*chosen, *named, default])
        return of.decide(texts, default, self.min_words, self.min_confidence)

    def _read_fitted(self, X: Any) -> tuple[Rows, NDArray[np.object_]]:
        check_is_fitted(self, "estimators_")
        rows = Rows(X, missing=self.missing)
        if len(rows):
            check_columns(self, X if rows.width else rows.X, rows.width, reset=False)
        routes = np.empty(len(rows), dtype=object)
        languages = self._languages_of(rows.texts).codes.tolist()
        routes[:] = [name if name in self.estimators_ else self.default_route_ for name in languages]
        return rows, routes

    def _groups(self, routes: NDArray[np.object_]) -> list[tuple[Any, NDArray[np.intp]]]:
        parts = {**self.estimators_, FALLBACK: self.fallback_}
        return [(parts[route], np.flatnonzero(routes == route)) for route in sorted(set(routes.tolist()))]

    def _routed(self, fit_params: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """What the `fit` of each classifier is handed, by the names of :meth:`_parts`."""
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **fit_params)
            return {name: dict(routed[name].fit) for name in self._parts()}
        return dict.fromkeys(self._parts(), fit_params)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        describe_input(tags, self.missing)
        tags.classifier_tags.poor_score = True  # scikit-learn's checks pass numbers
        return tags
