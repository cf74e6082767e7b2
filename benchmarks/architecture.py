"""The encoder of `sktransformer.nn` against Transformers' BERT of the same shape, with the same weights.

One forward pass without gradients and one training step (forward, backward, fused AdamW) of each, on padded batches
as any loop makes them and on packed rows as the estimators make them; both take the same tensors, the same attention
kernels and, in training, dropout of the same probability, which ours draws in its own way (`nn.dropout`). Logits
and gradients are compared before anything is timed.

    python -m benchmarks.architecture [--rounds N] [--quick]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, PreTrainedModel

from sktransformer._engine.checkpoints.loading import prepare as enable_packing
from sktransformer._engine.text.batches import PackedLayout
from sktransformer.nn import from_transformers

from .common import Sample, arguments, interleave, prepare, ratio, say, seconds, timed, write

TOLERANCE = 1e-5
OURS, THEIRS = "sktransformer.nn", "Transformers' BERT"
SHAPE = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
CLASSES = 4

Inputs = dict[str, Any]


def pair(shape: dict[str, int], *, packed: bool) -> dict[str, PreTrainedModel]:
    """Return both models, with the same weights."""
    torch.manual_seed(0)
    options: dict[str, Any] = {**shape, "num_labels": CLASSES, "attn_implementation": "sdpa"}
    theirs = BertForSequenceClassification(BertConfig(**options))
    models = {OURS: from_transformers(theirs), THEIRS: theirs}
    for model in models.values():
        model.eval()
        if packed and not enable_packing(model, "classification"):
            raise SystemExit(f"{type(model).__name__} takes no packed rows")
    return models


def batches(n_batches: int, n_texts: int, *, packed: bool) -> list[Inputs]:
    """Draw batches of texts, log-normal lengths of median 60 tokens and at most 128."""
    random = np.random.default_rng(0)
    made = []
    for _ in range(n_batches):
        lengths = np.clip(random.lognormal(np.log(60), 0.6, n_texts).astype(int), 8, 128)
        texts = [random.integers(5, 30_000, length) for length in lengths]
        made.append(packed_row(texts) if packed else rectangle(texts))
    return made


def rectangle(texts: list[np.ndarray]) -> Inputs:
    longest = max(map(len, texts))
    ids = torch.tensor([[*text, *[0] * (longest - len(text))] for text in texts])
    return {"input_ids": ids, "attention_mask": (ids != 0).long()}


def packed_row(texts: list[np.ndarray]) -> Inputs:
    lengths = [len(text) for text in texts]
    bounds = torch.tensor([0, *np.cumsum(lengths)])
    return {
        "input_ids": torch.from_numpy(np.concatenate(texts))[None],
        "position_ids": torch.cat([torch.arange(length) for length in lengths])[None],
        "packed_layout": PackedLayout(bounds[:-1], bounds.int(), tuple(lengths)),
    }


def compare(models: dict[str, PreTrainedModel], inputs: Inputs) -> float:
    """Largest difference of the logits, and of the gradients of the word embeddings, over the largest value of each."""
    found = []
    for model in models.values():
        model.zero_grad()
        logits = model(**inputs).logits
        logits.square().sum().backward()
        found.append((logits.detach(), model.get_input_embeddings().weight.grad.clone()))
        model.zero_grad()
    ours, theirs = found
    difference = max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(ours, theirs, strict=True))
    say(f"logits and gradients: equal within {difference:.1e}")
    if difference > TOLERANCE:
        raise SystemExit(f"the models differ by {difference:.2g}, more than {TOLERANCE:g}")
    return difference


def reader(model: PreTrainedModel, data: list[Inputs]) -> Callable[[], None]:
    @torch.inference_mode()
    def read() -> None:
        model.eval()
        for inputs in data:
            model(**inputs)

    return read


def trainer(model: PreTrainedModel, data: list[Inputs], n_texts: int) -> Callable[[], None]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    labels = torch.arange(n_texts) % CLASSES

    def train() -> None:
        model.train()
        torch.manual_seed(0)
        for inputs in data:
            torch.nn.functional.cross_entropy(model(**inputs).logits, labels).backward()
            optimizer.step()
            optimizer.zero_grad()

    return train


def measure(
    shape: dict[str, int], rounds: int, n_batches: int, n_texts: int, *, packed: bool
) -> dict[str, Any]:
    """Time both models, reading and training, in turns."""
    models, data = pair(shape, packed=packed), batches(n_batches, n_texts, packed=packed)
    tokens = sum(int(inputs.get("attention_mask", inputs["input_ids"] > 0).sum()) for inputs in data)
    found: dict[str, Any] = {"largest_difference": compare(models, data[0]), "tokens": tokens}
    for name, make in (("reading", reader), ("training", lambda m, d: trainer(m, d, n_texts))):
        runs: dict[str, Callable[[], Sample]] = {key: timed(make(m, data)) for key, m in models.items()}
        samples = interleave(runs, rounds)
        found[name] = {
            "milliseconds_per_thousand_tokens": {key: seconds(samples[key], tokens / 1e6) for key in runs},
            "times_faster": ratio(samples[THEIRS], samples[OURS]),
        }
        say(f"  {name}: {found[name]['times_faster']['cpu']['median']:.3f} times as fast")
    return found


def main() -> None:
    options = arguments(__doc__ or "", rounds=7).parse_args()
    prepare(options)
    shape = {"vocab_size": 30_000, **SHAPE}
    if options.quick:
        shape |= {"hidden_size": 96, "intermediate_size": 384, "num_hidden_layers": 2}
    n_batches, n_texts = (2, 8) if options.quick else (2, 16)
    results = {}
    for layout in ("padded", "packed"):
        say(layout)
        results[layout] = measure(shape, options.rounds, n_batches, n_texts, packed=layout == "packed")
    settings = {**shape, "batches": n_batches, "texts_of_a_batch": n_texts, "precision": "float32"}
    write("architecture", options, results, settings)


if __name__ == "__main__":
    main()
