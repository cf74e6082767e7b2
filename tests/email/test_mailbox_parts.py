"""One mail: charsets, headers, versions of a body, attachments, mails inside mails, hostile ones."""

import base64
import time
from email.message import EmailMessage

import pandas as pd
import pytest

from sktransformer.email import EmailCleaner, read_mailbox

POSTMARK = b"From x@example.org Mon Mar  3 10:12:00 2025\n"


@pytest.fixture
def read(tmp_path):
    def read(raw):
        (tmp_path / "one.eml").write_bytes(raw if isinstance(raw, bytes) else raw.as_bytes())
        return read_mailbox(tmp_path / "one.eml").iloc[0]

    return read


def plain(body, charset="utf-8", encoding="8bit", header=b"Subject: s\n"):
    kind = (
        f'Content-Type: text/plain; charset="{charset}"\nContent-Transfer-Encoding: {encoding}\n\n'.encode()
    )
    return b"From: a@example.org\n" + header + kind + body


def test_cp1252_that_calls_itself_latin_1(read):
    body = read(plain(b"L=92abonnement co=FBte 30 =80=85 c=9Cur", "iso-8859-1", "quoted-printable"))["body"]
    assert body == "L’abonnement coûte 30 €… cœur"
    assert read(plain(b"caf=E9\n", "iso-8859-1", "quoted-printable"))["body"] == "café"


@pytest.mark.parametrize("charset", ["iso-8859-1", "us-ascii", "iso-8859-15", "windows-1252", "utf-8"])
def test_no_control_characters_of_latin_1(read, charset):
    data = "\x80 \x85 \x92".encode() if charset == "utf-8" else b"\x80 \x85 \x92"
    assert read(plain(data, charset))["body"] == "€ … ’"


def test_misspelt_and_unknown_charsets(tmp_path):
    hebrew = "שלום רב"
    cases = [
        ("uft-8", "Réclamation".encode()),
        ("cp-850", "Réclamation".encode("cp850")),
        ("1", "Réclamation".encode("cp1252")),
        ("x-unknown", "Réclamation".encode("cp1252")),
        ("iso-8859-8-i", hebrew.encode("iso8859_8")),
        ("utf-8 a1b2", "Réclamation".encode()),
        ("utf-8", "Bonjour à tous".encode()),
    ]
    subject = b"Subject: =?x-unknown?Q?R=E9clamation?=\n"
    mails = [plain(data + b"\n\n", charset, header=subject) for charset, data in cases]
    (tmp_path / "inbox").write_bytes(b"".join(POSTMARK + raw for raw in mails))
    with pytest.warns(UserWarning, match=r"2 mail\(s\)") as warned:
        frame = read_mailbox(tmp_path / "inbox")
    assert len(warned) == 1
    assert frame["body"].tolist() == [*["Réclamation"] * 4, hebrew, "Réclamation", "Bonjour à tous"]
    assert set(frame["subject"]) == {"Réclamation"}
    assert [(item["row"], item["problem"]) for item in frame.attrs["broken"]] == [
        (2, "the charset '1' is not known; read as cp1252"),
        (3, "the charset 'x-unknown' is not known; read as cp1252"),
    ]


@pytest.mark.parametrize(
    "charset", ["hex", "rot13", "idna", "punycode", "unicode_escape", "undefined", "\x00", "é", "-"]
)
def test_names_that_are_no_charset(read, charset):
    with pytest.warns(UserWarning, match="broken"):
        assert read(plain("été".encode(), charset))["body"] == "été"


NO_TEXT = ["hex", "rot13", "zlib", "bz2", "base64", "uu", "quopri"]


@pytest.mark.parametrize("charset", NO_TEXT)
def test_codecs_of_no_text_in_a_header(read, charset):
    assert (
        read(f"Subject: =?{charset}?q?R=E9glée?=\nFrom: a@example.org\n\nx".encode("cp1252"))["subject"]
        == "Réglée"
    )
    with pytest.warns(UserWarning, match="broken"):
        assert read(plain("été".encode(), charset))["body"] == "été"


