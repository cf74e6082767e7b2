"""The sample of French mails: what it promises, and the options of its loader."""

import re
import subprocess
import sys
from collections import Counter, defaultdict
from itertools import groupby

import numpy as np
import pandas as pd
import pytest

from sktransformer.datasets import load_french_emails

LABELS = [
    "commercial",
    "compte",
    "facturation",
    "livraison",
    "recrutement",
    "réclamation",
    "résiliation",
    "technique",
]
LANGUAGES = {"fr", "en", "es", "de", "it", "nl", "pt"}

# The blocks that the French regulator sets aside for fiction (Arcep, decision 2018-0881).
FICTION_PREFIXES = ("019900", "026191", "035301", "046571", "053649", "063998")
PHONE = re.compile(r"(?<![\w.,-])(?:(?:\+|00)33[\s.-]?(?:\(0\))?|0)[\s.-]?([1-9](?:[\s.-]?\d){8})(?!\d)")
FOREIGN_PHONE = re.compile(r"(?<!\w)\+(?!33)\d{1,3}[\s./-]?(?:[\d()][\s./-]?){6,}")
HOST = re.compile(r"(?:@|https?://|\bwww\.)([\w-]+(?:\.[\w-]+)+)")
EXAMPLE_HOST = re.compile(r"(?:[\w-]+\.)*(?:example|example\.(?:com|net|org))")
REPLY_CHAIN = re.compile(
    r"^\s*>|\ba écrit\s*:|\bwrote:|\bescribió:|\bschrieb\b.*:|\bha scritto:|\bschreef\b.*:|\bescreveu:"
    r"|-{2,}\s*(?:Message d['’]origine|Original Message|Message transféré)"
    r"|^\W*(?:De|From|Von|Da|Van)\s*:.*\n\W*(?:Envoyé|Sent|Date|Gesendet|Inviato|Verzonden|Enviado|À|To)\b.*:"
    r"|<blockquote",
    re.MULTILINE,
)
HTML = re.compile(r"<(?:html|body|div|p|table|br)\b[^>]*>", re.IGNORECASE)
RUN = 60


@pytest.fixture(scope="module")
def mails():
    return load_french_emails()


@pytest.fixture(scope="module")
def frame(mails):
    return mails.frame


def phone_numbers(text):
    """French numbers in ten digits, whatever separates them."""
    return ["0" + re.sub(r"\D", "", found) for found in PHONE.findall(text)]


def strange_hosts(text):
    return [host for host in HOST.findall(text) if not EXAMPLE_HOST.fullmatch(host.lower())]


def shared_runs(bodies, length):
    """Pairs (first holder, later holder) of one run of `length` characters, with that run; white space is collapsed."""
    first_seen, pairs = {}, defaultdict(str)
    for i, body in enumerate(bodies):
        text = " ".join(body.split())
        for run in {text[start : start + length] for start in range(len(text) - length + 1)}:
            j = first_seen.setdefault(run, i)
            if j != i:
                pairs[j, i] = run
    return dict(pairs)


# The rulers first: each must be able to say no.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Tél. 01 99 00 12 34.", ["0199001234"]),
        ("06.39.98.20.91 / 0261911407", ["0639982091", "0261911407"]),
        ("+33 6 12 34 56 78", ["0612345678"]),
        ("+33 (0)6 39 98 11 22", ["0639981122"]),
        ("01\u00a099\u00a000\u00a012\u00a034", ["0199001234"]),
        ("commande 12-0639982091234, 1 047,60 €", []),
    ],
)
def test_ruler_phone_numbers(text, expected):
    assert phone_numbers(text) == expected


def test_ruler_foreign_phone_numbers():
    assert FOREIGN_PHONE.search("call +49 30 1234567")
    assert not FOREIGN_PHONE.search("+33 6 39 98 11 22, +20 % en un an")


def test_ruler_hosts():
    text = "a@example.org b@x.maison-orvane.example, c@gmail.com, https://example.com/a www.notexample.com"
    assert strange_hosts(text) == ["gmail.com", "notexample.com"]


