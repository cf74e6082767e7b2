"""
One sentence through an encoder-decoder, to its translation
===========================================================

The model of Vaswani et al. 2017 in the small: what the encoder reads, what the decoder reads, the shifted target, both
masks, cross-attention, the loss, and writing one word after another with a cache. Then parts are taken away, and the
model is trained again each time, to see what breaks. Letters in shapes: B sentences, T words of the source, U of the
target, H width, V vocabulary.
"""

import itertools

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from sktransformer import TransformerConfig
from sktransformer.nn import EncoderDecoderForSeq2SeqLM
from sktransformer.nn.masks import self_attention_mask
from sktransformer.nn.models import CACHE
from sktransformer.nn.schedules import schedule

torch.set_num_threads(1)  # at this size a second thread costs more than it brings

# %%
# A small language
# ----------------
# French puts these adjectives behind the noun and English before it, so words can't be translated one by one.

determiners = {"le": "the", "un": "a"}
nouns = {
    "chat": "cat",
    "chien": "dog",
    "livre": "book",
    "train": "train",
    "pont": "bridge",
    "jardin": "garden",
}
adjectives = {"noir": "black", "rouge": "red", "vert": "green", "lourd": "heavy", "neuf": "new"}
verbs = {"dort": "sleeps", "attend": "waits", "brille": "shines", "tombe": "falls", "part": "leaves"}
pairs = [
    (f"{d} {n} {a} {v}", f"{determiners[d]} {adjectives[a]} {nouns[n]} {verbs[v]}")
    for d, n, a, v in itertools.product(determiners, nouns, adjectives, verbs)
]
pairs += [
    (f"{d} {n} {v}", f"{determiners[d]} {nouns[n]} {verbs[v]}")
    for d, n, v in itertools.product(determiners, nouns, verbs)
]
order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(0)).tolist()
held_out, pairs = [pairs[i] for i in order[:60]], [pairs[i] for i in order[60:]]
PAD, END = 0, 1
words = [
    "<pad>",
    "</s>",
    *sorted({word for pair in [*pairs, *held_out] for text in pair for word in text.split()}),
]
number = {word: i for i, word in enumerate(words)}


def encode(texts):
    """Number the words, add an end, fill up with padding: (B, T)."""
    rows = [torch.tensor([number[word] for word in text.split()] + [END]) for text in texts]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)


def loss_of(model, source, target):
    """Teacher forcing: at each place the decoder is given the true words before it. Padding is left out (-100)."""
    return model(source, (source != PAD).long(), labels=target.masked_fill(target == PAD, -100)).loss


def train(model, draw, n_steps, learning_rate=3e-3, warmup_ratio=0.1):
    """Adam with the schedule's factor; returns the losses."""
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))  # section 5.3
    factor, losses = schedule("linear", n_steps, warmup_ratio), []
    model.train()
    for step in range(n_steps):
        optimizer.param_groups[0]["lr"] = learning_rate * factor(step)
        loss = loss_of(model, *draw())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    return losses


shape = {
    "architecture": "encoder-decoder",
    "hidden_size": 64,
    "num_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 128,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "pad_token_id": PAD,
    "bos_token_id": None,
    "eos_token_id": END,
}
torch.manual_seed(0)
model = EncoderDecoderForSeq2SeqLM(TransformerConfig(vocab_size=len(words), **shape))
generator = torch.Generator().manual_seed(0)


def some_pairs():
    chosen = [pairs[i] for i in torch.randint(len(pairs), (48,), generator=generator).tolist()]
    return encode([source for source, _ in chosen]), encode([target for _, target in chosen])


losses = train(model, some_pairs, 150)
print(f"{len(pairs)} pairs, loss from {losses[0]:.2f} to {losses[-1]:.3f}")

# %%
# What goes in
# ------------
# Two sources of different lengths, a mask for their padding; the target, and the target shifted by one place, which
# begins with the padding token: what the decoder reads when it is to write the target.

