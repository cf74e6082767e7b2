"""The contract over every estimator: a grid of guarantees and small instances."""

from collections.abc import Callable

import pytest

from sktransformer.testing import all_estimators, guarantees, text_estimator_checks
from sktransformer.testing.instances import INSTANCES, small_instances

# Estimator, or one of its instances -> check -> why it is known to fail. Strict: a check that passes must leave it.
FEW = "so few texts leave a class with a single one, of which a fit that holds some out warns"
FEW_FOR_FOLDS = "so few texts leave a class with fewer members than folds, which the search refuses"
SEARCHES = "a classifier or a regressor by its tags, like scikit-learn's searches"
TRANSFORM = (
    "what it transforms to, a column a member and class, is not the finest it gives: that is a column a class"
)
WORDS = (
    "a label's words are what is scored, and labels of another kind, or encoded as numbers, have other words"
)
MEMBERS = {
    "empty_input": "its members here begin with TF-IDF, which takes no empty input",
    "equal_sample_weights_change_nothing": "its members here are penalised regressions, whose penalty stays as it is",
}
EXCUSED: dict[str, dict[str, str]] = {
    "LanguageRouter": {
        "prediction_is_most_probable_class": "probabilities have the precision of its classifiers, here float64"
    },
    "OptunaSearch": {
        "bagging": "a bag draws copies of documents, and a search warns of copies on both sides of a fold",
        "classifier_mixin_stands_left": SEARCHES,
        "curve_of_learning": FEW_FOR_FOLDS,
        "empty_input": MEMBERS["empty_input"],
        "failed_fit_leaves_nothing": "the study of a failed search stays in `study_`, so that its trials can be read",
        "halving_search": FEW_FOR_FOLDS,
        "other_rows_raise": "trials that fail are counted, in one ValueError when all do, as in scikit-learn",
        "stored_estimators_work_on": "its study is a connection to a storage, and is not pickled",
    },
    "PromptClassifier": {
        "a_document_that_just_fits_is_whole": "max_length counts the prompt around a document and its label too",
        "cross_validation": WORDS,
        "grid_search": "8 tokens, one of its points, leave no room for a document beside prompt and label",
        "labels_of_any_type": WORDS,
        "soft_voting": WORDS,
        "two_classes": WORDS,
    },
    "PromptClassifier-0": {
        "truncation_keeps_what_it_says": "16 tokens leave no room for two ends of a document beside its prompt",
    },
    "PromptClassifier-1": {"stacking": WORDS},
    "RejectOption": {
        **MEMBERS,
        "labels_of_any_type": "predictions hold the reject label too, and are objects where it is of another kind",
    },
    "SeedEnsemble": {
        **MEMBERS,
        "classifier_mixin_stands_left": SEARCHES,
        "curve_of_learning": FEW,
        "halving_search": FEW,
    },
    "WeightedSoftVote": {
        **MEMBERS,
        "features_for_a_linear_model": TRANSFORM,
        "pairs_in_a_column_transformer": TRANSFORM,
        "pandas_and_polars_output": TRANSFORM,
        "selectors_of_a_column_transformer": TRANSFORM,
        "two_of_them_side_by_side": TRANSFORM,
    },
}


def grid() -> list[object]:
    cells = []
    # the cleaner last: worker processes that have begun without torch are renewed when it comes
    for name, cls in reversed(all_estimators()):
        for i, estimator in enumerate(small_instances(cls)):
            for check, run in text_estimator_checks(estimator):
                reason = {**EXCUSED.get(name, {}), **EXCUSED.get(f"{name}-{i}", {})}.get(check)
                marks = () if reason is None else pytest.mark.xfail(reason=reason, strict=True)
                cells.append(pytest.param(run, id=f"{name}-{i}-{check}", marks=marks))
    return cells


@pytest.mark.parametrize("run", grid())
def test_guarantee(run: Callable[[], None]) -> None:
    run()


def test_no_estimator_escapes() -> None:
    names = [name for name, _ in all_estimators()]
    assert {
        "EmailCleaner",
        "TransformerClassifier",
        "TransformerEmbedder",
        "TransformerTokenClassifier",
    } <= set(names)
    assert set(INSTANCES) == set(names)


def test_every_check_applies_somewhere() -> None:
    applied = {
        check for _, cls in all_estimators() for check, _ in text_estimator_checks(small_instances(cls)[0])
    }
    assert applied == {name for _, name, _ in guarantees()}


def test_every_line_has_checks() -> None:
    assert {line for line, _, _ in guarantees()} == set(range(1, 23))