def test_ruler_shared_runs():
    bodies = ["abcdefgh\nij", "zz abcdefgh ij", "abcdefgh", "xabcdefgh"]
    assert shared_runs(bodies, 9).keys() == {(0, 1)}
    assert shared_runs(bodies, 8).keys() == {(0, 1), (0, 2), (0, 3)}


# The mails.


def test_at_least_490_mails(frame):
    assert len(frame) >= 490


def test_columns_and_kinds(frame):
    assert list(frame.columns) == ["subject", "body", "sender", "date", "language", "label", "split"]
    for column in ("subject", "body", "sender", "language", "label", "split"):
        assert all(type(value) is str for value in frame[column]), column
    assert np.issubdtype(frame["date"].dtype, np.datetime64)
    assert frame["body"].str.strip().ne("").all()


def test_eight_labels(mails):
    assert list(mails.target_names) == LABELS
    assert set(mails.target) == set(LABELS)


def test_shares_of_the_labels(frame):
    shares = frame["label"].value_counts(normalize=True)
    assert shares.max() == pytest.approx(0.25, abs=0.03)
    assert shares.min() == pytest.approx(0.03, abs=0.01)


def test_languages(frame):
    assert set(frame["language"]) <= LANGUAGES
    assert 0.08 <= frame["language"].ne("fr").mean() <= 0.14


def test_dates_lie_in_the_window_and_have_a_time(frame):
    assert frame["date"].notna().all()
    assert frame["date"].min() >= pd.Timestamp("2025-09-01")
    assert frame["date"].max() < pd.Timestamp("2026-03-01")
    assert (frame["date"] != frame["date"].dt.normalize()).all()


