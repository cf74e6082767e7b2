"""What broken programs and hostile people send: halves of characters, endless numbers, odd line ends, no boundary."""

import numpy as np
import pandas as pd
import pytest

from sktransformer.email import EmailCleaner, read_mailbox
from sktransformer.email._html import parse_html
from sktransformer.email._normalise import line_spans, split_lines


def clean(text):
    return EmailCleaner().transform([text])[0]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_lone_surrogates_do_not_break_a_frame(library):
    cleaner = EmailCleaner().set_output(transform=library)
    frame = cleaner.fit_transform(["a \ud800 b", "\ud83d\ude00", "\udc00\n\nx \ud83d", "<p>\ud800</p>"])
    assert list(frame["text"]) == ["a \ufffd b", "\N{GRINNING FACE}", "\ufffd\n\nx \ufffd", "\ufffd"]


def test_surrogates_in_a_subject_and_their_places():
    table = np.array([["Re: \ud800x", "b"]], dtype=object)
    assert EmailCleaner().transform(table).tolist() == ["\ufffdx\n\nb"]
    text = "\ud83d\ude00\ud800\n> ancien"
    (piece,) = EmailCleaner().explain(text)
    assert (piece.start, piece.text) == (4, "> ancien")


@pytest.mark.parametrize(
    "html",
    [
        "<p>&#{n};x</p>",
        "<p title='&#{n};'>x</p>",
        "<p>x</p>&#{n}",
        "<br>x<br>&#{n}",
        "<br>" * 60_000 + "x&#{n};",
    ],
)
def test_a_number_with_thousands_of_digits_is_no_character(html):
    text = html.replace("{n}", "9" * 5000)
    assert clean(text) == "x"
    assert EmailCleaner().explain(text) == []


@pytest.mark.parametrize(
    "end", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\r\n", "\r", "&#10;", "&#x0A;", "&#13;"]
)
def test_line_ends_of_all_kinds_in_preformatted_text(end):
    text = f"<pre>a{end}b{end}&gt; c</pre>"
    assert clean(text) == "a\nb"
    (piece,) = EmailCleaner().explain(text)
    assert (piece.kind, piece.text) == ("quote", "&gt; c")
    assert clean(f"<p>a{end}b</p>") == "a b"


@pytest.mark.parametrize(
    "html", ["<pre>a&NewLine;b&#8232;c</pre>", "<pre>\n\na\n\n\nb</pre>", "<br>\n" * 60_000]
)
def test_every_line_has_a_place(html):
    markup = parse_html(html)
    assert len(markup.lines) == len(markup.starts) == len(markup.ends) == len(markup.presets)
    assert len(split_lines("\n".join(markup.lines))) == len(markup.lines)


def test_a_body_with_too_many_tags_keeps_its_lines_and_places():
    text = (
        "<div><b\nclass=x>Bonjour</b></div><p>Mon&nbsp;colis ?<br>" + "<i>" * 60_000 + "<p>&gt; ancien\r\nfin"
    )
    assert clean(text) == "Bonjour\n\nMon colis ?\n\nfin"
    (piece,) = EmailCleaner().explain(text)
    assert (piece.kind, piece.text) == ("quote", "&gt; ancien")


def test_attributes_without_end_are_not_parsed_one_by_one():
    text = "<p " + "a " * 300_000 + ">Bonjour</p><br>Merci"
    assert clean(text) == "Bonjour\n\nMerci"


def test_spans_are_those_of_the_raw_lines():
    text = "a\r\n\u2028bc\n"
    assert [text[start:end] for start, end in line_spans(text)] == text.splitlines()


def test_one_column_cannot_be_subject_and_body():
    frame = pd.DataFrame({"subject": ["a"], "body": ["b"]})
    with pytest.raises(
        ValueError, match=r"body_column and subject_column are both 'subject'; name two columns"
    ):
        EmailCleaner(body_column="subject").transform(frame)


def test_a_path_with_a_nul_character(tmp_path):
    with pytest.raises(ValueError, match=r"holds a NUL character, which no path may; pass it without"):
        read_mailbox(str(tmp_path) + "\0x")


@pytest.mark.parametrize(
    "header", ["multipart/mixed", 'multipart/mixed; boundary="never"', "multipart/alternative"]
)
def test_the_text_of_parts_without_a_boundary_is_read(tmp_path, header):
    path = tmp_path / "mail.eml"
    path.write_text(f"From: a@example.org\nContent-Type: {header}\n\nBonjour,\nmon colis ?\n")
    with pytest.warns(UserWarning, match=r"1 mail\(s\) in .* are broken"):
        frame = read_mailbox(path)
    assert frame["body"].tolist() == ["Bonjour,\nmon colis ?"]
    assert frame["attachments"].tolist() == [[]]