def test_halves_of_characters(read):
    word = "=?utf-7?q?a+2AA-b?="  # a lone surrogate, which no frame of Arrow strings takes
    headers = f"Subject: {word}\nFrom: {word} <a@example.org>\nContent-Type: text/plain; charset=utf-7"
    row = read(f"{headers}\n\n+2AA-x".encode())
    assert row[["subject", "sender_name", "body"]].tolist() == ["a\ufffdb", "a\ufffdb", "\ufffdx"]
    attached = "Content-Type: application/pdf; name*=utf-7''+2AA-.pdf\nContent-Disposition: attachment"
    assert read(f"Subject: x\nFrom: a@example.org\n{attached}\n\nx".encode())["attachments"] == ["\ufffd.pdf"]


def test_bytes_that_are_not_of_their_charset(read):
    assert read(plain("Réclamation déjà réglée".encode(), "iso-8859-1"))["body"] == "Réclamation déjà réglée"
    with pytest.warns(UserWarning, match="broken"):
        assert read(plain("déjà réglé".encode("cp1252"), "utf-8"))["body"] == "déjà réglé"
    with pytest.warns(UserWarning, match="broken"):
        assert read(plain("déjà réglée, é".encode()[:-1], "utf-8"))["body"] == "déjà réglée, \ufffd"
    with pytest.warns(UserWarning, match="broken"):
        assert read(plain("été".encode(), "utf-16"))["body"] == "été"
    assert read(plain("日本".encode("iso-2022-jp"), "iso-2022-jp"))["body"] == "日本"
    assert read(plain("été".encode("utf-16"), "utf-16", "binary"))["body"] == "été"


@pytest.mark.parametrize(
    ("raw", "right"),
    [
        ("Subject: =?utf-8?q?Fac?= =?utf-8?q?ture?=", "Facture"),
        ("Subject: =?UTF-8?B?w6k=?=\n =?utf-8?B?w6g=?= et", "éè et"),
        ("Subject: =?utf-8?b?w6nD?= =?utf-8?b?qQ==?=", "éé"),  # cut inside a character
        ("Subject: Re: =?iso-8859-1?q?L=92=E9t=E9_=80?= fin", "Re: L’été € fin"),
        ("Subject: =?utf-8*fr?q?=C3=A9t=C3=A9?=", "été"),
        ("Subject: =?utf-8?b?!?=", "=?utf-8?b?!?="),
        ("Subject: =?utf-8?b?w6k?=", "é"),
        ("Subject: =?utf-8?x?abc?= =?", "=?utf-8?x?abc?= =?"),
        ("Subject: a\n b\n\tc", "a b c"),
        ("Subject:", ""),
        ("Subject: =?uft-8?q?=C3=A9?=", "é"),
    ],
)
def test_subjects(read, raw, right):
    assert read(f"From: a@example.org\n{raw}\n\nx".encode())["subject"] == right


@pytest.mark.parametrize("data", ["Réglée à".encode(), "Réglée à".encode("cp1252")])
def test_headers_in_bytes(read, data):
    row = read(b"From: " + data + b" <a@example.org>\nSubject: " + data + b"\n\nx")
    assert (row["subject"], row["sender_name"], row["sender"]) == ("Réglée à", "Réglée à", "a@example.org")


@pytest.mark.parametrize(
    ("raw", "right"),
    [
        ("From: a@example.org", ("", "a@example.org")),
        ('From: "Martin, Zoé" <a@example.org>', ("Martin, Zoé", "a@example.org")),
        ("From: =?utf-8?q?Zo=C3=A9=2C_SAV?= <a@example.org>", ("Zoé, SAV", "a@example.org")),
        ("Sender: a@example.org", ("", "a@example.org")),
        ("Return-Path: <a@example.org>", ("", "a@example.org")),
        ("From: " + "(" * 20_000 + " a@example.org", ("", "a@example.org")),
        ("Subject: x", ("", "")),
        ("From: ", ("", "")),
    ],
)
def test_senders(read, raw, right):
    row = read(f"{raw}\nSubject: y\n\nx".encode())
    assert (row["sender_name"], row["sender"]) == right


