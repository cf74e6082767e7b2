"""
Entities in raw texts
=====================

A tagger learns people, places and amounts from spans of characters, and finds them in texts it has not seen.
A small BERT is trained from scratch on made-up sentences.
"""

import matplotlib.pyplot as plt
from transformers import BertConfig

from sktransformer import TransformerTokenClassifier

people, places = ["Marie", "Paul Martin", "Jean", "Anne Petit"], ["Lyon", "Saint-Denis", "Lille", "Paris"]
amounts = ["12 euros", "5.975,74 euros", "30 euros", "7,50 euros"]
patterns = [
    "{PER} habite à {LOC}.",
    "Facture de {SUM} pour {PER}.",
    "{PER} a payé {SUM} à l'hôpital de {LOC}.",
    "le colis de {PER} est à {LOC}",
]

# %%
# Spans are ``(start, end, label)``, in characters of the text.

texts, spans = [], []
for i in range(48):
    text, found = patterns[i % 4], []
    words = {"PER": people[i // 4 % 4], "LOC": places[i // 3 % 4], "SUM": amounts[i // 5 % 4]}
    while "{" in text:
        start = text.index("{")
        label = text[start + 1 : text.index("}")]
        text = text.replace(f"{{{label}}}", words[label], 1)
        found.append((start, start + len(words[label]), label))
    texts.append(text)
    spans.append(found)
print(texts[2], spans[2])

# %%
# ``decoding="crf"`` learns which tag follows which along with the encoder. A config in the place of a checkpoint means
# training from scratch.

config = BertConfig(
    vocab_size=300, hidden_size=48, num_hidden_layers=2, num_attention_heads=2, intermediate_size=96
)
tagger = TransformerTokenClassifier(
    config, decoding="crf", max_epochs=12, batch_size=8, learning_rate=4e-3, random_state=0
)
tagger.fit(texts, spans)
print(tagger.scheme_, tagger.classes_.tolist())

# %%
# No entity begins or ends inside a word, and the offsets are those of the raw text, blanks and all.

unseen = ["  Anne Petit habite à\nSaint-Denis.", "Facture de  30 euros pour Marie."]
for entities in tagger.predict_spans(unseen):
    for entity in entities:
        place = f"{entity['start']:3d}-{entity['end']:<3d}"
        print(place, entity["label"], f"{entity['score']:.2f}", entity["text"])
print("entity F1 on what it learned from:", round(tagger.score(texts, spans), 3))

# %%
# What the field has learned: the score of each tag (column) after each other (row). Transitions that the scheme
# forbids are left white.

chain = tagger.model_.crf
scores = chain.transition_scores.detach().masked_fill(~chain.allowed_transitions, float("nan")).numpy()
figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
picture = axes.imshow(scores, cmap="coolwarm", vmin=-1, vmax=1)
axes.set_xticks(range(len(tagger.classes_)), tagger.classes_, rotation=90)
axes.set_yticks(range(len(tagger.classes_)), tagger.classes_)
axes.set(xlabel="tag", ylabel="tag before it")
figure.colorbar(picture)
plt.show()
