"""
Dates as people write them
==========================

An encoder-decoder turns a text into another. Here one is trained from nothing, in less than a minute, to write dates as
calendars keep them: ``le 3 mars 2021`` becomes ``2021-03-03``. With a pretrained checkpoint the same lines translate or
summarise.
"""

import datetime

import numpy as np

from sktransformer import Seq2SeqGenerator
from sktransformer.nn import TransformerConfig

MONTHS = (
    *("janvier", "février", "mars", "avril", "mai", "juin"),
    *("juillet", "août", "septembre", "octobre", "novembre", "décembre"),
)
random = np.random.default_rng(0)


def written(day: datetime.date) -> str:
    """Write a date in one of three ways."""
    month = MONTHS[day.month - 1]
    ways = (
        f"le {day.day} {month} {day.year}",
        f"{day.day:02}/{day.month:02}/{day.year}",
        f"{month} {day.year}, le {day.day}",
    )
    return ways[random.integers(3)]


days = [datetime.date(2000, 1, 1) + datetime.timedelta(days=int(n)) for n in random.permutation(9000)[:1700]]
X, y = [written(day) for day in days], [day.isoformat() for day in days]
print(list(zip(X[:3], y[:3], strict=True)))

# %%
# A configuration as ``model``
# ----------------------------
# It says what the model is made of; weights begin at random, and the tokenizer is learned on both sides of the pairs.
# A vocabulary of few pieces keeps digits apart.

config = TransformerConfig(
    architecture="encoder-decoder",
    hidden_size=64,
    num_layers=2,
    num_attention_heads=4,
    vocab_size=120,
    dropout=0.0,
    attention_dropout=0.0,
)
writer = Seq2SeqGenerator(
    config,
    max_length=64,
    max_epochs=12,
    batch_size=32,
    learning_rate=2e-3,
    num_beams=3,
    max_new_tokens=16,
    random_state=0,
)
writer.fit(X[:1500], y[:1500])
print(writer.history_[["epoch", "train_loss"]].iloc[::4].round(3).to_string(index=False))

# %%
# Dates that it has not seen
# --------------------------

found = writer.predict(X[1500:])
print(f"exact: {np.mean(found == np.array(y[1500:])):.2f}, chrF: {writer.score(X[1500:], y[1500:]):.3f}")

# %%
# The best texts and their scores
# -------------------------------
# A score is the log probability of a text, divided by its tokens. Where the second best comes close, a person should
# look.

for text in ("le 14 juillet 2016", "le 31 février 2010"):
    for one in writer.predict_n_best([text], n_best=2)[0]:
        print(f"{text:<20} {one['text']:<12} {one['score']:.3f}")
