"""README.md shows what the files hold, judges by processor time, and leaves out what was not measured."""

import json

import pytest

from benchmarks import report


def record(results, **settings):
    return {
        "name": "x", "date": "2026-01-02", "commit": "0123456789abcdef", "changed_files": 0, "rounds": 5,
        "threads": 1, "machine": {"processor": "A chip", "cores": 2, "flags": ["avx2"], "load_average": 0.1},
        "versions": {"torch": "2.13.0", "setfit": None}, "settings": settings, "results": results,
    }  # fmt: skip


def summary(middle):
    return {"median": middle, "min": middle / 2, "max": middle * 2}


def topics(score):
    one = {"macro_f1": score, "accuracy": 0.8, "fit_cpu_seconds": 1.5, "milliseconds_per_document": 2.25}
    seeds = {"macro_f1_std": 0.0123, "macro_f1_by_seed": [0.8, 0.9, 0.85]}
    results = {
        "frozen multilingual-e5-small + logistic regression": one,
        "fine-tuned multilingual-e5-small": one | seeds,
    }
    return {"french_topics": record(results, train=701, dev=99)}


def test_scores_and_their_spread_are_shown():
    page = report.page(topics(0.834))
    assert "| fine-tuned multilingual-e5-small | 0.834 ± 0.012 (3 seeds) | 0.800 | 1.5 | 2.25 |" in page
    assert "SIB-200, French: 701 sentences to train on, 99 to judge by." in page
    assert "commit 0123456789, A chip (2 cores: avx2), 1 thread(s)" in page
    assert "setfit" not in page
    assert "## Training" not in page


def test_answers_of_a_rule_have_no_times():
    scores = {"f1_english": 0.4321, "exact_match_english": 0.25, "f1_french": 0.4}
    fitted = {**scores, "fit_cpu_seconds": 1234.5, "milliseconds_per_question": 45.6, "f1_std": 0.01}
    settings = {"train": 3000, "train_articles": 150, "test": 800, "test_articles": 40}
    results = {"a rule": scores, "a model": {**fitted, "f1_by_seed": [0.43, 0.44]}}
    page = report.page({"answering": record(results, **settings)})
    assert "PIAF: 3000 questions about 150 articles to train on, 800 about 40 others to judge by." in page
    assert "| a rule | 0.432 | 0.250 | 0.400 |  |  |" in page
    assert "| a model | 0.432 ± 0.010 | 0.250 | 0.400 | 1,234 | 45.6 |" in page


def test_aims_are_judged_honestly():
    assert "| French topics, frozen encoder, macro-F1 | >= 0.82 | 0.834 |  | yes |" in report.page(
        topics(0.834)
    )
    assert "| French topics, frozen encoder, macro-F1 | >= 0.82 | 0.81 |  | no |" in report.page(topics(0.81))


def test_processor_time_decides():
    name = "HF Trainer, dynamic padding"
    found = {"steps": {"times_faster": {name: {"wall": summary(4.0), "cpu": summary(4.6)}}}}
    lines = report.aims({"training": record(found)})
    assert f"| Training against {name} | >= 4.5 | 4.6 (2.3 to 9.2) | 4 (2 to 8) | yes |" in lines
    assert sum(line.startswith("| Training") for line in lines) == 1


def test_numbers():
    assert [report.number(x) for x in (0.0123456, 1.0, 45.678, 1234.5)] == ["0.0123", "1", "45.7", "1,234"]
    assert report.spread({"median": 2.0, "min": 2.0, "max": 2.0}, 10, " %") == "20 %"


def test_the_readme_holds_the_newest_table():
    """Every figure of the front page comes from a file that is committed."""
    records = {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in report.RESULTS.glob("*.json")
    }
    readme = (report.ROOT / "README.md").read_text(encoding="utf-8")
    assert readme == report.put_front(readme, records)
    assert (report.ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8") == report.page(records)


def test_a_readme_without_marks_is_refused():
    with pytest.raises(SystemExit, match="lacks the lines"):
        report.put_front("no table here", {})


def test_embeddings_are_shown():
    results = {
        "cache": {
            "documents": 1000, "folds": 5, "points": 20, "points_measured_without": 2,
            "cpu_seconds": {"on": 10.0, "off": 700.0}, "times_faster": {"cpu": summary(70.0), "wall": summary(60.0)},
        },
        "bytes": {"documents": 9, "queries": 3, "recall_at_10": {"m": {"float32": 1.0, "int8": 0.991}}},
    }  # fmt: skip
    page = report.page({"embedding": record(results)})
    assert "5 folds x 20 points, 1000 messages: 10 s of the processor with a cache, 700 s without" in page
    assert "| m | 1.000 | 0.991 |" in page
    assert "| Grid search over a frozen encoder, cache on against off | >= 50 | 70 (35 to 140) |" in page


def test_few_shots_are_shown():
    draws = zip("012", (0.5, 0.25, 1.0), (3.0, 1.5, 6.0), strict=True)
    one = {seed: {"accuracy": accuracy, "cpu_seconds": seconds} for seed, accuracy, seconds in draws}
    settings = {"test_documents": 4, "classes": 2, "peer": "setfit", "pairs": 1200, "precision": "bfloat16"}
    page = report.page({"few_shots": record({"shots": {"8": {"setfit": one}}}, **settings)})
    assert "| BANKING77, 2 classes, 4 test questions | accuracy | fit, processor s |" in page
    assert "| setfit, 8 a class, 3 draws | 0.5 (0.25 to 1) | 3 (1.5 to 6) |" in page
    assert "setfit: 1,200 pairs a fit. All train in bfloat16." in page


def test_a_fine_tuned_search_shows_both_corpora():
    found = {"recall_1": 0.5, "recall_10": 0.75, "recall_1_own": 0.6, "recall_10_own": 0.9}
    better = {**found, "recall_1": 0.625, "fit_cpu_seconds": 120.0}
    judged = {"pairs": 3000, "frozen": found, "fine_tuned": better, "questions": 300, "points_gained": 12.5}
    fifths = {"0": {**judged, "questions": 100, "points_gained": 2.5}, "4": judged}
    settings = {"paragraphs": 761, "judged": 4, "precision": "bfloat16"}
    page = report.page({"tuned_search": record({"fifths": fifths}, **settings)})
    assert "| fifth 4, 300 questions, tuned on 3,000 pairs | 0.625 | 0.750 | 0.600 | 0.900 | 120 |" in page
    assert "| fifth 0, 100 questions, frozen | 0.500 | 0.750 | 0.600 | 0.900 |  |" in page
    assert "no setting was chosen on fifth 4" in page
    assert "gained over all 400 questions: 10.0." in page
    assert "above the frozen one, articles that chose no setting | >= 5 | 12.5 |  | yes |" in page
