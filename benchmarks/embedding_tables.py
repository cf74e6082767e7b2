"""The tables of `embedding`, `few_shots` and `tuned_search`, for `benchmarks.report_sections`."""

from __future__ import annotations

from .common import summary
from .tables import Record, number, spread, table


def embedding(record: Record) -> list[str]:
    results, lines = record["results"], []
    if "cache" in results:
        found = results["cache"]
        faster = found["times_faster"]
        lines += [
            f"Grid search over a frozen encoder, {found['folds']} folds x {found['points']} points, "
            f"{found['documents']} messages: {number(found['cpu_seconds']['on'])} s of the processor with a cache, "
            f"{number(found['cpu_seconds']['off'])} s without (from {found['points_measured_without']} point(s), "
            f"multiplied), {spread(faster['cpu'])} times by processor time, {spread(faster['wall'])} by wall time.",
            "",
        ]
    if "bytes" in results:
        found = results["bytes"]
        kinds = list(next(iter(found["recall_at_10"].values())))
        rows = [
            [model, *[f"{recall[kind]:.3f}" for kind in kinds]]
            for model, recall in found["recall_at_10"].items()
        ]
        lead = f"of the ten nearest of {found['documents']} questions to {found['queries']} others"
        lines += table([lead, *kinds], rows)
    return lines


def few_shots(record: Record) -> list[str]:
    settings, rows = record["settings"], []
    for shots, by_name in record["results"]["shots"].items():
        for name, by_seed in by_name.items():
            figures = ([one[key] for one in by_seed.values()] for key in ("accuracy", "cpu_seconds"))
            rows.append(
                [f"{name}, {shots} a class, {len(by_seed)} draws", *(spread(summary(x)) for x in figures)]
            )
    lead = f"BANKING77, {settings['classes']} classes, {settings['test_documents']} test questions"
    made = (
        f"{settings['peer']}: {number(settings['pairs'])} pairs a fit. All train in {settings['precision']}."
    )
    return [*table([lead, "accuracy", "fit, processor s"], rows), "", made]


def tuned_search(record: Record) -> list[str]:
    settings, fifths = record["settings"], record["results"]["fifths"]
    keys = {
        "recall_1": f"recall at 1 of {settings['paragraphs']}",
        "recall_10": "at 10",
        "recall_1_own": "at 1 of those of their articles",
        "recall_10_own": "at 10",
    }
    rows = []
    for fifth, found in fifths.items():
        asked = f"fifth {fifth}, {found['questions']} questions"
        names = {"frozen": "frozen", "fine_tuned": f"tuned on {number(found['pairs'])} pairs"}
        for key, name in names.items():
            took = number(found[key]["fit_cpu_seconds"]) if key == "fine_tuned" else ""
            rows.append([f"{asked}, {name}", *(f"{found[key][column]:.3f}" for column in keys), took])
    lines = table(["PIAF, questions about articles held out", *keys.values(), "fit, processor s"], rows)
    weights = [found["questions"] for found in fifths.values()]
    gains = [found["points_gained"] for found in fifths.values()]
    mean = sum(w * gain for w, gain in zip(weights, gains, strict=True)) / sum(weights)
    made = f"Fitted in {settings['precision']}, judged in float32; no setting was chosen on fifth {settings['judged']}."
    if len(fifths) > 1:
        made += f" Points of recall at 1 gained over all {number(sum(weights))} questions: {mean:.1f}."
    return [*lines, "", made]
