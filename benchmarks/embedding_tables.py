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
    results, settings = record["results"], record["settings"]
    keys = {
        "recall_1": f"recall at 1 of {settings['paragraphs']}",
        "recall_10": "at 10",
        "recall_1_own": f"at 1 of the {settings['own_paragraphs']} of their articles",
        "recall_10_own": "at 10",
    }
    rows = [
        [name, *(f"{results[key][column]:.3f}" for column in keys)]
        for key, name in (("frozen", "frozen"), ("fine_tuned", f"fine-tuned on {settings['pairs']} pairs"))
    ]
    took = f"The fit took {number(results['fine_tuned']['fit_cpu_seconds'])} s of the processor."
    lead = f"PIAF, {settings['questions']} questions about other articles"
    return [*table([lead, *keys.values()], rows), "", took]
