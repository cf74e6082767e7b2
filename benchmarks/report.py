"""Write README.md, and the table of the project's own README, from results/*.json; nothing in them is typed by hand.

python -m benchmarks.report [--results FOLDER] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from .common import RESULTS, ROOT, say
from .embedding_tables import embedding

Record = dict[str, Any]

Aim = tuple[str, tuple[str, ...], str, float, str]

# What the project promises: benchmark, path into its results, sense, target, and the promise in words.
_STEPS, _FREE = ("steps", "times_faster"), ("steps_without_attention_dropout", "times_faster")
_DYNAMIC, _GROUPED = "HF Trainer, dynamic padding", "HF Trainer, group by length"
_FEW = f"{_GROUPED}, of 256 documents"
_MINILM = ("saving", "bundled:all-MiniLM-L6-v2")
AIMS: tuple[Aim, ...] = (
    ("training", (*_STEPS, _DYNAMIC), ">=", 4.5, f"Training against {_DYNAMIC}"),
    ("training", (*_STEPS, _GROUPED), ">=", 4.5, f"Training against {_GROUPED}"),
    ("training", (*_STEPS, _FEW), ">=", 4.5, f"Training against {_FEW}"),
    ("training", (*_FREE, _DYNAMIC), ">=", 5, f"Attention dropout 0 on both, against {_DYNAMIC}"),
    ("training", (*_FREE, _GROUPED), ">=", 5, f"Attention dropout 0 on both, against {_GROUPED}"),
    ("training", (*_FREE, _FEW), ">=", 5, f"Attention dropout 0 on both, against {_FEW}"),
    ("training", (*_STEPS, "skorch, padded to max_length"), ">=", 5, "Training against skorch, padded to max_length"),
    ("training", ("steps", "share_of_ceiling", "sktransformer"), ">=", 0.4, "Training, share of the matrix ceiling"),
    ("training", ("memory_times_trainer",), "<=", 1, "Peak memory of a training process / HF Trainer's"),
    ("inference", ("classify", "times_faster", "HF pipeline, batch_size=32"), ">=", 3.5,
     "predict_proba against the HF pipeline, batch_size=32, unsorted"),
    ("inference", ("classify", "times_faster", "HF pipeline, one by one"), ">=", 1,
     "predict_proba against the HF pipeline, one by one"),
    ("inference", ("embed", "times_faster", "sentence-transformers, batch_size=32"), ">=", 1.5,
     "Embedding against sentence-transformers, its default batch size"),
    ("inference", ("embed", "times_faster_than_best"), ">=", 1, "Embedding against its best batch size"),
    ("inference", ("classify", "share_of_ceiling", "sktransformer predict_proba"), ">=", 0.6,
     "Inference, share of the matrix ceiling"),
    ("persistence", ("imports", "times_sklearn"), "<=", 1.1, "import sktransformer / import sklearn"),
    ("persistence", (*_MINILM, "file_over_weights"), "<=", 1.1, "joblib file / weights"),
    ("persistence", (*_MINILM, "dump_peak_above_over_weights"), "<=", 0.2,
     "Peak memory of joblib.dump above the model's own / weights"),
    ("persistence", (*_MINILM, "clone_seconds"), "<=", 0.001, "clone, seconds"),
    ("french_topics", ("frozen multilingual-e5-small + logistic regression", "macro_f1"), ">=", 0.82,
     "French topics, frozen encoder, macro-F1"),
    ("email_cleaning", ("short", "mails_per_second", "subjects and bodies, one call"), ">=", 3000,
     "EmailCleaner, short mails a second"),
    ("email_cleaning", ("worst_megabyte",), "<=", 1, "EmailCleaner, worst hostile megabyte, seconds"),
    ("cleaning_gain", ("models", "tfidf_svm", "share_won_back"), ">=", 0.9,
     "EmailCleaner, share won back of what wrapping costs TF-IDF"),
    ("cleaning_gain", ("models", "fine-tuned multilingual-e5-small", "share_won_back"), ">=", 0.9,
     "The same for a fine-tuned Transformer"),
    ("embedding", ("cache", "times_faster"), ">=", 50, "Grid search over a frozen encoder, cache on against off"),
    ("tuning", ("searches", "median", "share_of_epochs"), "<=", 0.6, "Search with median pruning, share of the epochs"),
    ("tuning", ("searches", "median", "score_gained"), ">=", 0, "Its best macro-F1 less that of the whole search"),
)  # fmt: skip


BEGIN, END = "<!-- results: python -m benchmarks.report -->", "<!-- end of results -->"


def number(value: float) -> str:
    """Three digits, no more."""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def spread(found: Record, scale: float = 1, unit: str = "") -> str:
    """``median (min to max)`` of a summary."""
    low, middle, high = (number(found[key] * scale) for key in ("min", "median", "max"))
    return f"{middle}{unit}" if low == high else f"{middle}{unit} ({low} to {high})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table; numbers to the right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return ["| " + " | ".join(row) + " |" for row in (head, rule, *rows)] + [""]


def judged(records: dict[str, Record]) -> list[tuple[str, str, str, str, bool]]:
    """Return (words, aim, measured, by wall time, met) of each promise that was measured."""
    rows = []
    for name, path, sense, target, words in AIMS:
        found: Any = records.get(name, {}).get("results", {})
        for key in path:
            found = found.get(key, {})
        if found == {}:
            continue
        wall = spread(found["wall"]) if "wall" in clocks(found) else ""
        value = found["cpu"] if "cpu" in clocks(found) else found
        middle, shown = (
            (value, number(value)) if isinstance(value, float) else (value["median"], spread(value))
        )
        met = middle >= target if sense == ">=" else middle <= target
        rows.append((words, f"{sense} {number(target)}", shown, wall, met))
    return rows


def aims(records: dict[str, Record]) -> list[str]:
    rows = [[*row, "yes" if met else "no"] for *row, met in judged(records)]
    lead = "Processor time decides, since neighbours on the machine disturb it least; wall time stands beside it."
    return ["## Aims", "", lead, "", *table(["", "aim", "measured", "by wall time", "met"], rows)]


def front(records: dict[str, Record]) -> str:
    """The table of the project's own README, between its marks."""
    rows = [[words, shown, aim, "yes" if met else "no"] for words, aim, shown, _, met in judged(records)]
    return "\n".join([BEGIN, "", *table(["times faster, or as said", "measured", "aim", "met"], rows), END])


