"""The sections on generated texts of benchmarks/README.md."""

from __future__ import annotations

from .tables import Record, number, spread, table


def generation(record: Record) -> list[str]:
    settings = record["settings"]
    rows = [
        [
            name,
            spread(found["cpu"]),
            spread(found["times_ours"]["cpu"]) if "times_ours" in found else "",
            f"{found['same_texts']} of {settings['prompts']}" if "same_texts" in found else "",
        ]
        for name, found in record["results"].items()
    ]
    lead = (
        f"{settings['prompts']} instructions to {settings['model']}, greedy, {settings['tokens']} tokens "
        f"together, at most {settings['longest']} a text."
    )
    return [lead, "", *table(["", "s, processor", "times ours", "same tokens"], rows)]


def toy_sequences(record: Record) -> list[str]:
    settings = record["settings"]
    rows = [
        [name, f"{found['exact_match']:.3f}", number(found["fit_cpu_seconds"]), number(found["fit_seconds"])]
        for name, found in record["results"].items()
    ]
    lead = (
        f"{settings['sequences']} sequences of {settings['lengths'][0]} to {settings['lengths'][1]} letters to train "
        f"on, {settings['epochs']} epochs; others of those lengths to judge by."
    )
    return [lead, "", *table(["", "exact match", "fit, processor s", "fit, wall s"], rows)]


def translation(record: Record) -> list[str]:
    settings, results = record["settings"], record["results"]
    rows = [
        [name, *(f"{found[key]:.3f}" if key in found else "" for key in ("exact_match", "chrf", "bleu"))]
        for name, found in results.items()
        if isinstance(found, dict)
    ]
    lead = (
        f"Tatoeba, French to English, from scratch: {settings['pairs']} pairs, {settings['epochs']} epochs, "
        f"{number(results['parameters'] / 1e6)} M parameters, {number(results['fit_cpu_seconds'])} s of processor time."
    )
    return [lead, "", *table(["", "exact match", "chrF", "BLEU"], rows)]
