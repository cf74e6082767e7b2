"""
One sentence through an encoder, to its label
=============================================

What happens between a text and its class, tensor by tensor: tokens, embeddings, positions, the padding mask, attention
in several heads, the residual stream, the classifier and its loss. The encoder is one of ``sktransformer.nn``, trained
from scratch a few lines earlier. Letters in shapes: B texts, T tokens, H width, d width of a head, C classes.
"""

import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

from sktransformer import TransformerClassifier, TransformerConfig
from sktransformer.nn import parameter_count
from sktransformer.nn.attention import scaled_dot_product
from sktransformer.nn.masks import padding_mask

# %%
# A small model, trained from scratch
# -----------------------------------
# A configuration in the place of a checkpoint: the tokenizer is learned on ``X`` too.

invoices = [
    "ma facture est fausse",
    "je conteste cette facture",
    "facture en double",
    "où est ma facture",
    "la facture du mois est trop chère",
]
parcels = [
    "le colis est en retard",
    "colis perdu",
    "mon colis est abîmé",
    "où est mon colis",
    "le livreur a laissé le colis dehors",
]
X, y = (invoices + parcels) * 6, (["facture"] * 5 + ["colis"] * 5) * 6
config = TransformerConfig(vocab_size=200, hidden_size=32, num_layers=2, num_attention_heads=4, dropout=0.0)
classifier = TransformerClassifier(
    config, max_epochs=8, learning_rate=3e-3, precision="float32", random_state=0
)
classifier.fit(X, y)
model, tokenizer = classifier.model_, classifier.tokenizer_
print(f"accuracy on its own texts: {classifier.score(X, y):.2f}")
count = parameter_count(model.config, language_model=False)
print(f"{count.tokens} parameters of token embeddings, {count.blocks} in the layers")

# %%
# From a text to numbers
# ----------------------
# Two texts of different lengths make a rectangle; the mask says which tokens are padding.

texts = ["où est mon colis", "facture en double"]
batch = tokenizer(texts, padding=True, return_tensors="pt")
ids, attention_mask = batch["input_ids"], batch["attention_mask"]
for row, mask in zip(ids, attention_mask, strict=True):
    print(tokenizer.convert_ids_to_tokens(row.tolist()), mask.tolist())
print("ids, (B, T):", tuple(ids.shape))

# %%
# A row of a table for each token, times the square root of H, and sines and cosines of its position added to it
# (Vaswani et al. 2017, sections 3.4 and 3.5).

body = model.model
positions = torch.arange(ids.shape[1])[None]
with torch.no_grad():
    rows = body.embeddings.tokens(ids)
    hidden = body.embeddings(ids, positions)
print("rows of the table, (B, T, H):", tuple(rows.shape))
print("what is added to the first three tokens, four numbers of each:")
print((hidden - rows * math.sqrt(32))[0, :3, :4].numpy().round(3))

# %%
# Inside the first layer
# ----------------------
# The norm stands before the attention here. Queries, keys and values are three projections of the same vectors, cut
# into heads. What the attention makes is added to what went into it: the residual stream. The feed-forward layer does
# the same to each token by itself, through a space four times as wide and a GELU (section 3.3, with ReLU there).
# ``layer`` itself is called last, and has to make the same.

layer = body.encoder.layers[0]
attention = layer.self_attention
with torch.no_grad():
    normed = layer.self_attention_norm(hidden)
    query, key, value = (
        project(normed).unflatten(-1, (4, 8)).transpose(1, 2)
        for project in (attention.query, attention.key, attention.value)
    )
    print("queries, keys, values, (B, heads, T, d):", tuple(query.shape))
    scores = query @ key.transpose(2, 3) / math.sqrt(8)
    print("scores, (B, heads, T, T):", tuple(scores.shape))
    mask = padding_mask(attention_mask)
    print("mask of the second text, (B, 1, 1, T):", mask[1, 0, 0].int().tolist())
    attended, weights = scaled_dot_product(query, key, value, mask)
    print(
        f"weights of a query sum to {weights.sum(-1).min():.4f} (least) and {weights.sum(-1).max():.4f} (most);",
        "largest weight on padding:",
        weights[1, ..., -1].max().item(),
    )
    joined = attended.transpose(1, 2).flatten(2)
    print("heads joined, (B, T, H):", tuple(joined.shape))
    hidden_2 = hidden + attention.output(joined)
    inner = layer.feed_forward.up(layer.feed_forward_norm(hidden_2))
    print("inside the feed-forward layer, (B, T, 4 H):", tuple(inner.shape))
    hidden_3 = hidden_2 + layer.feed_forward.down(F.gelu(inner))
    whole = layer(hidden, mask).hidden
print("by hand and by the layer: equal within", (hidden_3 - whole).abs().max().item())

# %%
# To the label
# ------------
# After the last layer's norm the classifier reads the first token alone; by then it knows all others. There is a hidden
# state more than there are layers, that of the embeddings. The loss is the negative logarithm of the probability of the
# right class.

with torch.no_grad():
    made = model(ids, attention_mask=attention_mask, output_attentions=True, output_hidden_states=True)
    labels = torch.tensor([classifier.classes_.tolist().index(label) for label in ("colis", "facture")])
    probabilities = torch.softmax(made.logits, dim=-1)
    loss = -probabilities[torch.arange(2), labels].log().mean()
print("hidden states:", [tuple(states.shape) for states in made.hidden_states])
print("logits, (B, C):")
print(made.logits.numpy().round(2))
for text, row in zip(texts, probabilities, strict=True):
    print(
        text, {name: f"{p:.3f}" for name, p in zip(classifier.classes_.tolist(), row.tolist(), strict=True)}
    )
print(f"loss by hand {loss:.5f}, by torch {F.cross_entropy(made.logits, labels):.5f}")

# %%
# What each head looks at, in the first and the last layer: a row is a query, and its weights sum to 1.

tokens = tokenizer.convert_ids_to_tokens(ids[0].tolist())
figure, axes = plt.subplots(2, 4, figsize=(11, 6), layout="constrained")
for row, weights in zip(axes, made.attentions, strict=True):
    for head, axis in enumerate(row):
        axis.imshow(weights[0, head].numpy(), vmin=0, vmax=1, cmap="viridis")
        axis.set_xticks(range(len(tokens)), tokens, rotation=90, fontsize=7)
        axis.set_yticks(range(len(tokens)), tokens if head == 0 else [], fontsize=7)
for number, row in enumerate(axes, 1):
    row[0].set_ylabel(f"layer {number}")
figure.suptitle("attention weights of the four heads")
plt.show()
