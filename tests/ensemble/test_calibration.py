"""scikit-learn's own calibration and thresholds on Transformers and mail pipelines."""

import warnings

import numpy as np
import pytest
from scipy.special import expit, log_softmax, softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import f1_score, log_loss, make_scorer
from sklearn.model_selection import (
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline

from sktransformer import EmailCleaner, TransformerClassifier, tfidf_svm
from sktransformer.ensemble import RejectOption, SeedEnsemble, soft_vote
from sktransformer.testing import tiny_checkpoint

# Random models of width 32 on a few short mails: what holds of their numbers holds whether they learned much or not.
pytestmark = pytest.mark.filterwarnings("ignore:training collapsed")

FOLDS = StratifiedKFold(2, shuffle=True, random_state=0)
TEXTS = {
    "facture": ("facture fausse", "facture payée"),
    "livraison": ("colis perdu", "colis cassé"),
    "panne": ("écran noir", "écran blanc"),
}


def mails(counts, noise, seed=0, signed=False):
    """Short mails; a share of `noise` is filed under a wrong label."""
    random = np.random.default_rng(seed)
    y = np.repeat(list(counts), list(counts.values()))
    X = [random.choice(TEXTS[c]) + "\n\nCordialement,\nA." * signed for c in y]
    wrong = random.random(len(y)) < noise
    y = np.where(wrong, random.permutation(y), y)
    order = random.permutation(len(y))
    return [X[i] for i in order], y[order]


def transformer(**parameters):
    settings = {"max_epochs": 3, "learning_rate": 4e-3, "batch_size": 4, "dropout": 0.0}
    settings |= {"attention_dropout": 0.0, "device": "cpu", "precision": "float32", "random_state": 0}
    return TransformerClassifier(tiny_checkpoint("bert"), **{**settings, **parameters})


def temperature_of(calibrated):
    (only,) = calibrated.calibrated_classifiers_
    (scaler,) = only.calibrators
    return 1 / scaler.beta_


@pytest.mark.parametrize("kinds", [2, 3])
def test_temperature_of_a_transformer(kinds):
    X, y = mails(dict.fromkeys(list(TEXTS)[:kinds], 8), noise=0.3)
    calibrated = CalibratedClassifierCV(transformer(), method="temperature", cv=FOLDS, ensemble=False).fit(
        X, y
    )
    plain = transformer().fit(X, y)
    proba = calibrated.predict_proba(X)
    # the most probable class stays what it was, and so does `predict`
    assert (proba.argmax(axis=1) == plain.predict_proba(X).argmax(axis=1)).all()
    assert calibrated.predict(X).tolist() == plain.predict(X).tolist()
    # the temperature divides the logits
    temperature = temperature_of(calibrated)
    logits = plain.decision_function(X)
    logits = np.column_stack([-logits, logits]) if kinds == 2 else logits  # as scikit-learn sees two classes
    np.testing.assert_allclose(proba, softmax(logits / temperature, axis=1), atol=1e-5)
    # and makes the log loss on the held-out folds no worse
    held = cross_val_predict(transformer(), X, y, cv=FOLDS, method="decision_function")
    held = np.column_stack([-held, held]) if kinds == 2 else held
    index = np.unique(y, return_inverse=True)[1]

    def loss(t):
        return -log_softmax(held / t, axis=1)[np.arange(len(y)), index].mean()

    # two logits -d and d make a sigmoid of 2d: the untouched probabilities are at temperature 2 there
    assert loss(temperature) <= loss(2.0 if kinds == 2 else 1.0) + 1e-6
    assert loss(temperature) <= min(loss(t) for t in np.geomspace(0.05, 20, 60)) + 1e-4
    if kinds == 2:
        np.testing.assert_allclose(plain.predict_proba(X)[:, 1], expit(plain.decision_function(X)), atol=1e-6)


def test_temperature_of_a_fitted_mail_router():
    X, y = mails(dict.fromkeys(TEXTS, 10), noise=0.3, signed=True)
    router = make_pipeline(EmailCleaner(), transformer()).fit(X[:18], y[:18])
    calibrated = CalibratedClassifierCV(FrozenEstimator(router), method="temperature", cv=FOLDS).fit(
        X[18:], y[18:]
    )
    assert calibrated.predict(X).tolist() == router.predict(X).tolist()
    # float64 holding sums of float32, which log_loss takes for unscaled probabilities
    proba = [one.predict_proba(X[18:]).astype(np.float32) for one in (router, calibrated)]
    before, after = (log_loss(y[18:], one) for one in proba)
    assert after <= before + 1e-6


def test_temperature_of_a_baseline_and_of_an_ensemble():
    X, y = mails(dict.fromkeys(TEXTS, 8), noise=0.2, signed=True)
    baseline = make_pipeline(EmailCleaner(), tfidf_svm())
    ensemble = SeedEnsemble(make_pipeline(EmailCleaner(), tfidf_svm(calibrated=True)), 2, random_state=0)
    for classifier in (baseline, ensemble):
        calibrated = CalibratedClassifierCV(classifier, method="temperature", cv=FOLDS, ensemble=False).fit(
            X, y
        )
        assert calibrated.predict(X).tolist() == classifier.fit(X, y).predict(X).tolist()
        np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("build", [transformer, lambda: make_pipeline(EmailCleaner(), tfidf_svm())])
def test_a_tuned_threshold_finds_the_rare_class(build):
    X, y = mails({"facture": 24, "panne": 6}, noise=0.1, seed=1)
    scoring = make_scorer(f1_score, pos_label="panne", zero_division=0.0)
    tuned = TunedThresholdClassifierCV(build(), scoring=scoring, cv=FOLDS, thresholds=20).fit(X, y)
    method = "predict_proba" if hasattr(build(), "predict_proba") else "decision_function"
    held = cross_val_predict(build(), X, y, cv=FOLDS, method=method)
    held = held[:, 1] if held.ndim == 2 else held

    def mean_score(threshold):
        names = np.where(held >= threshold, "panne", "facture")
        parts = [test for _, test in FOLDS.split(X, y)]
        return np.mean([f1_score(y[p], names[p], pos_label="panne", zero_division=0.0) for p in parts])

    assert mean_score(tuned.best_threshold_) >= mean_score(0.5 if method == "predict_proba" else 0.0) - 1e-9
    support = getattr(tuned, method)(X)
    support = support[:, 1] if support.ndim == 2 else support
    assert (
        tuned.predict(X).tolist() == np.where(support >= tuned.best_threshold_, "panne", "facture").tolist()
    )


@pytest.mark.filterwarnings(r"ignore:\d+ of \d+ runs collapsed and were tried again")
def test_a_transformer_with_seeds_a_vote_and_a_person():
    X, y = mails(dict.fromkeys(TEXTS, 8), noise=0.0)
    models = [tiny_checkpoint("bert"), tiny_checkpoint("camembert")]
    settings = {k: v for k, v in transformer().get_params().items() if k != "model"}
    vote = soft_vote(models, weights="fit", cv=2, **settings)
    router = RejectOption(make_pipeline(EmailCleaner(), vote), target_coverage=0.5, reject_label="?", cv=2)
    router.fit(X, y)
    assert router.coverage_ >= 0.5
    assert router.predict_proba(X).dtype == np.float32
    assert set(router.predict(X)) <= {*TEXTS, "?"}
    member = make_pipeline(EmailCleaner(), transformer(max_epochs=10))
    seeds = SeedEnsemble(
        member, 2, validation_fraction=0.3, on_collapse="retrain", max_retrain=9, random_state=0
    )
    seeds.fit(X, y)
    assert len(seeds.estimators_) == 2
    assert seeds.predict_proba(X).dtype == np.float32
    assert seeds.validation_scores_.min() > 1 / 6  # macro-F1 of one class out of three
    results = seeds.seed_results_
    assert [m[-1].random_state for m in seeds.estimators_] == results[results["kept"]].sort_values("member")[
        "seed"
    ].tolist()


def test_a_transformer_that_collapses_is_reported_once():
    X, y = mails(dict.fromkeys(TEXTS, 8), noise=0.0)
    still = transformer(learning_rate=0.0, max_epochs=1)
    with pytest.raises(RuntimeError, match="all 2 runs collapsed"):
        SeedEnsemble(still, 2, random_state=0).fit(X, y)


def test_case_c2_with_a_transformer():
    X, y = mails({"facture": 8, "livraison": 8}, noise=0.0)
    X, y = [*X, "assignation devant le tribunal"], [*y, "juridique"]
    single = pytest.warns(UserWarning, match="with a single member stay out of validation: juridique")
    with warnings.catch_warnings(), single:
        warnings.simplefilter(
            "ignore", ConvergenceWarning
        )  # one held-out row a class: a tiny model may miss it
        ensemble = SeedEnsemble(transformer(), 2, on_collapse="keep", random_state=0).fit(X, y)
    assert "juridique" in ensemble.classes_
    assert np.isfinite(ensemble.validation_scores_).all()
