"""
How alike are two sentences?
============================

A regressor reads pairs: two columns of texts, and a number for each row. Here the number says how much two short
orders have in common, from 0 (nothing) to 5 (the same), and a small BERT learns it from scratch in seconds.
"""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.model_selection import train_test_split
from transformers import BertConfig

from sktransformer import TransformerRegressor

# %%
# Orders of a number, an object and a colour. Two of them are as alike as they have words in common, the object counting
# for three of the five points.

numbers, things, colours = ["un", "deux"], ["stylo", "cahier", "livre"], ["rouge", "vert"]
orders = list(product(numbers, things, colours))
pairs = [(a, b) for a in orders for b in orders]
frame = pd.DataFrame(
    {
        "first": [" ".join(a) for a, _ in pairs],
        "second": [" ".join(b) for _, b in pairs],
        "score": [float((a[0] == b[0]) + 3 * (a[1] == b[1]) + (a[2] == b[2])) for a, b in pairs],
    }
)
frame.sample(4, random_state=0)

# %%
# The same pair in the other order has the same score. Showing both teaches the model that the order says nothing; what
# is held out is held out with its mirror image, so that no answer is given away.

known, asked = train_test_split(frame[frame["first"] <= frame["second"]], test_size=0.25, random_state=0)
mirrored = known.rename(columns={"first": "second", "second": "first"})
train = pd.concat([known, mirrored], ignore_index=True)

config = BertConfig(
    vocab_size=80, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
)
model = TransformerRegressor(
    config,
    max_epochs=50,
    batch_size=16,
    learning_rate=5e-3,
    dropout=0.0,
    attention_dropout=0.0,
    random_state=0,
)
model.fit(train[["first", "second"]], train["score"])
predicted = model.predict(asked[["first", "second"]])

# %%
# Targets are standardised for training; the loss is in those units, predictions are in points again.

print(f"learned: mean {model.target_mean_[0]:.2f}, standard deviation {model.target_scale_[0]:.2f} points")
print(f"R² on unseen pairs: {model.score(asked[['first', 'second']], asked['score']):.2f}")
print(f"Spearman's correlation: {spearmanr(predicted, asked['score']).statistic:.2f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
left.plot(model.history_["epoch"], model.history_["train_loss"])
left.set(xlabel="epoch", ylabel="squared error, standardised", yscale="log")
jitter = np.random.default_rng(0).uniform(-0.08, 0.08, len(asked))
right.plot([0, 5], [0, 5], color="grey", linestyle="--")
right.scatter(asked["score"] + jitter, predicted, s=14)
right.set(xlabel="points", ylabel="predicted points")
plt.show()