source = encode(["le chat noir dort", "un train part"])
target = encode(["the black cat sleeps", "a train leaves"])
mask = (source != PAD).long()
shifted = model.prepare_decoder_input_ids_from_labels(target)
print("source, (B, T):", tuple(source.shape), [[words[i] for i in row] for row in source.tolist()])
print("mask:", mask.tolist())
print("target, (B, U):", tuple(target.shape), [[words[i] for i in row] for row in target.tolist()])
print("shifted:", [[words[i] for i in row] for row in shifted.tolist()])

# %%
# The encoder runs once. The decoder sees its own words up to each place, and all of the source.

with torch.no_grad():
    made = model(source, mask, shifted, output_attentions=True, output_hidden_states=True)
print("encoder's states, (B, T, H):", tuple(made.encoder_last_hidden_state.shape))
print(
    "decoder's states, layer by layer, (B, U, H):",
    [tuple(states.shape) for states in made.decoder_hidden_states],
)
print("weights in the encoder, (B, heads, T, T):", tuple(made.encoder_attentions[0].shape))
print("weights in the decoder, (B, heads, U, U):", tuple(made.decoder_attentions[0].shape))
print("weights of cross-attention, (B, heads, U, T):", tuple(made.cross_attentions[0].shape))
print("logits, (B, U, V):", tuple(made.logits.shape))
causal = self_attention_mask(torch.ones(1, 5), 5, 5, causal=True)

# %%
# The loss is the mean over the target's words of minus the logarithm of the probability of the right one.

real = target != PAD
by_hand = -torch.log_softmax(made.logits, -1)[real].gather(1, target[real][:, None]).mean()
print(
    f"by hand {by_hand:.5f}, by torch {F.cross_entropy(made.logits[real], target[real]):.5f}, by the model",
    end=" ",
)
print(f"{loss_of(model, source, target).item():.5f}")

# %%
# Writing
# -------
# Nobody knows the target now. The decoder is given one word, the most probable next one is taken, and so on. Keys and
# values of earlier words are kept in the cache; those of the source are computed once.

encoded, cache, written = model.get_encoder()(source[:1], mask[:1]), None, [PAD]
with torch.no_grad():
    while written[-1] != END:
        made_next = model(
            encoder_outputs=encoded,
            attention_mask=mask[:1],
            decoder_input_ids=torch.tensor([written[-1:]]),
            cache=cache,
            use_cache=True,
        )
        cache = getattr(made_next, CACHE)
        written.append(int(made_next.logits[0, -1].argmax()))
        print(f"{words[written[-1]]:<8} keys in the cache: {cache.get_seq_length()}")


def exact(model, source, target, **options):
    """Share of sequences that `generate` writes without a fault."""
    longest = target.shape[1]
    made = model.generate(
        source, attention_mask=(source != PAD).long(), max_new_tokens=longest, do_sample=False, **options
    )[:, 1:]
    return (F.pad(made, (0, longest - made.shape[1])) == target).all(dim=1).float().mean().item()


unseen = encode([text for text, _ in held_out]), encode([text for _, text in held_out])
print(f"held-out sentences translated without a fault: {exact(model, *unseen):.0%}")

# %%
# Where the decoder looks while it writes each word. For the noun it is the noun, wherever that stands. For other words
# it need not be the word that is translated: the encoder has told each place of all others, so the weight for "black"
# can lie on the end. Weights show where a model looks, not why.

print("source, and the weights of both heads while each word of the target is written:")
print([words[i] for i in source[0].tolist()])
for place, word in enumerate(target[0].tolist()):
    print(f"{words[word]:<8}", *(row[place].numpy().round(2) for row in made.cross_attentions[0][0]))

figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
axes[0].imshow(causal[0, 0].numpy(), cmap="Greys_r")
axes[0].set_title("the decoder's mask")
for head, axis in enumerate(axes[1:]):
    axis.imshow(made.cross_attentions[0][0, head].numpy(), vmin=0, vmax=1)
    axis.set_xticks(range(5), [words[i] for i in source[0].tolist()], rotation=45)
    axis.set_yticks(range(5), [words[i] for i in target[0].tolist()])
    axis.set_title(f"cross-attention, head {head + 1}")
plt.show()

# %%
# What breaks
# -----------
# Two tasks that need all parts: to write a sequence of symbols backwards, and to sort one in which symbols occur more
# than once. Each model is trained for the same few steps, and asked for 200 sequences that it has not seen.