def test_rows_are_in_date_order_and_labels_are_not_in_blocks(frame):
    assert frame["date"].is_monotonic_increasing
    assert list(frame.index) == list(range(len(frame)))
    longest = max(len(list(group)) for _, group in groupby(frame["label"]))
    assert longest <= 8
    for half in (frame.iloc[: len(frame) // 2], frame.iloc[len(frame) // 2 :]):
        assert set(half["label"]) == set(LABELS)


def test_html_bodies(frame):
    assert frame["body"].str.contains(HTML).mean() == pytest.approx(0.06, abs=0.01)


def test_long_bodies(frame):
    words = frame["body"].str.split().str.len()
    assert ((words > 512) | (frame["body"].str.len() > 2500)).mean() == pytest.approx(0.05, abs=0.01)


def test_reply_chains(frame):
    assert frame["body"].map(lambda body: REPLY_CHAIN.search(body) is not None).sum() >= 80


def test_halves_agree_in_html_length_and_chains(frame):
    body, test = frame["body"], frame["split"] == "test"
    for holds in (
        body.str.contains(HTML),
        (body.str.split().str.len() > 512) | (body.str.len() > 2500),
        body.map(lambda text: REPLY_CHAIN.search(text) is not None),
        body.str.split().str.len() < 15,
    ):
        assert abs((holds & test).sum() - (holds & ~test).sum()) <= 2


def test_no_duplicate_bodies(frame):
    folded = [" ".join(body.casefold().split()) for body in frame["body"]]
    assert [body for body, count in Counter(folded).items() if count > 1] == []


def test_no_two_bodies_share_a_run(frame):
    assert shared_runs(frame["body"], RUN) == {}


def test_phone_numbers_are_fiction(frame):
    texts = frame["subject"] + "\n" + frame["body"]
    numbers = [(row, number) for row, text in texts.items() for number in phone_numbers(text)]
    assert len(numbers) >= 80
    assert [(row, number) for row, number in numbers if not number.startswith(FICTION_PREFIXES)] == []
    assert [text for text in texts if FOREIGN_PHONE.search(text)] == []


def test_senders_are_unique(frame):
    assert frame["sender"].str.lower().is_unique


def test_sender_domains_are_examples(frame):
    assert frame["sender"].str.fullmatch(r"[\w.+-]+@[\w.-]+").all()
    assert [sender for sender in frame["sender"] if strange_hosts(sender)] == []


def test_addresses_inside_the_mails_are_examples(frame):
    found = {row: strange_hosts(text) for row, text in (frame["subject"] + "\n" + frame["body"]).items()}
    assert {row: hosts for row, hosts in found.items() if hosts} == {}


# The loader.


def test_bunch(mails):
    assert set(mails) == {
        "data",
        "target",
        "split",
        "frame",
        "target_names",
        "feature_names",
        "DESCR",
        "filename",
    }
    assert mails.feature_names == ["subject", "body"]
    pd.testing.assert_frame_equal(mails.data, mails.frame[["subject", "body"]])
    pd.testing.assert_series_equal(mails.target, mails.frame["label"])
    assert mails.filename == [f"french_emails_{letter}.jsonl" for letter in "abcdefghi"]
    pd.testing.assert_series_equal(mails.split, mails.frame["split"])


def test_return_X_y(mails):
    X, y = load_french_emails(return_X_y=True)
    pd.testing.assert_frame_equal(X, mails.data)
    pd.testing.assert_series_equal(y, mails.target)


def test_arrays(mails):
    bunch = load_french_emails(as_frame=False)
    assert bunch.frame is None
    assert bunch.data.dtype == bunch.target.dtype == object
    np.testing.assert_array_equal(bunch.data, mails.data.to_numpy(dtype=object))
    np.testing.assert_array_equal(bunch.target, mails.target.to_numpy(dtype=object))
    np.testing.assert_array_equal(bunch.split, mails.split.to_numpy(dtype=object))
    X, y = load_french_emails(return_X_y=True, as_frame=False)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)


def test_each_call_returns_its_own_frame(mails):
    other = load_french_emails()
    before = mails.frame.loc[0, "body"]
    other.frame.loc[0, "body"] = "changed"
    other.data.loc[0, "subject"] = "changed"
    assert mails.frame.loc[0, "body"] == before
    assert other.frame.loc[0, "subject"] != "changed"


@pytest.mark.parametrize("name", ["return_X_y", "as_frame"])
def test_options_must_be_bool(name):
    with pytest.raises(TypeError, match=rf"{name} must be a bool, got str; pass True or False\."):
        load_french_emails(**{name: "yes"})


def test_options_are_keywords():
    with pytest.raises(TypeError, match="positional"):
        load_french_emails(True)


def test_description_counts_the_frame(mails):
    """The tables of DESCR are checked against the rows, so that the page cannot go stale."""
    frame, body = mails.frame, mails.frame["body"]
    traits = {
        "HTML": body.str.contains(HTML),
        "quotes an earlier message": body.map(lambda text: REPLY_CHAIN.search(text) is not None),
        "more than 512 words or 2,500 characters": (body.str.split().str.len() > 512)
        | (body.str.len() > 2500),
        **{key: frame["label"] == key for key in LABELS},
        **{key: frame["language"] == key for key in LANGUAGES},
    }
    rows = re.findall(r"^\| ([^|]+) \| (\d+) \| (\d+) \| (\d+) \|", mails.DESCR, flags=re.MULTILINE)
    halves = {half: frame["split"] == half for half in ("train", "test")}
    expected = {
        key: (holds.sum(), *((holds & half).sum() for half in halves.values()))
        for key, holds in traits.items()
    }
    assert {key: tuple(map(int, counts)) for key, *counts in rows} == expected
    assert f"{len(frame)} mails" in mails.DESCR
    assert f"{halves['train'].sum()} mails each" in mails.DESCR
    assert "CC0" in mails.DESCR


def test_loads_without_torch_or_transformers():
    code = (
        "import sys; from sktransformer.datasets import load_french_emails; load_french_emails(); "
        "sys.exit(', '.join({'torch', 'transformers'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
