"""Mailboxes on disk: what kinds are read, where mails begin, what is listed as broken."""

import mailbox
import os
import tracemalloc
import warnings
from email.message import EmailMessage

import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from sktransformer.baselines import tfidf_svm
from sktransformer.email import EmailCleaner, read_mailbox

COLUMNS = [
    *("subject", "body", "sender", "date", "sender_name", "recipients", "message_id", "in_reply_to"),
    *("attachments", "html", "source"),
]
POSTMARK = b"From x@example.org Mon Mar  3 10:12:00 2025\n"


def mail(number, body="Bonjour,"):
    message = EmailMessage()
    message["From"] = f"Zoé Martin <zoe{number}@example.org>"
    message["To"] = "sav@example.org, Paul <paul@example.org>"
    message["Cc"] = "anne@example.org"
    message["Subject"] = f"Réclamation n° {number}"
    message["Date"] = f"Mon, 03 Mar 2025 10:{number:02}:00 +0100"
    message["Message-ID"] = f"<{number}@example.org>"
    message["In-Reply-To"] = "<0@example.org>"
    message.set_content(f"{body}\nmail {number}")
    return message


def check(frame, numbers):
    assert frame.columns.tolist() == COLUMNS
    assert frame["subject"].tolist() == [f"Réclamation n° {n}" for n in numbers]
    assert frame["body"].tolist() == [f"Bonjour,\nmail {n}" for n in numbers]
    assert frame["sender"].tolist() == [f"zoe{n}@example.org" for n in numbers]
    assert set(frame["sender_name"]) == {"Zoé Martin"}
    assert frame["recipients"].tolist() == [
        ["sav@example.org", "paul@example.org", "anne@example.org"] for _ in numbers
    ]
    assert frame["message_id"].tolist() == [f"<{n}@example.org>" for n in numbers]
    assert set(frame["in_reply_to"]) == {"<0@example.org>"}
    assert frame["date"].tolist() == [pd.Timestamp(f"2025-03-03 09:{n:02}", tz="UTC") for n in numbers]
    assert frame["attachments"].tolist() == [[] for _ in numbers]
    assert frame["html"].tolist() == [False for _ in numbers]
    assert frame.attrs == {"broken": []}


@pytest.mark.parametrize("as_path", [str, lambda path: path])
def test_mbox(tmp_path, as_path):
    box = mailbox.mbox(tmp_path / "inbox")
    for number in range(1, 4):
        box.add(mail(number))
    box.close()
    frame = read_mailbox(as_path(tmp_path / "inbox"))
    check(frame, [1, 2, 3])
    assert frame["source"].tolist() == ["inbox, mail 1", "inbox, mail 2", "inbox, mail 3"]


def test_mbox_with_windows_line_ends(tmp_path):
    path = tmp_path / "inbox.mbox"
    raw = b"\n".join(POSTMARK + mail(n).as_bytes() for n in (1, 2)) + b"\n"
    path.write_bytes(b"\xef\xbb\xbf" + raw.replace(b"\n", b"\r\n"))
    check(read_mailbox(path), [1, 2])


def test_maildir_in_order_of_delivery(tmp_path):
    box = mailbox.Maildir(tmp_path / "box")
    keys = [box.add(mail(number)) for number in (1, 2, 3)]
    box.add_folder("Archive").add(mail(9))
    box.close()
    for number, (key, folder) in enumerate(zip(keys, ("new", "cur", "new"), strict=True)):
        name = f"{1_700_000_000 + number}.M1.host" + (":2,S" if folder == "cur" else "")
        (tmp_path / "box" / "new" / key).rename(tmp_path / "box" / folder / name)
    frame = read_mailbox(tmp_path / "box")
    check(frame, [1, 2, 3])
    assert frame["source"].tolist() == [
        *("new/1700000000.M1.host", "cur/1700000001.M1.host:2,S", "new/1700000002.M1.host"),
    ]


def test_folder_of_eml_files_at_any_depth(tmp_path):
    (tmp_path / "colis" / "vieux").mkdir(parents=True)
    places = ["2.eml", "10.EML", "colis/1.eml", "colis/vieux/7.eml"]
    for number, place in enumerate(places, start=1):
        (tmp_path / place).write_bytes(mail(number).as_bytes())
    (tmp_path / "notes.txt").write_text("not a mail")
    frame = read_mailbox(tmp_path)
    check(frame, [1, 2, 3, 4])
    assert frame["source"].tolist() == places


@pytest.mark.parametrize("lead", [b"", b"\xef\xbb\xbf", b"\n\n"])
def test_one_eml_file(tmp_path, lead):
    path = tmp_path / "one.eml"
    path.write_bytes(lead + mail(5).as_bytes())
    frame = read_mailbox(path)
    check(frame, [5])
    assert frame["source"].tolist() == ["one.eml"]