N_SYMBOLS, LONGEST = 12, 8


def sequences(n, generator):
    lengths = torch.randint(3, LONGEST + 1, (n, 1), generator=generator)
    places = torch.arange(LONGEST + 1)
    symbols = torch.randint(2, 2 + N_SYMBOLS, (n, LONGEST + 1), generator=generator)
    return symbols.masked_fill(places == lengths, END).masked_fill(places > lengths, PAD), lengths


def backwards(rows, lengths):
    places = torch.arange(rows.shape[1])
    return torch.where(places < lengths, rows.gather(1, (lengths - 1 - places).clamp(min=0)), rows)


def sorted_(rows, lengths):
    places = torch.arange(rows.shape[1])
    return torch.where(places < lengths, rows.masked_fill(rows <= END, 99).sort(dim=1).values, rows)


class Nothing(nn.Module):
    """In the place of an attention: nothing is added to the residual stream."""

    def forward(self, hidden, *args, **kwargs):
        return torch.zeros_like(hidden), None


def outcome(task, *, self_attention=True, learning_rate=3e-3, warmup_ratio=0.1, n_steps=300, **fields):
    torch.manual_seed(0)
    model = EncoderDecoderForSeq2SeqLM(TransformerConfig(vocab_size=2 + N_SYMBOLS, **{**shape, **fields}))
    if not self_attention:
        for layer in model.model.decoder.layers:
            layer.self_attention = Nothing()
    generator = torch.Generator().manual_seed(0)

    def draw():
        rows, lengths = sequences(64, generator)
        return rows, task(rows, lengths)

    losses = train(model, draw, n_steps, learning_rate, warmup_ratio)
    rows, lengths = sequences(200, torch.Generator().manual_seed(1))
    # a decoder without self-attention leaves no keys in a cache
    return losses, exact(model, rows, task(rows, lengths), use_cache=self_attention)


trials = {
    "backwards: whole": (backwards, {}),
    "without cross-attention": (backwards, {"cross_attention": False}),
    "without positions": (backwards, {"positions": "none"}),
    "without the root of d": (backwards, {"attention_scale": 1.0}),
    "sorted: whole": (sorted_, {}),
    "without the decoder's self-attention": (sorted_, {"self_attention": False}),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
for name, (task, changes) in trials.items():
    losses, share = outcome(task, **changes)
    print(f"{name:<40} last loss {losses[-1]:.3f}, without a fault {share:.0%}")
    (left if task is backwards else right).plot(losses, label=name)
left.set(xlabel="step", ylabel="loss", ylim=(0, 3), title="backwards")
right.set(xlabel="step", ylim=(0, 3), title="sorted")
left.legend(fontsize=8)
right.legend(fontsize=8)
plt.show()

# %%
# Without cross-attention the decoder knows nothing of the source: all that is left to learn is how long sequences are.
# Without positions the encoder sees a bag of symbols, and their order is lost. Without the root of d the softmax starts
# out nearly all or nothing, where its gradient is small, and learning is late. Without self-attention the decoder knows
# its last symbol and its place, but not how often it has written that symbol already.
#
# Warm-up
# -------
# With norms behind the sublayers, as in 2017, the gradients near the output are large in the first steps (Xiong et al.
# 2020, section 3.3). At a high learning rate a model that does not begin slowly may stay where these steps throw it.
# With norms before the sublayers the beginning matters less: with a warm-up or without, the model learns its task.

hasty = {"learning_rate": 1e-2, "n_steps": 250}
figure, axis = plt.subplots(figsize=(6, 3.4), layout="constrained")
for norm_position, warmup_ratio in (("post", 0.1), ("post", 0.0), ("pre", 0.1), ("pre", 0.0)):
    losses, share = outcome(backwards, norm_position=norm_position, warmup_ratio=warmup_ratio, **hasty)
    name = f"norms {norm_position}, {'with' if warmup_ratio else 'without'} warm-up"
    print(f"{name:<40} last loss {losses[-1]:.3f}, without a fault {share:.0%}")
    axis.plot(losses, label=name)
axis.set(xlabel="step", ylabel="loss", ylim=(0, 4))
axis.legend(fontsize=8)
plt.show()
