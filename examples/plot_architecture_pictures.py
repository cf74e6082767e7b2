"""
The parts of a Transformer, drawn
=================================

Positional encodings, masks, attention weights and learning-rate schedules, each drawn by the functions that the models
of ``sktransformer.nn`` use.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from sktransformer.nn import TransformerConfig, parameter_count
from sktransformer.nn.attention import scaled_dot_product
from sktransformer.nn.masks import causal_mask, padding_mask, window_mask
from sktransformer.nn.positions import RelativeBias, alibi, rotary, rotate, sinusoidal
from sktransformer.nn.presets import PRESETS
from sktransformer.nn.schedules import SCHEDULES, schedule

# %%
# Sinusoidal positions
# --------------------
# Each position has a sine and a cosine at every frequency (Vaswani et al. 2017, section 3.5). Their products with those
# of position 50 depend on the distance alone.

table = sinusoidal(torch.arange(100), 128)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.2), layout="constrained")
left.imshow(table.T.numpy(), aspect="auto", cmap="RdBu")
left.set(xlabel="position", ylabel="dimension")
right.plot((table @ table[50] / 64).numpy())
right.set(xlabel="position", ylabel="product with position 50")
plt.show()

# %%
# Rotary positions, ALiBi and relative buckets
# --------------------------------------------
# Rotary positions turn queries and keys, so that one pair of vectors gives a product that varies with the distance.
# ALiBi takes a line off the scores, steeper in some heads; a relative bias is learned for each bucket of distances.

query, key = torch.ones(1, 1, 1, 32), torch.ones(1, 1, 64, 32)
turned = rotate(key, rotary(torch.arange(64)[None], 32))
products = (rotate(query, rotary(torch.tensor([[0]]), 32)) * turned).sum(-1)[0, 0] / 32
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3), layout="constrained")
left.plot(products.numpy())
left.set(xlabel="distance", ylabel="product", title="rotary")
for head, line in enumerate(alibi(1, 64, 4)[0, :, 0]):
    middle.plot(range(-63, 1), line.numpy(), label=f"head {head + 1}")
middle.set(xlabel="distance", title="ALiBi")
middle.legend()
buckets = RelativeBias(1, 32, 40, bidirectional=True).buckets(torch.arange(-40, 41))
right.step(range(-40, 41), buckets.numpy())
right.set(xlabel="distance", ylabel="bucket", title="relative")
plt.show()

# %%
# Masks
# -----
# Which key (column) a query (row) may see: the white ones. With a cache there are fewer queries than keys.

masks = {
    "bidirectional, padded": padding_mask(torch.tensor([[1] * 9 + [0] * 3])).expand(1, 1, 12, 12),
    "causal": causal_mask(12, 12),
    "causal, window of 4": causal_mask(12, 12, window=4),
    "window of 4": window_mask(12, 12, 4),
    "causal, 4 new tokens": causal_mask(4, 12),
}
figure, axes = plt.subplots(1, 5, figsize=(11, 2.6), layout="constrained")
for axis, (name, mask) in zip(axes, masks.items(), strict=True):
    axis.imshow(mask[0, 0].numpy(), vmin=0, vmax=1, cmap="Greys_r")
    axis.set_title(name, fontsize=9)
plt.show()

# %%
# The square root of d
# --------------------
# Products of random vectors of d numbers have variance d. Undivided, they push the softmax to where one weight is
# nearly 1 and the gradient nearly 0 (section 3.2.1, footnote 4).

torch.manual_seed(0)
query, key = torch.randn(1, 1, 200, 128), torch.randn(1, 1, 200, 128)
figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
for scale, name in ((None, "divided by the root of d"), (1.0, "undivided")):
    _, weights = scaled_dot_product(query, key, key, scale=scale)
    axis.hist(weights.max(-1).values[0, 0].numpy(), bins=np.linspace(0, 1, 41), alpha=0.7, label=name)
axis.set(xlabel="largest weight of a query among 200 keys", ylabel="queries")
axis.legend()
plt.show()

# %%
# Learning-rate schedules
# -----------------------
# What ``lr_schedule`` and ``warmup_ratio`` of every estimator mean; "inverse_sqrt" is that of 2017 (section 5.3).

figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
for name in SCHEDULES:
    factor = schedule(name, 1000, 0.1)
    axis.plot([factor(step) for step in range(1000)], label=name)
axis.set(xlabel="step", ylabel="factor on the learning rate")
axis.legend()
plt.show()

# %%
# Where the parameters are
# ------------------------
# ``parameter_count`` counts without building a model; beside it the rule of thumb 12 L H^2 + V H. The rule leaves
# out cross-attention, so it is too low for the encoder-decoders. "llama-like" has keys and values that heads share, for
# which the rule is too high, and an output layer that is not the table of tokens, which it leaves out.

parts = ("tokens", "positions", "self_attention", "cross_attention", "feed_forward")
figure, axis = plt.subplots(figsize=(8, 3), layout="constrained")
left = np.zeros(len(PRESETS))
counts = {name: parameter_count(TransformerConfig.preset(name)) for name in PRESETS}
for part in parts:
    sizes = np.array([getattr(count, part) / 1e6 for count in counts.values()])
    axis.barh(list(counts), sizes, left=left, label=part.replace("_", " "))
    left += sizes
axis.set(xlabel="millions of parameters")
axis.legend(fontsize=8)
for name, count in counts.items():
    print(
        f"{name:<18}{count.total / 1e6:7.1f} M, {count.blocks / 1e6:6.1f} M in layers, rule: {count.rule / 1e6:6.1f} M"
    )
plt.show()
