"""The reply fixtures of another project, where they lie beside this one; see its licence there."""

from pathlib import Path

import pytest

from sktransformer.email import EmailCleaner

FIXTURES = Path(__file__).parents[2] / "../shared/data/email_replies/crisp/test/fixtures"

# Name -> the lines that belong to the newest message, as (first, one after the last).
FIRST_FIVE = ((0, 5),)
RIGHT = {
    **dict.fromkeys(
        [
            *(f"email_{n}" for n in (1, 10, 11, 12, 13, 14, 16, 17, 18, 22, 23, 24, 25, 26, 7, 8, 9, 15)),
            *("email_en_multiline_2", "email_fr_multiline", "email_french_2", "email_french_dash_separator"),
            *("email_german", "email_german_2", "email_german_3", "email_german_outlook", "email_italian"),
            *("email_gmail_split_line_from", "email_ios_outlook", "email_ios_outlook_fr", "email_finnish"),
            *("email_msn", "email_norwegian_gmail", "email_one_is_not_on", "email_original_message"),
            *(
                "email_original_message_2",
                "email_outlook_split_line_from",
                "email_portuguese",
                "email_russian",
            ),
            *("email_tricky_10_special_chars_in_name", "email_tricky_12_no_space_after_header"),
            *("email_tricky_14_long_quote_header", "email_tricky_15_original_message_variations"),
            *(
                "email_tricky_2_url_with_wrote",
                "email_tricky_4_from_in_body",
                "email_tricky_5_mixed_languages",
            ),
            *("email_tricky_8_sent_from_in_content", "email_with_regards", "email_danish_dash_separator"),
        ],
        FIRST_FIVE,
    ),
    **dict.fromkeys(
        [
            *(
                "correct_sig",
                "email_19",
                "email_20",
                "email_2_1",
                "email_4",
                "email_blackberry",
                "email_emoji",
            ),
            *("email_customer_quote_header_2", "email_iphone", "email_sent_from", "email_thread"),
            *("email_multi_word_sent_from_my_mobile_device", "email_tricky_11_double_signature"),
            *("email_tricky_16_unicode_signatures", "email_tricky_17_forward_header"),
            *("email_tricky_9_nested_quotes", "email_unquoted_reply", "sig_no_empty_line"),
            "email_custom_quote_header",
        ],
        ((0, 1),),
    ),
    "email_2": [(0, 1), (8, 34)],
    "email_21": [(0, 638)],
    "email_3": [(0, 3)],
    "email_5": [(0, 15)],
    "email_6": [(0, 3)],
    "email_bullets": [(0, 9)],
    "email_customer_quote_header_3": [(0, 3)],
    "email_not_a_signature": [(0, 13)],
    "email_not_a_signature_2": [(0, 10)],
    "email_reply_header": [(0, 11)],
    "email_sent_from_my_not_signature": [(0, 3)],
    "email_tricky_13_timestamp_variations": [(0, 9)],
    "email_tricky_18_inline_reply": [(3, 4), (7, 8), (11, 12)],
    "email_tricky_19_quote_without_header": [(0, 1), (6, 7), (11, 12)],
    "email_tricky_1_on_false_positive": [(0, 6)],
    "email_tricky_20_html_entities": [(0, 3)],
    "email_tricky_3_code_block": [(0, 13)],
    "email_tricky_6_regards_in_sentence": [(0, 7)],
    "email_tricky_7_multiple_dashes": [(0, 15)],
    "email_zoho": [(0, 2)],
}
TEMPLATES = {
    "email_with_date_headers",
    "email_with_from_headers",
}  # [DATE] and [FROM] are filled in by its tests
UNMARKED = "nothing marks the text below the footer as old, so it stays"
FAILURES = {
    "email_15": UNMARKED,
    "email_7": "one wrapped end of a quoted sentence could as well be an answer between quotes",
}

pytestmark = pytest.mark.skipif(not FIXTURES.is_dir(), reason=f"the fixtures are not at {FIXTURES}")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.xfail(reason=FAILURES[name])) if name in FAILURES else name
        for name in sorted(RIGHT)
    ],
)
def test_the_newest_message_is_left(name):
    with (FIXTURES / f"{name}.txt").open(encoding="utf-8", newline="") as file:
        text = file.read()
    lines = text.replace("\u2019", "'").splitlines()
    right = " ".join(" ".join(lines[start:stop]) for start, stop in RIGHT[name])
    assert " ".join(EmailCleaner().transform([text])[0].split()) == " ".join(right.split())


def test_no_fixture_is_forgotten():
    assert {path.stem for path in FIXTURES.glob("*.txt")} == set(RIGHT) | TEMPLATES