def put_front(readme: str, records: dict[str, Record]) -> str:
    """Return the text of the project's README with its table made anew."""
    before, _, rest = readme.partition(BEGIN)
    if END not in rest:
        raise SystemExit(f"README.md lacks the lines {BEGIN!r} and {END!r} round its table")
    return before + front(records) + rest.partition(END)[2]


def clocks(found: Any) -> set[str]:
    """Return which of the two clocks a result was taken by; none for sizes and scores."""
    return {"wall", "cpu"} & set(found) if isinstance(found, dict) else set()


def compared(found: Record, unit: str, values: str, scale: float = 1) -> list[str]:
    """Rows of competitors: their times, how many times faster ours is, the share of the ceiling."""
    rows = []
    for name, took in found[values].items():
        faster = found["times_faster"].get(name)
        rows.append(
            [
                name,
                spread(took["wall"], scale),
                spread(took["cpu"], scale),
                "" if faster is None else spread(faster["cpu"]),
                spread(found["share_of_ceiling"][name]["cpu"], 100, " %"),
            ]
        )
    return table(
        ["", f"{unit}, wall", f"{unit}, processor", "ours is faster, times", "of the matrix ceiling"], rows
    )


def training(record: Record) -> list[str]:
    settings, results = record["settings"], record["results"]
    lines = [
        f"{settings['documents']} documents, {number(settings['mean_tokens'])} tokens on average and "
        f"{settings['longest_tokens']} at most, batches of {settings['batch_size']}, {settings['model']}, "
        f"{settings['precision']}, {settings['optimizer']} for all. Without dropout, weights that ours and Trainer "
        f"reached after three steps give logits equal within "
        f"{results['same_step']['largest_difference_of_logits']:.1g}.",
        "",
    ]
    for key, words in (("steps", "Dropout 0.1"), ("steps_without_attention_dropout", "Attention dropout 0")):
        if key in results:
            lines += [f"{words}:", "", *compared(results[key], "s a step", "seconds_per_step")]
    if "accuracy" in results:
        found = results["accuracy"]
        lines += [
            f"Accuracy after the same number of steps ({found['documents']} short documents, {found['epochs']} epochs, "
            f"one number a seed):", "",
        ]  # fmt: skip
        rows = [
            [name, ", ".join(f"{value:.3f}" for value in values), f"{sum(values) / len(values):.3f}",
             spread(found["times_faster"][name]["cpu"]) if name in found["times_faster"] else ""]
            for name, values in found["accuracy"].items()
        ]  # fmt: skip
        lines += table(["", "accuracy by seed", "mean", "ours is faster, times"], rows)
    if "memory" in results:
        lines += ["Peak memory of a training process:", ""]
        rows = [
            [name, number(found["above_bytes"] / 1e6), number(found["peak_bytes"] / 1e6)]
            for name, found in results["memory"].items()
        ]
        lines += table(["", "MB above the start of training", "MB in all"], rows)
    return lines


