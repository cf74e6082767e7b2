"""Texts a second: waiting prompts take the places of texts that ended, against Transformers' `generate` in batches.

    python -m benchmarks.generation [--quick]

Answers of ``bundled:SmolLM2-135M-Instruct`` to instructions that call for few or many words, greedy, up to a limit. The
peer runs fixed batches, padded on the left. Both have to write the same tokens.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from .common import arguments, bundled, interleave, prepare, ratio, say, seconds, timed, write

MODEL = "bundled:SmolLM2-135M-Instruct"
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

    def __init__(self, work: Work, rows: int) -> None:
        self.work, self.rows = work, rows

    def __call__(self) -> list[list[int]]:
        work, found = self.work, []
        for start in range(0, len(work.prompts), self.rows):
            prompts = [ids.tolist() for ids in work.prompts[start : start + self.rows]]
            batch = work.tokenizer.pad({"input_ids": prompts}, return_tensors="pt")
            output = work.model.generate(
                **batch, max_new_tokens=work.longest, do_sample=False, eos_token_id=work.stop,
                pad_token_id=work.tokenizer.pad_token_id,
            )  # fmt: skip
            for ids in output[:, batch["input_ids"].shape[1] :].tolist():
                found.append(ids[: ids.index(work.stop)] if work.stop in ids else ids)
        return found


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
    peers: dict[str, Callable[[], list[list[int]]]] = {
        "Transformers, batches of 8": Peer(work, 8),
        "Transformers, batches of 16": Peer(work, 16),
    }
    written: dict[str, list[list[int]]] = {}

    def kept(name: str, write_texts: Callable[[], list[list[int]]]) -> Callable[[], None]:
        return lambda: written.update({name: write_texts()})

    runs = {name: timed(kept(name, way)) for name, way in {"ours": work.ours, **peers}.items()}
    samples = interleave(runs, options.rounds, warm_up=False)
    texts = written["ours"]
    same = {name: sum(a == b for a, b in zip(texts, written[name], strict=True)) for name in peers}
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
