"""
What a fit leaves behind
========================

A small BERT is trained from scratch on a few lines of text, with a held-out part that decides when to stop.
``history_`` has a row an epoch; the weights that stand are those of the best epoch.
"""

import matplotlib.pyplot as plt
from transformers import BertConfig

from sktransformer import TransformerClassifier

invoices = [
    "ma facture est fausse",
    "je conteste cette facture",
    "facture en double",
    "où est ma facture",
    "facture svp",
]
parcels = ["le colis est en retard", "colis perdu", "mon colis est abîmé", "où est mon colis", "colis svp"]
X, y = (invoices + parcels) * 6, (["facture"] * 5 + ["colis"] * 5) * 6

# %%
# A config in the place of a checkpoint means training from scratch, with a tokenizer learned on ``X``.

config = BertConfig(
    vocab_size=200, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
)
model = TransformerClassifier(
    config,
    max_epochs=12,
    learning_rate=5e-3,
    early_stopping=True,
    validation_fraction=0.2,
    n_iter_no_change=3,
    random_state=0,
)
model.fit(X, y)
print(model.history_[["epoch", "train_loss", "valid_score", "learning_rate"]].round(4))
print("best epoch:", model.best_epoch_)

# %%
# The same table as a picture.

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
left.plot(model.history_["epoch"], model.history_["train_loss"], marker="o")
left.set(xlabel="epoch", ylabel="training loss")
right.plot(model.history_["epoch"], model.history_["valid_score"], marker="o", color="tab:green")
right.axvline(model.best_epoch_, linestyle="--", color="grey")
right.set(xlabel="epoch", ylabel="held-out macro-F1")
plt.show()

# %%
# Unseen wordings, with probabilities.

for text, row in zip(
    texts := ["la facture svp", "un colis en retard"], model.predict_proba(texts), strict=True
):
    print(text, dict(zip(model.classes_.tolist(), row.round(2).tolist(), strict=True)))
