"""Write README.md, and the table of the project's own README, from results/*.json; nothing in them is typed by hand.

python -m benchmarks.report [--results FOLDER] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from .common import RESULTS, ROOT, say
from .report_sections import SECTIONS
from .tables import Record, clocks, number, spread, table

Aim = tuple[str, tuple[str, ...], str, float, str]

# What the project promises: benchmark, path into its results, sense, target, and the promise in words.
_STEPS, _WIDE = ("steps", "times_faster"), ("steps_float32", "times_faster")
_FREE = ("steps_without_attention_dropout", "times_faster")
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
    ("training", (*_WIDE, _DYNAMIC), ">=", 4.5, f"All in float32, against {_DYNAMIC}"),
    ("training", (*_WIDE, _GROUPED), ">=", 4.5, f"All in float32, against {_GROUPED}"),
    ("training", (*_WIDE, _FEW), ">=", 4.5, f"All in float32, against {_FEW}"),
    ("training", ("steps_float32", "share_of_ceiling", "sktransformer"), ">=", 0.4,
     "Training in float32, share of the matrix ceiling"),
    ("training_outcome", ("memory_times_trainer",), "<=", 1, "Peak memory of a training process / HF Trainer's"),
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
    ("retrieval", ("piaf", "points_gained"), ">=", 5, "Hybrid search, points of recall at 1 above its best part"),
    ("retrieval", ("approximate", "recall_10", "expansion 64"), ">=", 0.98, "Approximate search, recall at 10"),
    ("retrieval", ("approximate", "one_by_one", "times_faster", "expansion 64"), ">=", 1,
     "Approximate search against the exact one, a query a call"),
    ("tuned_search", ("fifths", "4", "points_gained"), ">=", 5,
     "Fine-tuned embedder, points of recall at 1 above the frozen one, articles that chose no setting"),
    ("prompting", ("zero-shot", "accuracy"), ">=", 0.6, "Sentiment by prompting, zero-shot (chance: 0.4 to 0.6)"),
    ("prompting", ("sharing", "speed_up"), ">=", 3, "Sharing a prompt's prefix against reading each label apart"),
    ("constrained", ("lowest_share_valid",), ">=", 1, "Constrained JSON, share of valid texts"),
    ("tagging_words", ("accuracy",), ">=", 0.95, "Parts of speech, French, accuracy of words"),
    ("architecture", ("padded", "reading", "times_faster"), ">=", 1, "Our encoder against BERT of its shape, reading"),
    ("architecture", ("padded", "training", "times_faster"), ">=", 1, "The same, a training step"),
    ("architecture", ("packed", "reading", "times_faster"), ">=", 1, "The same on packed rows, reading"),
    ("architecture", ("packed", "training", "times_faster"), ">=", 1, "The same on packed rows, a training step"),
    ("generation", ("Transformers, batches of 8", "times_ours"), ">=", 1.5, "Generation against batches of 8"),
    ("toy_sequences", ("copy", "exact_match"), ">=", 1, "Copies of held-out sequences, exact match"),
    ("toy_sequences", ("reversal", "exact_match"), ">=", 1, "Reversals of held-out sequences, exact match"),
    ("translation", ("train", "exact_match"), ">=", 0.95, "Translation from scratch, training pairs exact"),
    ("tagging_cost", ("times_longer", "cpu"), "<=", 1.15, "A training step with a CRF / one without"),
)  # fmt: skip


BEGIN, END = "<!-- results: python -m benchmarks.report -->", "<!-- end of results -->"


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
