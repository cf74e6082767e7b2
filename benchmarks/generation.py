"""Texts a second: waiting prompts take the places of texts that ended, against Transformers' `generate` in batches.

    python -m benchmarks.generation [--quick]

Answers of ``bundled:SmolLM2-135M-Instruct`` to instructions that call for few or many words, greedy, up to a limit. The
peer runs fixed batches, padded on the left, in the order given and sorted by length. All have to write the same tokens.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import torch

from .common import arguments, bundled, interleave, prepare, ratio, say, seconds, timed, write

MODEL = "SmolLM2-135M-Instruct"
INSTRUCTIONS = (
    "Name a colour.",
    "List five animals, with a sentence on each.",
    "Write a short poem about rain.",
    "What is 2 + 2? Answer with a number.",
    "Explain gravity in two sentences.",
    "Say hello.",
    "Give three tips for sleeping well.",
    "Who wrote Hamlet?",
    "Translate 'good morning' to French.",
    "Describe a house by the sea in one paragraph.",
    "What is the capital of France?",
    "Write an e-mail that asks for a refund of a broken lamp.",
    "Is ice cold? Answer yes or no.",
    "Name three fruits.",
    "Tell a story about a fox and a crow.",
    "Which day comes after Monday?",
    "Summarise in one sentence: the train was late because of snow on the tracks near the station.",
    "What is the opposite of hot?",
    "How does a bicycle work?",
    "Complete: roses are red, violets are",
    "Write the numbers from one to ten.",
    "Give a synonym of big.",
    "Why is the sky blue?",
    "Name the largest ocean.",
)


class Peer:
    """Transformers' `generate` in fixed batches of `rows`."""

    def __init__(self, work: Work, rows: int, *, in_order: bool) -> None:
        self.work, self.rows, self.in_order = work, rows, in_order

    def __call__(self) -> list[list[int]]:
        work, found = self.work, {}
        order = list(range(len(work.prompts)))
        if not self.in_order:
            order.sort(key=lambda i: -len(work.prompts[i]))
        for start in range(0, len(order), self.rows):
            numbers = order[start : start + self.rows]
            batch = work.tokenizer.pad(
                {"input_ids": [work.prompts[i].tolist() for i in numbers]}, return_tensors="pt"
            )
            output = work.model.generate(
                **batch, max_new_tokens=work.longest, do_sample=False, eos_token_id=work.stop,
                pad_token_id=work.tokenizer.pad_token_id,
            )  # fmt: skip
            for i, ids in zip(numbers, output[:, batch["input_ids"].shape[1] :].tolist(), strict=True):
                found[i] = ids[: ids.index(work.stop)] if work.stop in ids else ids
        return [found[i] for i in range(len(order))]


class Work:
    """The model, the prompts, and our way."""

    def __init__(self, options: argparse.Namespace) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        folder = bundled(MODEL)
        self.tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
        self.model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.stop = int(self.tokenizer.eos_token_id)
        self.longest = options.longest
        chats = [[{"role": "user", "content": text}] for text in INSTRUCTIONS[: options.prompts]]
        self.prompts = [
            np.asarray(
                self.tokenizer.apply_chat_template(chat, add_generation_prompt=True)["input_ids"],
                dtype=np.int32,
            )
            for chat in chats
        ]

    def ours(self) -> list[list[int]]:
        from sktransformer._engine.inference.generation.generate import generate
        from sktransformer._engine.inference.generation.options import Decoding
        from sktransformer._engine.inference.generation.rows import Prompt
        from sktransformer._engine.inference.generation.schedule import Run

        run = Run(self.model, torch.device("cpu"), torch.float32, token_budget=16_384)
        options = Decoding(max_new_tokens=self.longest, stop_ids=(self.stop,))
        return [texts[0].ids for texts in generate(run, [Prompt(ids) for ids in self.prompts], options)]


def main() -> None:
    parser = arguments(__doc__ or "", rounds=2, threads=1)
    parser.add_argument("--prompts", type=int, default=len(INSTRUCTIONS))
    parser.add_argument("--longest", type=int, default=128, help="tokens of an answer (%(default)s)")
    options = parser.parse_args()
    if options.quick:
        options.prompts, options.longest = 4, 8
    prepare(options)
    work = Work(options)
    peers = {
        "Transformers, batches of 8": Peer(work, 8, in_order=True),
        "Transformers, batches of 8, sorted": Peer(work, 8, in_order=False),
        "Transformers, one batch": Peer(work, len(work.prompts), in_order=True),
    }
    texts = work.ours()
    same = {
        name: sum(one == other for one, other in zip(texts, peer(), strict=True))
        for name, peer in peers.items()
    }
    samples = interleave(
        {"ours": timed(work.ours), **{name: timed(peer) for name, peer in peers.items()}}, options.rounds
    )
    n_tokens = sum(len(text) + 1 for text in texts)
    results: dict[str, Any] = {"ours": {**seconds(samples["ours"]), "lengths": sorted(map(len, texts))}}
    for name in peers:
        found = ratio(samples[name], samples["ours"])
        results[name] = {**seconds(samples[name]), "times_ours": found, "same_texts": same[name]}
        say(f"  {name:<36} {same[name]} of {len(texts)} texts the same; times ours: {found}")
    settings = {"model": MODEL, "prompts": len(texts), "longest": options.longest, "tokens": n_tokens}
    write("generation", options, results, settings)


if __name__ == "__main__":
    main()