def inference(record: Record) -> list[str]:
    settings, results = record["settings"], record["results"]
    lines = [
        f"{settings['documents']} unsorted documents, {number(settings['mean_tokens'])} tokens on average and "
        f"{settings['longest_tokens']} at most, {settings['model']}, {settings['precision']}.",
        "",
    ]
    for key, words in (("classify", "Probabilities"), ("embed", "Vectors")):
        lines += [f"{words} (equal within {results[key]['largest_difference']:.1g}):", ""]
        lines += compared(results[key], "ms a document", "milliseconds_per_document")
    return lines


def persistence(record: Record) -> list[str]:
    results = record["results"]
    rows = [
        [f"`{name}`", spread(found["wall"]), spread(found["cpu"])]
        for name, found in results["imports"]["seconds"].items()
    ]
    lines = table(["the interpreter's own start taken off", "s, wall", "s, processor"], rows)
    wanted = (
        ("weights_bytes", "weights, MB", 1e-6),
        ("file_bytes", "joblib file, MB", 1e-6),
        ("file_over_weights", "file / weights", 1),
        ("dump_peak_above_over_weights", "peak of dump above the model's own / weights", 1),
        ("dump_seconds", "dump, s", 1),
        ("load_seconds", "load, s", 1),
        ("load_peak_above_bytes", "peak of load, MB", 1e-6),
        ("clone_seconds", "clone, ms", 1e3),
    )
    models = results["saving"]
    rows = [[words, *[spread(models[model][key], scale) for model in models]] for key, words, scale in wanted]
    return lines + table(["", *models], rows)


def budget(record: Record) -> list[str]:
    results = record["results"]
    lines: list[str] = []
    for what in ("training", "inference"):
        found = results["budgets"][what]
        sizes = sorted({int(key.split(", ")[1]) for key in found["seconds"]})
        rows = [
            [layout, *[spread(found["seconds"][f"{layout}, {size}"]["cpu"]) for size in sizes]]
            for layout in ("packed", "padded")
        ]
        lines += [
            f"Processor seconds of {what}, {found['documents']} documents; best: {found['best']} tokens.",
            "",
        ]
        lines += table(["tokens in a forward pass", *map(str, sizes)], rows)
    found = results["precision"]
    if found["has_bfloat16"]:
        speed = {what: spread(found["times_faster"][what]["cpu"]) for what in ("training", "inference")}
        lines += [
            f'bfloat16 (`precision="auto"` takes it on this processor) is {speed["training"]} times as fast as '
            f"float32 in training and {speed['inference']} in inference; probabilities move by "
            f"{found['largest_difference_of_probabilities']:.1g} at most.",
            "",
        ]
    rows = [
        [
            what,
            *[
                f"{results['growth'][what][key]:.2f}"
                for key in ("exponent_of_documents", "exponent_of_lengths")
            ],
        ]
        for what in ("training", "inference")
    ]
    return lines + table(["exponent of time", "documents x1 to x16", "lengths x1 to x4"], rows)


def french_topics(record: Record) -> list[str]:
    settings = record["settings"]
    rows = []
    for name, found in record["results"].items():
        score = f"{found['macro_f1']:.3f}"
        if "macro_f1_std" in found:
            seeds = len(found["macro_f1_by_seed"])
            score += f" ± {found['macro_f1_std']:.3f} ({seeds} seeds)"
        rest = (
            f"{found['accuracy']:.3f}",
            *map(number, (found["fit_cpu_seconds"], found["milliseconds_per_document"])),
        )
        rows.append([name, score, *rest])
    lead = f"SIB-200, French: {settings['train']} sentences to train on, {settings['dev']} to judge by."
    return [lead, "", *table(["", "macro-F1", "accuracy", "fit, processor s", "ms a document"], rows)]


def email_cleaning(record: Record) -> list[str]:
    short, hostile = record["results"]["short"], record["results"]["hostile"]
    rows = [
        [name, *[spread(found[clock]) for clock in ("wall", "cpu")]]
        for name, found in short["mails_per_second"].items()
    ]
    lines = [f"{short['mails']} mails, {number(short['mean_characters'])} characters on average.", ""]
    lines += table(["mails a second", "by wall time", "by processor time"], rows)
    rows = [
        [name, spread(list(found["seconds"].values())[-1]["cpu"]), f"{found['growth']:.2f}"]
        for name, found in hostile.items()
    ]
    return lines + table(["one hostile megabyte", "s, processor", "exponent of time, x1 to x16"], rows)


