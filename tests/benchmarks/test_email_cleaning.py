"""The texts of the cleaning benchmark, and its tables; nothing here is timed."""

import pytest

from benchmarks import email_cleaning, report_sections
from benchmarks.common import Sample
from sktransformer.email import EmailCleaner


@pytest.mark.parametrize("name", sorted(email_cleaning.HOSTILE))
def test_hostile_texts_have_their_length_and_are_not_emptied(name):
    text = email_cleaning.repeated(email_cleaning.HOSTILE[name], 3000)
    assert len(text) == 3000
    assert text.count(email_cleaning.HOSTILE[name]) > 1
    assert EmailCleaner().transform([text])[0] != ""


def test_rates_are_counts_over_seconds():
    rates = email_cleaning.rates([Sample(2.0, 1.0), Sample(4.0, 2.0), Sample(5.0, 4.0)], 100)
    assert rates["wall"] == {"median": 25.0, "min": 20.0, "max": 50.0}
    assert rates["cpu"]["median"] == 50.0


def test_the_report_shows_rates_and_growth():
    clocks = {"wall": {"median": 2.0, "min": 1.0, "max": 3.0}, "cpu": {"median": 0.5, "min": 0.5, "max": 0.5}}
    short = {"mails": 10, "mean_characters": 500.0, "mails_per_second": {"bodies": clocks}}
    hostile = {"rules": {"seconds": {"62500": clocks, "1000000": clocks}, "growth": 0.987}}
    lines = report_sections.email_cleaning({"results": {"short": short, "hostile": hostile}})
    assert "| bodies | 2 (1 to 3) | 0.5 |" in lines
    assert "| rules | 0.5 | 0.99 |" in lines