@pytest.mark.parametrize(
    ("raw", "right"),
    [
        ("Date: Mon, 03 Mar 2025 10:12:00 +0100", "2025-03-03 09:12"),
        ("Date: 3 Mar 2025 10:12:00 GMT", "2025-03-03 10:12"),
        ("Date: Mon, 03 Mar 2025 10:12:00 -0000", "2025-03-03 10:12"),
        ("Date: Mon, 03 Mar 2025\n 10:12:00 +0000 (UTC)", "2025-03-03 10:12"),
        ("Received: from a by b; Mon, 03 Mar 2025 10:12:00 +0000", "2025-03-03 10:12"),
        ("Subject: none", None),
    ],
)
def test_dates(read, raw, right):
    date = read(f"From: a@example.org\n{raw}\n\nx".encode())["date"]
    assert pd.isna(date) if right is None else date == pd.Timestamp(right, tz="UTC")


@pytest.mark.parametrize(
    "date", ["hier", "Mon, 99 Mar 2025 10:12:00 +0100", "Mon, 03 Mar 99999 10:12:00 +9999", "é"]
)
def test_a_date_nobody_can_read_is_listed(read, date):
    with pytest.warns(UserWarning, match="broken"):
        assert pd.isna(read(f"From: a@example.org\nDate: {date}\n\nx".encode())["date"])


def message(subject="s"):
    made = EmailMessage()
    made["From"], made["Subject"] = "a@example.org", subject
    return made


def test_the_plain_version_is_preferred(read):
    both = message()
    both.set_content("texte")
    both.add_alternative("<p>du <b>HTML</b></p>", subtype="html")
    row = read(both)
    assert (row["body"], row["html"], row["attachments"]) == ("texte", False, [])


def test_html_where_the_plain_version_is_blank(read):
    both = message()
    both.set_content(" \n\n")
    both.add_alternative("<p>Bonjour &eacute;</p><blockquote>vieux</blockquote>", subtype="html")
    row = read(both)
    assert (row["body"], row["html"]) == ("<p>Bonjour &eacute;</p><blockquote>vieux</blockquote>", True)
    assert EmailCleaner().transform([row["body"]]).tolist() == ["Bonjour é"]


@pytest.mark.parametrize(
    "html", ["Bonjour &amp; merci", "<section>Bonjour &amp; merci</section>", "<i>Bonjour &amp; merci</i>"]
)
def test_html_that_hardly_looks_like_it_is_still_html_to_the_cleaner(read, html):
    only = message()
    only.set_content(html, subtype="html")
    row = read(only)
    assert row["html"]
    assert EmailCleaner().transform([row["body"]]).tolist() == ["Bonjour & merci"]


def test_attachments_are_named_and_not_read(read):
    made = message()
    made.set_content("Voir ci-joint.")
    made.add_attachment(b"\x00" * 99, maintype="application", subtype="pdf", filename="facture n° 3 é.pdf")
    made.add_attachment("a,b", filename="table.csv", subtype="csv")
    made.add_attachment("du texte en plus", filename="notes.txt")
    made.add_attachment(b"GIF89a", maintype="image", subtype="gif")
    row = read(made)
    assert row["body"] == "Voir ci-joint."
    assert row["attachments"] == ["facture n° 3 é.pdf", "table.csv", "notes.txt", "image/gif"]


def test_a_file_name_in_encoded_words_or_of_an_unknown_charset(read):
    parts = (
        'Content-Type: application/pdf; name="=?iso-8859-1?Q?re=E7u.pdf?="\n\nx\n--b\n'
        "Content-Type: application/pdf\nContent-Disposition: attachment; filename*=x-unknown''re%E7u2.pdf\n\nx\n--b--\n"
    )
    head = "From: a@example.org\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n"
    assert read((head + parts).encode())["attachments"][0] == "reçu.pdf"
    assert read((head + parts).encode())["attachments"][1].endswith("2.pdf")