def test_types_of_an_empty_maildir_are_those_of_a_full_one(tmp_path):
    mailbox.Maildir(tmp_path / "box").close()
    empty = read_mailbox(tmp_path / "box")
    (tmp_path / "one.eml").write_bytes(mail(5).as_bytes())
    assert len(empty) == 0
    assert empty.columns.tolist() == COLUMNS
    full = read_mailbox(tmp_path / "one.eml")
    assert empty.dtypes.drop(["date"]).equals(full.dtypes.drop(["date"]))
    assert str(empty["date"].dt.tz) == str(full["date"].dt.tz) == "UTC"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no mailbox: it is empty"),
        (b"%PDF-1.7\n", "it is a PDF"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", r"\.msg file; save the mail as \.eml"),
        (b"PK\x03\x04..", "zip archive; unpack it first"),
        (b"subject,body\na,b\n", "begins with b'subject,body.*no header of a mail"),
        (b"name: value\nother: value\n\ntext", "no header of a mail"),
        (b"From my point of view\nall is well.\n", "no header of a mail"),
        (bytes(range(256)) * 10, "no header of a mail"),
    ],
)
def test_files_that_are_no_mailbox(tmp_path, content, message):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_mailbox(tmp_path / "file")


def test_paths_that_lead_nowhere(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing' does not exist\. Pass an mbox"):
        read_mailbox(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match=r"the folder .*no' does not exist either"):
        read_mailbox(tmp_path / "no" / "inbox")
    with pytest.raises(ValueError, match="holds no file at all"):
        read_mailbox(tmp_path)
    (tmp_path / "inbox.mbox").write_bytes(POSTMARK + mail(1).as_bytes())
    with pytest.raises(ValueError, match=r"1 other file\(s\), 'inbox.mbox' among them\. Pass an mbox file"):
        read_mailbox(tmp_path)
    for wrong in (None, 3, b"inbox", ["inbox"]):
        with pytest.raises(TypeError, match="path must be a str or a path"):
            read_mailbox(wrong)


def test_further_headers(tmp_path):
    message = mail(1)
    message["X-Gmail-Labels"] = "Inbox,Réclamation"
    (tmp_path / "inbox").write_bytes(POSTMARK + message.as_bytes() + b"\n" + POSTMARK + mail(2).as_bytes())
    frame = read_mailbox(tmp_path / "inbox", headers=["X-Gmail-Labels"])
    assert frame["X-Gmail-Labels"].tolist() == ["Inbox,Réclamation", ""]
    with pytest.raises(TypeError, match=r"headers must be a sequence of str, got 'X-Label'"):
        read_mailbox(tmp_path / "inbox", headers="X-Label")
    with pytest.raises(ValueError, match="leave the colon out"):
        read_mailbox(tmp_path / "inbox", headers=["X-Label:"])
    with pytest.raises(ValueError, match=r"'date'.*write 'Date'"):
        read_mailbox(tmp_path / "inbox", headers=["date"])
    for wrong in (None, 3, b"X-Label", [1]):
        with pytest.raises(TypeError, match=r"headers must be a sequence of str, got"):
            read_mailbox(tmp_path / "inbox", headers=wrong)
    with pytest.raises(ValueError, match=r"headers holds 'X-A' twice"):
        read_mailbox(tmp_path / "inbox", headers=["X-A", "X-A"])
    again = read_mailbox(tmp_path / "inbox", headers=iter(["X-Gmail-Labels"]))
    assert again["X-Gmail-Labels"].tolist() == frame["X-Gmail-Labels"].tolist()


def test_an_empty_path_is_not_the_current_folder_and_a_tilde_is_the_home(tmp_path, monkeypatch):
    (tmp_path / "a.eml").write_bytes(b"From: a@example.org\nSubject: x\n\ny\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    with pytest.raises(ValueError, match="path is empty"):
        read_mailbox("")
    assert len(read_mailbox(".")) == len(read_mailbox("~/a.eml")) == 1


@pytest.mark.parametrize("quote", [b"", b">"])
@pytest.mark.parametrize(
    "line",
    [
        b"From now on we pay by card.",
        b"From 10:30 to 12:00 we are closed.",
        b"From: this is no header",
        b"From Monday 3 March 2025 at 10:30 on:",
    ],
)
def test_lines_of_a_body_that_begin_with_from(tmp_path, quote, line):
    body = b"Bonjour,\n\n" + quote + line + b"\nNothing changes.\n\n" + quote + line + b"\n"
    header = b"From: a@example.org\nSubject: s\n\n"
    (tmp_path / "inbox").write_bytes(POSTMARK + header + body + b"\n" + POSTMARK + header + b"zwei\n")
    frame = read_mailbox(tmp_path / "inbox")
    right = body.decode().strip()
    # Only what an mbox writer quotes is unquoted: "From ", never "From:".
    assert frame["body"].tolist() == [right.replace(">From ", "From "), "zwei"]


def test_an_mbox_without_dates_in_its_postmarks(tmp_path):
    header = b"From a@example.org\nSubject: s\n\n"
    (tmp_path / "inbox").write_bytes(header + b"un\n\n" + header + b"deux\nFrom here on: nothing\n")
    frame = read_mailbox(tmp_path / "inbox")
    assert frame["body"].tolist() == ["un", "deux\nFrom here on: nothing"]


@pytest.mark.parametrize("share", [0.5, 0.8, 0.95])
def test_an_mbox_cut_half_way_keeps_every_mail(tmp_path, share):
    mails = [POSTMARK + mail(n, "Bonjour,\n" * 100).as_bytes() + b"\n" for n in range(1, 5)]
    kept = int(len(mails[3]) * share)
    (tmp_path / "inbox").write_bytes(b"".join(mails[:3]) + mails[3][:kept])
    with pytest.warns(
        UserWarning, match=r"1 mail\(s\) in .* are broken: 1 of 4 rows .* 0 could not"
    ) as warned:
        frame = read_mailbox(tmp_path / "inbox")
    assert len(warned) == 1
    assert frame["sender"].tolist() == [f"zoe{n}@example.org" for n in range(1, 5)]
    assert frame["body"].iloc[:3].tolist() == [
        f"{'Bonjour,' + chr(10)}" * 100 + f"\nmail {n}" for n in (1, 2, 3)
    ]
    assert frame["body"].iloc[3].startswith("Bonjour,\n")
    (broken,) = frame.attrs["broken"]
    assert (broken["row"], broken["source"]) == (3, "inbox, mail 4")
    assert "ends within a line" in broken["problem"]


def test_an_mbox_cut_right_after_a_postmark(tmp_path):
    (tmp_path / "inbox").write_bytes(POSTMARK + mail(1).as_bytes() + b"\n" + POSTMARK)
    with pytest.warns(UserWarning, match=r"1 mail\(s\).*0 of 1 rows.*1 could not be read at all"):
        frame = read_mailbox(tmp_path / "inbox")
    assert frame["sender"].tolist() == ["zoe1@example.org"]
    assert frame.attrs["broken"][0]["row"] is None


def test_files_of_a_folder_that_cannot_be_read_are_listed(tmp_path):
    (tmp_path / "1.eml").write_bytes(b"")
    (tmp_path / "2.eml").write_bytes(b"\x00\x01 garbage")
    (tmp_path / "3.eml").write_bytes(mail(3).as_bytes())
    os.symlink(tmp_path / "gone", tmp_path / "4.eml")
    with pytest.warns(UserWarning, match=r"3 mail\(s\).*broken: 1 of 2 rows.*2 could not") as warned:
        frame = read_mailbox(tmp_path)
    assert len(warned) == 1
    assert frame["source"].tolist() == ["2.eml", "3.eml"]
    assert frame["body"].tolist()[1] == "Bonjour,\nmail 3"
    broken = frame.attrs["broken"]
    assert [(item["row"], item["source"]) for item in broken] == [
        (None, "1.eml"),
        (0, "2.eml"),
        (None, "4.eml"),
    ]
    assert "it is empty" in broken[0]["problem"]
    assert "can't be read (No such file" in broken[2]["problem"]


def test_memory_is_for_the_longest_mail_and_not_for_the_file(tmp_path):
    message = mail(1)
    message.add_attachment(b"x" * 100_000, maintype="application", subtype="pdf", filename="a.pdf")
    raw = POSTMARK + message.as_bytes() + b"\n"
    (tmp_path / "inbox").write_bytes(raw * 40)  # 5 MB
    tracemalloc.start()
    frame = read_mailbox(tmp_path / "inbox")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(frame) == 40
    assert set(map(tuple, frame["attachments"])) == {("a.pdf",)}
    assert peak < 12 * len(raw)


def test_a_thread_of_ten_thousand_lines(tmp_path):
    body = "".join(f"{'> ' * (n % 40)}ligne {n}\n" for n in range(10_000))
    (tmp_path / "inbox").write_bytes(POSTMARK + b"From: a@example.org\n\n" + body.encode() + b"\n")
    frame = read_mailbox(tmp_path / "inbox")
    assert frame["body"].iloc[0] == body.strip()
    assert len(EmailCleaner().transform(frame)) == 1


def test_the_frame_goes_into_a_pipeline(tmp_path):
    words = ["facture", "colis"] * 4
    raw = b"".join(POSTMARK + mail(n, f"Mon {w} ?").as_bytes() + b"\n" for n, w in enumerate(words))
    (tmp_path / "inbox").write_bytes(raw)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = read_mailbox(tmp_path / "inbox")
        router = make_pipeline(EmailCleaner(), tfidf_svm()).fit(frame, words)
    assert router.predict(frame).tolist() == words
