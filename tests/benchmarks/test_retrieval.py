"""The benchmark of the search: questions are judged on their own part, and its section shows what was measured."""

import json

import numpy as np
import pytest

from benchmarks import report
from benchmarks.retrieval import Questions, clusters, preferred
from sktransformer import SemanticSearch


@pytest.fixture
def asked(tmp_path):
    articles = [
        {"paragraphs": [{"context": f"sujet{i} premier", "qas": [{"question": f"sujet{i} ?"}, {"question": "quoi ?"}]}]}
        for i in range(6)
    ]  # fmt: skip
    (tmp_path / "piaf-v1.0.json").write_text(json.dumps({"data": articles}), encoding="utf-8")
    return Questions(tmp_path, quick=False)


def test_recall_is_counted_on_the_part_that_chose_nothing(asked):
    assert asked.gold.tolist() == [i for i in range(6) for _ in range(2)]
    assert asked.choosing.sum() == 4  # both questions of two articles of six
    asked.paragraphs += ["autre"] * 10
    found = asked.judge(SemanticSearch(mode="sparse").fit(asked.paragraphs))
    first = np.tile([True, False], 6)
    first[1] = True  # "quoi ?" finds nothing, and the first document comes first
    assert found["recall_1"] == pytest.approx(first[~asked.choosing].mean())
    assert found["recall_1_choosing"] == pytest.approx(first[asked.choosing].mean())
    assert found["recall_10_all"] == 1.0


def test_without_the_data_it_says_what_is_missing(tmp_path):
    with pytest.raises(SystemExit, match=r"piaf-v1.0.json is missing: put PIAF 1.0 .* there"):
        Questions(tmp_path, quick=True)


def test_the_choosing_part_decides():
    found = {
        "a 1": {"recall_1_choosing": 0.5},
        "a 2": {"recall_1_choosing": 0.6},
        "b": {"recall_1_choosing": 0.9},
    }
    assert preferred(found, "a") == "a 2"


def test_vectors_are_drawn_alike_each_time():
    vectors = clusters(50, 8, 5, 1.0)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(clusters(50, 8, 5, 1.0), vectors)


def test_the_section_shows_both_parts():
    one = {"recall_1": 0.7, "recall_1_all": 0.71, "recall_10": 0.9, "recall_10_all": 0.91}
    cpu = {"cpu": {"median": 0.002, "min": 0.001, "max": 0.003}}
    way = {"seconds_per_query": {"exact": cpu, "expansion 64": cpu}, "times_faster": {"expansion 64": cpu}}
    near = {
        "documents": 5000, "width": 64, "clusters": 50, "queries": 20, "build_cpu_seconds": 2.0, "graph_bytes": 1e6,
        "vectors_bytes": 2e6, "recall_10": {"expansion 64": 0.99}, "together": way, "one_by_one": way,
    }  # fmt: skip
    record = {
        "settings": {"questions": 12, "paragraphs": 6, "questions_to_choose_by": 4},
        "results": {"piaf": {"chosen": {"hybrid": one}, "points_gained": 7.43}, "approximate": near},
    }
    text = "\n".join(report.SECTIONS["retrieval"][1](record))
    assert "| hybrid | 0.700 (0.710) | 0.900 (0.910) |" in text
    assert "has +7.4 points" in text
    assert "| exact | 1 | 2 (1 to 3) | 2 (1 to 3) |  |  |" in text
    assert "| expansion 64 | 0.9900 |" in text