def test_texts_above_and_below_an_attachment_are_joined(read):
    made = message()
    made.set_content("au-dessus")
    made.make_mixed()
    made.add_attachment(b"x", maintype="image", subtype="png", filename="a.png")
    below = EmailMessage()
    below.set_content("en dessous <b>")
    made.attach(below)
    row = read(made)
    assert (row["body"], row["html"], row["attachments"]) == (
        "au-dessus\n\nen dessous <b>",
        False,
        ["a.png"],
    )


def test_a_plain_footer_below_html(read):
    made = message()
    made.set_content("<p>Bonjour</p>", subtype="html")
    made.make_mixed()
    below = EmailMessage()
    below.set_content("liste <de> diffusion")
    made.attach(below)
    row = read(made)
    assert row["html"]
    assert EmailCleaner().transform([row["body"]])[0].split() == ["Bonjour", "liste", "<de>", "diffusion"]


def test_an_attached_mail_is_named_by_its_subject(read):
    inner = message("La première demande é")
    inner.set_content("ancienne demande")
    inner.add_attachment(b"x", maintype="image", subtype="png", filename="inside.png")
    outer = message()
    outer.set_content("Voir le mail joint.")
    outer.add_attachment(inner)
    row = read(outer)
    assert (row["body"], row["attachments"]) == ("Voir le mail joint.", ["La première demande é"])


def test_an_envelope_round_another_mail_has_its_body(read):
    inner = message("interne")
    inner.set_content("la demande")
    for subject in ("Tr: 1", "Tr: 2"):
        outer = message(subject)
        outer.make_mixed()
        outer.add_attachment(inner)
        inner = outer
    row = read(outer)
    assert (row["subject"], row["body"], row["attachments"]) == ("Tr: 2", "la demande", ["Tr: 1"])


@pytest.mark.parametrize("body", [b"", b"\n", b"\n\n  \n"])
def test_a_mail_without_a_body(read, body):
    row = read(b"From: a@example.org\nSubject: s\n" + body)
    assert (row["subject"], row["body"], row["html"]) == ("s", "", False)


def test_a_multipart_cut_half_way(read):
    made = message()
    made.set_content("texte entier")
    made.add_attachment(b"x" * 3000, maintype="application", subtype="pdf", filename="a.pdf")
    raw = made.as_bytes()
    with pytest.warns(UserWarning, match="broken"):
        row = read(raw[: len(raw) // 2])
    assert (row["body"], row["attachments"]) == ("texte entier", ["a.pdf"])


def test_broken_base64_is_read_as_far_as_it_goes(read):
    data = base64.b64encode("Réclamation déjà réglée".encode())
    with pytest.warns(UserWarning, match="broken"):
        body = read(plain(data[:-6] + b"?\n", encoding="base64"))["body"]
    assert body.startswith("Réclamation déjà r")


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "raw",
    [
        b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(1000)),
        b"Content-Type: message/rfc822\n\n" * 3000,
        b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nx\n" * 5_000,
        b"Subject: " + b"=?" * 200_000 + b"\n\nx",
        b"Subject: " + b"=?x?q?" * 100_000 + b"\n\nx",
        b"Subject: " + b"=?utf-8?q?a?= " * 10_000 + b"\n\nx",
        b"To: " + b"a@example.org, " * 10_000 + b"\n\nx",
        b"References: " + b"<" * 300_000 + b"\n\nx",
        b"Content-Type: text/plain; " + b"a=b; " * 20_000 + b"\n\nx",
        b'Content-Type: text/plain; charset="' + b'\\"' * 50_000 + b"\n\nx",
        b"X: y\n" * 50_000 + b"\nx",
        b"Content-Transfer-Encoding: base64\n\n" + b"=" * 500_000,
    ],
    ids=range(12),
)
@pytest.mark.filterwarnings("ignore:1 mail")
def test_hostile_mails_take_no_time_and_give_a_row(read, raw):
    start = time.process_time()
    row = read(b"From: a@example.org\n" + raw)
    assert time.process_time() - start < 5
    assert row["sender"] == "a@example.org"