def cleaning_gain(record: Record) -> list[str]:
    mails, settings = record["results"]["mails"], record["settings"]
    counts = ", ".join(f"{count} {name}" for name, count in settings["classes"].items())
    lines = [
        f"{settings['messages']} distinct French customer messages ({counts}; invented by the look of them, many near "
        f"copies, which stay on one side of the split), {number(mails['mean_characters_of_body'])} characters on "
        f"average, and as mails {number(mails['mean_characters'])}: greeting, closing, signature, legal notice and a "
        f"quoted message of another class. Of the cleaned mails {mails['body_whole']:.1%} hold the whole message, and "
        f"{mails['nothing_but_greeting_and_body']:.1%} nothing but that and the greeting; cleaning takes "
        f"{number(mails['milliseconds_per_mail'])} ms a mail. Fine-tuning sees at most {settings['most_tuned']} of the "
        f"{settings['train']} training messages. Intervals (95 %) hold for other test messages, not for other seeds.",
        "",
    ]
    rows = []
    for name, found in record["results"]["models"].items():
        scores = [f"{found['macro_f1'][condition]:.3f}" for condition in ("plain", "raw", "cleaned")]
        low, high = found["share_interval"]
        won = f"{found['share_won_back']:.3f} ({low:.3f} to {high:.3f})"
        costs = [
            f"{number(found['cost']['raw'][key])} / {number(found['cost']['cleaned'][key])}"
            for key in ("fit_cpu_seconds", "milliseconds_per_document")
        ]
        rows.append([name, str(found["documents"]), *scores, won, *costs])
    head = [
        "macro-F1",
        "judged by",
        "plain",
        "raw mails",
        "cleaned",
        "share won back",
        "fit, s, raw / cleaned",
    ]
    return lines + table([*head, "ms a document, raw / cleaned"], rows)


def tuning(record: Record) -> list[str]:
    results, settings = record["results"], record["settings"]
    columns = {
        "epochs": "epochs",
        "share_of_epochs": "of those without",
        "pruned": "pruned trials",
        "best_score": "best macro-F1",
        "score_gained": "less that without",
    }
    searches = results["searches"].items()
    rows = [[name, *(spread(found[key]) for key in columns)] for name, found in searches]
    lead = (
        f"OptunaSearch, {settings['trials']} trials of three folds on {results['documents']} e-mails of the sample "
        f"inbox, its three largest classes; a round is a seed. TF-IDF and a linear SVM reach "
        f"{number(results['tfidf_svm_best_score'])}."
    )
    return [lead, "", *table(["", *columns.values()], rows)]


SECTIONS: dict[str, tuple[str, Callable[[Record], list[str]]]] = {
    "training": ("Training", training),
    "inference": ("Inference", inference),
    "persistence": ("Import, files, memory", persistence),
    "french_topics": ("French topics", french_topics),
    "email_cleaning": ("Cleaning e-mails", email_cleaning),
    "cleaning_gain": ("What cleaning wins back", cleaning_gain),
    "tuning": ("Tuning", tuning),
    "embedding": ("Embeddings", embedding),
    "budget": ("Token budgets, precision, growth", budget),
}


def provenance(record: Record) -> str:
    machine, versions = record["machine"], record["versions"]
    named = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    changed = f" with {record['changed_files']} changed file(s)" if record["changed_files"] else ""
    return (
        f"*{record['date']}, commit {(record['commit'] or 'unknown')[:10]}{changed}, {machine['processor']} "
        f"({machine['cores']} cores: {', '.join(machine['flags'])}), {record['threads']} thread(s), "
        f"{record['rounds']} round(s), load {number(machine['load_average'] or 0)} at the end; {named}.*"
    )


def page(records: dict[str, Record]) -> str:
    lines = [
        "# Benchmarks",
        "",
        "Made by `python -m benchmarks.report` from `results/*.json`; `python -m benchmarks` measures anew. Medians "
        "over interleaved rounds, smallest and largest value in brackets. Ratios are taken within a round.",
        "",
        *aims(records),
    ]
    for name, (title, section) in SECTIONS.items():
        if name in records:
            lines += [f"## {title}", "", *section(records[name]), provenance(records[name]), ""]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=RESULTS.parent / "README.md")
    options = parser.parse_args()
    records = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(options.results.glob("*.json"))
    }
    if not records:
        raise SystemExit(f"{options.results} holds no results; run: python -m benchmarks")
    options.out.write_text(page(records), encoding="utf-8")
    if options.results == RESULTS:
        readme = ROOT / "README.md"
        readme.write_text(put_front(readme.read_text(encoding="utf-8"), records), encoding="utf-8")
    say(f"{options.out}: {', '.join(records)}")


if __name__ == "__main__":
    main()
