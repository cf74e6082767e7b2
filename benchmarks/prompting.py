"""Sentiment of short English reviews by prompting SmolLM2-135M-Instruct, and what sharing the prompt's prefix saves.

``benchmarks/data/reviews.tsv`` holds 120 invented reviews, half of them positive. Nothing is trained. Every sixth
review was looked at when the defaults of `PromptClassifier` were chosen (with or without chat turns); accuracy is that
of the other 100, with the 95 % interval of a share (Wilson). Examples are drawn from the twenty, and accuracy with them
has a spread over draws.

    python -m benchmarks.prompting [--quick]
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import numpy as np

from .common import arguments, interleave, prepare, ratio, say, seconds, timed, write

REVIEWS = Path(__file__).parent / "data" / "reviews.tsv"
MODEL = "bundled:SmolLM2-135M-Instruct"
LABELS = ["negative", "positive"]
TOLERANCE = 1e-4  # between scores of the two ways, in nats a token


def reviews() -> tuple[list[str], np.ndarray]:
    """Return texts and labels."""
    rows = [line.split("\t") for line in REVIEWS.read_text(encoding="utf-8").splitlines()]
    return [text for _, text in rows], np.array([label for label, _ in rows])


def wilson(right: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """Return the 95 % interval of a share: Wilson 1927, "Probable Inference", JASA 22."""
    share = right / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return float(middle - half), float(middle + half)


def zero_shot(X: list[str], y: np.ndarray, **settings: Any) -> dict[str, Any]:
    """Accuracy without examples."""
    from sktransformer import PromptClassifier

    model = PromptClassifier(MODEL, labels=LABELS, precision="float32", **settings).fit(None)
    right = int((model.predict(X) == y).sum())
    low, high = wilson(right, len(y))
    return {"accuracy": right / len(y), "interval": [low, high], "n": len(y)}


def few_shot(
    pool: tuple[list[str], np.ndarray], X: list[str], y: np.ndarray, n_shots: int, draws: int
) -> dict[str, Any]:
    """Accuracy with examples, for several draws of them out of `pool`."""
    from sktransformer import PromptClassifier

    found = []
    for seed in range(draws):
        model = PromptClassifier(MODEL, n_shots=n_shots, precision="float32", random_state=seed).fit(*pool)
        found.append(float((model.predict(X) == y).mean()))
    return {
        "accuracy": statistics.mean(found),
        "standard_deviation": statistics.stdev(found) if len(found) > 1 else None,
        "lowest": min(found),
        "highest": max(found),
        "draws": draws,
    }


def sharing(X: list[str], y: np.ndarray, n: int, rounds: int) -> dict[str, Any]:
    """Time the likelihoods of both labels with the shared parts read once, and with each label read apart."""
    from sktransformer import PromptClassifier
    from sktransformer._engine.inference.continuations import continuation_scores
    from sktransformer._engine.text.documents import Documents

    half = len(X) // 2
    model = PromptClassifier(MODEL, n_shots=4, precision="float32", random_state=0)
    model.fit([X[0], X[1], X[half], X[half + 1]], y[[0, 1, half, half + 1]])
    chosen = [*X[2 : 2 + n // 2], *X[half + 2 : half + 2 + n // 2]]
    prompts = model._prompter().prompts(Documents(chosen), model._cut(), warn=False)
    labels, passes = model._continuations(), model._passes()
    scores = {share: continuation_scores(passes, prompts, labels, share=share) for share in (True, False)}
    difference = float(np.abs(scores[True] - scores[False]).max())
    if difference > TOLERANCE:
        raise SystemExit(f"the two ways differ by {difference}")
    samples = interleave(
        {
            "each label apart": timed(lambda: continuation_scores(passes, prompts, labels, share=False)),
            "shared": timed(lambda: continuation_scores(passes, prompts, labels)),
        },
        rounds,
        warm_up=False,
    )
    return {
        "documents": len(prompts),
        "tokens_of_a_prompt": summary_of([len(prompt) for prompt in prompts]),
        "tokens_of_a_label": [len(one) for one in labels.ids],
        "largest_difference": difference,
        "seconds": {name: seconds(found) for name, found in samples.items()},
        "speed_up": ratio(samples["each label apart"], samples["shared"]),
    }


def summary_of(lengths: list[int]) -> dict[str, float]:
    """Mean, smallest and largest."""
    return {"mean": statistics.mean(lengths), "min": min(lengths), "max": max(lengths)}


def main() -> None:
    options = arguments(__doc__ or "", rounds=5, threads=1).parse_args()
    prepare(options)
    texts, labels = reviews()
    seen = np.arange(len(texts)) % 6 == 0
    pool = [text for text, used in zip(texts, seen, strict=True) if used], labels[seen]
    X, y = [text for text, used in zip(texts, seen, strict=True) if not used], labels[~seen]
    if options.quick:
        X, y = X[::5], y[::5]
    settings = {"model": MODEL, "labels": LABELS, "reviews": len(X), "chance": 0.5}
    results: dict[str, Any] = {}
    cases = {
        "zero-shot": lambda: zero_shot(X, y),
        "zero-shot, not calibrated": lambda: zero_shot(X, y, calibration="none"),
        "zero-shot, chat": lambda: zero_shot(X, y, chat="always"),
        "4 examples": lambda: few_shot(pool, X, y, 4, 2 if options.quick else 5),
    }
    for name, run in cases.items():
        results[name] = run()
        say(f"  {name:<44} accuracy {results[name]['accuracy']:.3f}")
        write("prompting", options, results, settings)
    results["sharing"] = sharing(X, y, 4 if options.quick else 24, options.rounds)
    say(f"  sharing: {results['sharing']['speed_up']['wall']['median']:.1f} x")
    write("prompting", options, results, settings)


if __name__ == "__main__":
    main()
