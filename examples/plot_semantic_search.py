"""
Finding answers
===============

A corpus of answers is searched by vectors, by words, and by both; it grows and shrinks, and is stored. The answers are
invented, and the model is a small English one, so that the page is built in seconds.
"""

# %%
# The corpus
# ----------
# A frame with a column of texts. The other columns are shown beside the hits, and one of them names the documents.

import pandas as pd

answers = pd.DataFrame(
    [
        ("F1", "invoices", "Every invoice can be downloaded from your account as a PDF file."),
        ("F2", "invoices", "If an amount is wrong, send us the number of the document and we correct it."),
        (
            "F3",
            "invoices",
            "Direct debit is set up under Payment; error E-417 means that the bank refused it.",
        ),
        ("D1", "delivery", "Parcels leave our warehouse within two working days."),
        ("D2", "delivery", "A parcel that arrives damaged is replaced free of charge; send us a photo."),
        ("D3", "delivery", "The address can be changed until the goods have been handed to the carrier."),
        ("C1", "contract", "You may end your subscription at any time, with a month's notice."),
        ("C2", "contract", "When you move house, the contract moves with you."),
        ("A1", "account", "A forgotten password is reset by a link that we send to your mailbox."),
        ("A2", "account", "Error E-421 appears when the session has expired; log in again."),
    ],
    columns=["key", "topic", "answer"],
)

# %%
# Three ways to search
# --------------------
# What is fitted as "hybrid" can be asked in all three modes. Vectors find an answer that shares no word with the
# question; words find the code of an error, which means little to a model.

from sktransformer import SemanticSearch, TransformerEmbedder

embed = TransformerEmbedder("bundled:all-MiniLM-L6-v2")
search = SemanticSearch(embed, mode="hybrid", text_column="answer", id_column="key").fit(answers)
questions = [
    "How do I cancel?",
    "My box came broken",
    "What does E-421 stand for?",
    "I can't sign in any more",
]

best = {}
for mode in ("dense", "sparse", "hybrid"):
    hits = search.set_params(mode=mode).search(questions, n_neighbors=1)
    best[mode] = hits["document"].tolist()
print(pd.DataFrame(best, index=questions))

# %%
# ``search`` gives a frame, and ``kneighbors`` what scikit-learn's ``NearestNeighbors`` gives.

hits = search.search(questions[:2], n_neighbors=2)
print(hits[["query", "rank", "score", "document", "topic", "text"]].round(2).to_string(index=False))
distances, indices = search.kneighbors(questions[:2], 2)
print(distances.round(2), indices)

# %%
# Documents come and go
# ---------------------
# Those that stay keep their ids, and one that is gone says so.

late = pd.DataFrame(
    [("C3", "contract", "A cancelled contract can be revived within two weeks.")], columns=answers.columns
)
search.add(late).remove(["C1"])
print(search.search(["How do I cancel?"], n_neighbors=2)[["document", "text"]].to_string(index=False))
try:
    search.get_documents(["C1"])
except ValueError as error:
    print(error)

# %%
# One file
# --------
# joblib stores the model, the vectors and the words together; loading needs no network.

import tempfile
from pathlib import Path

import joblib

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "search.joblib")
    joblib.dump(search, path)
    print(f"{path.stat().st_size / 1e6:.0f} MB")
    print(joblib.load(path).search(["Can I get a copy of my invoice?"], n_neighbors=1)["text"].item())
