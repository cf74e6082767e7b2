"""Files of questions in SQuAD's format: what is read, what is mended, and what is said about the rest."""

import json
from pathlib import Path
from typing import Any

import pytest

from sktransformer.datasets import load_squad
from sktransformer.datasets.squad import nearest_occurrence

CONTEXT = "Paris est grande. Lyon est plus petite que Paris."


def question(identity: str, *answers: tuple[str, int], **fields: Any) -> dict[str, Any]:
    given = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": identity, "question": f"Question {identity} ?", "answers": given, **fields}


@pytest.fixture
def write(tmp_path: Path):
    def make(*questions: dict[str, Any], **fields: Any) -> Path:
        paragraphs = [{"context": CONTEXT, "qas": list(questions)}]
        content = {"version": "v2.0", "data": [{"title": "Villes", "paragraphs": paragraphs}], **fields}
        path = tmp_path / "squad.json"
        path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
        return path

    return make


def test_rows_in_order(write):
    impossible = question("c", is_impossible=True, plausible_answers=[{"text": "Lyon", "answer_start": 18}])
    squad = load_squad(
        write(question("a", ("Paris", 0), ("Paris", 43)), question("b", ("Lyon", 18)), impossible)
    )
    assert squad.frame.columns.tolist() == ["question", "context", "id", "title", "answers"]
    assert squad.frame["id"].tolist() == ["a", "b", "c"]
    assert squad.frame["title"].tolist() == ["Villes"] * 3
    assert squad.target.tolist() == [
        {"text": ["Paris", "Paris"], "answer_start": [0, 43]},
        {"text": ["Lyon"], "answer_start": [18]},
        {"text": [], "answer_start": []},
    ]
    assert squad.data.to_numpy().tolist()[1] == ["Question b ?", CONTEXT]
    assert squad.version == "v2.0"
    assert squad.report.empty


def test_both_ways_to_return(write):
    path = write(question("a", ("Paris", 0)))
    X, y = load_squad(path, return_X_y=True)
    squad = load_squad(str(path))
    assert X.equals(squad.data)
    assert y.equals(squad.target)


def test_a_wrong_place_is_mended_and_listed(write):
    squad = load_squad(
        write(question("a", ("Paris", 40)), question("b", ("Lyon", -7)), question("c", ("Lyon", 900)))
    )
    assert [answers["answer_start"] for answers in squad.target] == [[43], [18], [18]]
    assert squad.report["found_at"].tolist() == [43, 18, 18]
    assert set(squad.report["finding"]) == {"moved"}


def test_an_absent_answer_is_left_out_and_listed(write):
    squad = load_squad(
        write(question("a", ("Nice", 3)), question("b", ("Nice", 3), ("Lyon", 18)), question("c", (" ", 5)))
    )
    assert squad.frame["id"].tolist() == ["b"]
    assert squad.target[0] == {"text": ["Lyon"], "answer_start": [18]}
    assert squad.report.to_numpy().tolist() == [
        ["a", "Nice", 3, -1, "absent"],
        ["b", "Nice", 3, -1, "absent"],
        ["c", " ", 5, -1, "absent"],
    ]


def test_a_byte_order_mark_is_read_over(write):
    path = write(question("a", ("Paris", 0)))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(load_squad(path).frame) == 1


@pytest.mark.parametrize(
    ("start", "found"), [(0, 0), (4, 0), (21, 0), (22, 43), (43, 43), (48, 43), (-5, 0), (500, 43)]
)
def test_nearest_occurrence(start, found):
    assert nearest_occurrence(CONTEXT, "Paris", start) == found
    distances = {place: abs(place - max(0, start)) for place in (0, 43)}
    assert distances[found] == min(distances.values())


def test_nearest_occurrence_of_what_is_absent():
    assert nearest_occurrence(CONTEXT, "Nice", 3) == -1


def test_halves_of_characters_are_replaced_and_places_stay(tmp_path):
    path = tmp_path / "halves.json"
    asked = {"id": "\ud83d", "question": "O\ud83d ?", "answers": [{"text": "\ud83d Lyon", "answer_start": 2}]}
    paragraph = {"context": "\U0001f600 \ud83d Lyon", "qas": [asked]}
    path.write_text(json.dumps({"data": [{"title": "\udc00", "paragraphs": [paragraph]}]}))  # all as escapes
    squad = load_squad(path)
    answers = {"text": ["\ufffd Lyon"], "answer_start": [2]}
    assert squad.frame.values.tolist() == [
        ["O\ufffd ?", "\U0001f600 \ufffd Lyon", "\ufffd", "\ufffd", answers]
    ]
    assert squad.report.empty


def test_null_is_no_name(write):
    path = write(question("1", ("Paris", 0)), version=None)
    assert load_squad(path).version == ""
    path.write_text(path.read_text(encoding="utf-8").replace('"Villes"', "null"), encoding="utf-8")
    assert load_squad(path).frame["title"].tolist() == [""]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1]", "holds a list, not an object with 'data'"),
        ("{", "is no JSON file in UTF-8"),
        ("{}", r"data must be a list of objects, as in SQuAD's files; it is missing"),
        ('{"data": [3]}', "data must be a list of objects"),
        ('{"data": [{"title": "a"}]}', r"data\[0\]\.paragraphs must be a list"),
        (
            '{"data": [{"paragraphs": [{"qas": []}]}]}',
            r"paragraphs\[0\]\.context must be a text; it is missing",
        ),
        ('{"data": [{"paragraphs": [{"context": "a", "qas": [{}]}]}]}', r"qas\[0\]\.question must be a text"),
        (
            '{"data": [{"paragraphs": [{"context": "a", "qas": [{"question": "q", "answers": "a"}]}]}]}',
            r"qas\[0\]\.answers must be a list of objects, as in SQuAD's files; it is a str",
        ),
        (
            '{"data": [{"paragraphs": [{"context": "a", "qas": [{"question": "q", "answers": [{"text": "a"}]}]}]}]}',
            r"qas\[0\]\.answers\[0\]\.answer_start must be a whole number; it is None",
        ),
        (
            '{"data": [{"paragraphs": [{"context": "a", "qas": [{"question": "q", "is_impossible": "false"}]}]}]}',
            r"qas\[0\]\.is_impossible must be true or false; it is 'false'",
        ),
        ("[" * 100_000, "is no JSON file in UTF-8"),
    ],
)
def test_another_format_says_where(tmp_path, content, message):
    path = tmp_path / "other.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        load_squad(path)


def test_wrong_arguments(tmp_path):
    with pytest.raises(TypeError, match="path must be a str or a path, got dict"):
        load_squad({})
    with pytest.raises(TypeError, match="return_X_y must be a bool, got int"):
        load_squad(tmp_path / "a.json", return_X_y=1)
    with pytest.raises(FileNotFoundError):
        load_squad(tmp_path / "a.json")
