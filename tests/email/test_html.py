"""HTML bodies."""

import pytest

from sktransformer.email import EmailCleaner
from sktransformer.email._html import looks_like_html


def clean(text, **parameters):
    return EmailCleaner(**parameters).transform([text])[0]


def pieces(text):
    return [(piece.kind, piece.text) for piece in EmailCleaner().explain(text)]


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("<!DOCTYPE html><html><body>x</body></html>", True),
        ("  \n<div>x</div>", True),
        ("Bonjour,<br>merci<br/>", True),
        ("Bonjour <b>vous</b>, <i>merci</i>", True),
        ("Bonjour, la balise <br> coupe.", False),
        ("Paul <paul@example.org> et <https://example.org>", False),
        ("a < b > c </ d >", False),
        ("x" * 1000, False),
    ],
)
def test_what_counts_as_html(text, html):
    assert looks_like_html(text) is html


def test_blocks_become_lines_and_entities_characters():
    text = (
        "<p>Prix&nbsp;:\n  12&nbsp;&euro;</p><ul><li>un</li><li>deux</li></ul>"
        "<table><tr><td>a</td><td>b</td></tr></table>fin"
    )
    assert clean(text) == "Prix : 12 €\n\n- un\n- deux\n\na b\n\nfin"


def test_words_over_inline_tags_stay_whole():
    assert clean("<div>fac<b>tu</b>re <i>12</i></div>") == "facture 12"


def test_what_is_not_shown_goes_and_is_reported():
    text = (
        "<html><head><title>T</title><style>p{}</style></head>"
        "<body><!-- c --><script>s()</script><p>Oui.</p></body></html>"
    )
    assert clean(text) == "Oui."
    assert pieces(text) == [
        ("html", "<title>T</title>"),
        ("html", "<style>p{}</style>"),
        ("html", "<!-- c -->"),
        ("html", "<script>s()</script>"),
    ]


def test_a_downlevel_revealed_comment_hides_only_itself():
    assert clean("<div><![if !mso]>Oui.<![endif]></div>") == "Oui."


@pytest.mark.parametrize(
    "wrapper",
    [
        '<blockquote type="cite">{}</blockquote>',
        '<div class="gmail_quote gmail_quote_container">{}</div>',
        '<div class="x_gmail_quote">{}</div>',
        '<div class="moz-cite-prefix">{}</div>',
        '<div id="ydp12yahoo_quoted_4" class="ydp12">{}</div>',
        '<div class="protonmail_quote"><div>{}</div></div>',
    ],
)
def test_wrapped_quote_and_an_answer_below_it(wrapper):
    quote = wrapper.format("ancien<div>encore</div>")
    text = f"<div>Avant.</div>{quote}<div>Après.</div>"
    assert " ".join(clean(text).split()) == "Avant. Après."
    ((kind, piece),) = pieces(text)
    assert kind == "quote"
    assert piece.startswith("ancien")
    assert "encore" in piece
    assert clean(text, keep_quotes=True).split() == ["Avant.", "ancien", "encore", "Après."]


@pytest.mark.parametrize(
    "mark", ['<div id="divRplyFwdMsg">', '<div id="x_x_divRplyFwdMsg">', '<hr id="zwchr"><p>']
)
def test_everything_below_a_mark_is_old(mark):
    text = f"<div>Oui.</div>{mark}<b>Fra:</b> X<br><b>Sendt:</b> 3. mars</div><div>ancien</div>"
    assert clean(text) == "Oui."
    assert [kind for kind, _ in pieces(text)] == ["quote"]


def test_below_a_mark_without_anything_above_is_the_message():
    text = '<div id="divRplyFwdMsg"><b>De :</b> X<br><b>Objet :</b> truc</div><div>Mon toit fuit.</div>'
    assert clean(text) == "Mon toit fuit."
    assert [kind for kind, _ in pieces(text)] == ["header"]


def test_a_forward_inside_a_wrapper_is_the_message():
    text = (
        '<div dir="ltr"><br></div><div class="gmail_quote"><div class="gmail_attr">'
        "---------- Forwarded message ---------<br>De : <b>X</b> &lt;x@y.fr&gt;<br>Objet : truc<br></div><br>"
        "Mon toit fuit.</div>"
    )
    assert clean(text) == "Mon toit fuit."


def test_indented_text_is_no_quote():
    text = (
        '<div>Avant.</div><blockquote style="margin:0 0 0 40px;border:none;padding:0px">Retrait.</blockquote>'
    )
    assert clean(text) == "Avant.\n\nRetrait."


@pytest.mark.parametrize("name", ["gmail_signature", "moz-signature", "ydp7signature"])
def test_wrapped_signature(name):
    text = f'<div>Oui.</div><div class="{name}">laurence<br>01</div>'
    assert clean(text) == "Oui."
    assert pieces(text) == [("signature", "laurence<br>01")]


def test_preformatted_lines_have_their_own_places():
    text = "<pre>Oui.\n\n-- \nJean &amp; Co\n</pre>"
    assert clean(text) == "Oui."
    assert pieces(text) == [("signature", "-- \nJean &amp; Co")]


def test_plain_text_rules_hold_for_html_lines():
    text = "<p>Je résilie.</p><p>Cordialement,<br>Jean</p><p>Envoyé de mon iPhone</p>"
    assert clean(text) == "Je résilie."
    assert [kind for kind, _ in pieces(text)] == ["signature", "footer"]


@pytest.mark.parametrize(
    "text", ['<html><body><img src="cid:1"></body></html>', "<div><br></div>", "<p>", "<!-- x --><br><br>"]
)
def test_markup_that_shows_nothing_stays_as_it_is(text):
    assert clean(text) == text
    assert pieces(text) == []


def test_a_tag_cut_off_at_the_end_is_not_shown():
    assert clean('<div>Oui.</div><img src="data:image/png;base64,AAAA') == "Oui."


def test_too_many_tags_are_stripped_without_parsing():
    text = "<div>Oui&nbsp;: <b>12</b></div><br>" + "<i></i>" * 60_000 + "<p>Cordialement,<br>Jean</p>"
    assert " ".join(clean(text).split()) == "Oui : 12"
    piece = EmailCleaner().explain(text)[-1]
    assert (piece.kind, piece.text) == ("signature", "Cordialement,<br>Jean")
