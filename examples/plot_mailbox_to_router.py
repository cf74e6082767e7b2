"""
From a mailbox to ``router.joblib``
===================================

A mailbox becomes a frame, the frame goes through a pipeline that cleans, tells the languages apart and classifies, and
what is fitted goes into a file that a server loads without a network. There is no Transformer here, so that the page is
built in seconds; one takes the place of :func:`~sktransformer.tfidf_svm` in the same line.
"""

# %%
# A mailbox
# ---------
# In real life it is there already: an mbox that a mail program exports, a Maildir, or a folder of .eml files. This one
# is made of the sample inbox, with the labels where Gmail's export has them.

import mailbox
import tempfile
from email.message import EmailMessage
from pathlib import Path

from sktransformer import load_french_emails

scratch = tempfile.TemporaryDirectory()
folder = Path(scratch.name)
inbox = mailbox.mbox(folder / "inbox.mbox")
for mail in load_french_emails(subset="train").frame.itertuples():
    message = EmailMessage()
    message["From"], message["Date"], message["Subject"] = (
        mail.sender,
        mail.date.to_pydatetime(),
        mail.subject,
    )
    message["X-Gmail-Labels"] = mail.label
    html = mail.body.lstrip().startswith("<")
    message.set_content(mail.body, subtype="html" if html else "plain")
    inbox.add(message)
inbox.close()

# %%
# The frame
# ---------
# One row a mail. What is broken is listed in ``mails.attrs["broken"]``, and a warning gives the number.

from sktransformer import read_mailbox

mails = read_mailbox(folder / "inbox.mbox", headers=["X-Gmail-Labels"])
print(mails[["date", "sender", "subject", "X-Gmail-Labels"]].tail(3).to_string(index=False))

# %%
# The router
# ----------
# French mails get a classifier of their own; the few in other languages go to one that has learned from all.

from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from sktransformer import EmailCleaner, LanguageRouter, tfidf_svm

X, y = mails[["subject", "body"]], mails["X-Gmail-Labels"]
router = make_pipeline(EmailCleaner(), LanguageRouter({"fr": tfidf_svm()}, fallback=tfidf_svm()))
print(f"macro-F1: {cross_val_score(router, X, y, cv=3, scoring='f1_macro').mean():.2f}")
router.fit(X, y)
print(router[-1].routing_)

# %%
# The file
# --------
# What was fitted is a scikit-learn pipeline, and joblib stores it. It takes the frame of a mailbox as it was read.

import joblib

joblib.dump(router, folder / "router.joblib")
print(joblib.load(folder / "router.joblib").predict(mails[["subject", "body"]].head(3)))
scratch.cleanup()
