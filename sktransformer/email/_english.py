"""English."""

from ._language import DEVICES, Language, phrases

# What one thanks for or waits for without saying more.
_WANTED = (
    r"your (?:(?:prompt|quick|kind|early|swift|continued) )?(?:reply|response|help|assistance|attention|time|support"
    r"|understanding|feedback|answer|cooperation|consideration|patience)"
)
_MUCH = r"(?: (?:again|so much|very much|a lot|in advance))"

ENGLISH = Language(
    openers=phrases("on"),
    dates=phrases(
        """
        mon, tue, wed, thu, fri, sat, sun, jan, feb, mar, apr, may, jun, jul, aug, sep, oct, nov, dec
        """
    ),
    months=phrases("jan, feb, mar, apr, may, jun, jul, aug, sep, oct, nov, dec"),
    end_verbs=phrases("wrote, writes, has written"),
    pronouns=phrases("he, she, i, we, they, who, it"),
    keys={
        "from": phrases("from"),
        "sent": phrases("sent, sent on, received"),
        "date": phrases("date"),
        "to": phrases("to"),
        "cc": phrases("cc, bcc"),
        "subject": phrases("subject"),
        "other": phrases("reply-to, reply to, importance, priority, attachments, organization"),
    },
    separators=phrases(
        """
        original message, forwarded message, forwarded by, original mail, original email, reply message
        """
    ),
    bare_separators=phrases("begin forwarded message, start of forwarded message"),
    closings=phrases(
        """
        regards, best regards, kind regards, kindest regards, warm regards, warmest regards, rgds, with kind
        regards, with best regards, many regards, best, best wishes, with best wishes, all the best,
        sincerely, sincerely yours, yours sincerely, yours faithfully, yours truly, yours, respectfully,
        cordially, cheers, kr, br, have a nice day, have a great day, talk soon, take care, warmly
        """
    ),
    thanks=phrases(
        """
        thanks, thank you, many thanks, thanks in advance, thank you in advance, thanks again, thx, with
        thanks, thanks a lot, thank you very much
        """
    ),
    courtesy_openings=phrases("please accept, i remain, assuring you, looking forward"),
    courtesy_patterns=(r"\b(?:kind|best|warm) regards\b", r"yours (?:sincerely|faithfully|truly)"),
    courtesy_lines=(
        rf"(?:(?:i|we) look|(?:i am |i'm |we are |we're )?looking) forward to "
        rf"(?:hearing (?:back )?from you(?: soon| shortly)?|{_WANTED})",
        rf"(?:i am |we are )?awaiting {_WANTED}",
        r"(?:i|we) remain at your disposal",
        rf"(?:many thanks|thanks|thank you|i thank you){_MUCH}?(?: for {_WANTED})?{_MUCH}?",
    ),
    courtesy_leads=phrases("i, we, looking, awaiting, many, thanks, thank"),
    postscripts=phrases("ps, p.s, nb, n.b, encl, enclosure, attachment"),
    greetings=phrases("hi, hello, hey, dear, good morning, good afternoon"),
    sentence_openings=phrases(
        """
        i, i'm, i've, i'd, we, you, please, could, can, would, thanks, thank, my, if, when, how, why, what,
        sorry, hello, dear, this, it
        """
    ),
    company_words=phrases("registered in, registered office, company number, vat no, vat number "),
    footer_patterns=(
        rf"sent (?:from|via|with|using|by) (?=[^,;]*\b(?:{DEVICES})\b)[^,;?.]{{1,60}}\.?",
        r"get (?:outlook|yahoo mail|gmail|bluemail) for [^,;?]{1,40}",
    ),
    loose_footer_patterns=(r"sent from (?:my|an?) [^,;?.]{1,40}",),
    notice_patterns=(
        r"please (?:consider|think of|think about) the environment",
        r"please don't print",
        r"save a tree",
        r"(?:this (?:e-?mail|message) (?:has been|was|is)[^.]{0,50}|virus-free)(?:virus|avast|scanned|www\.)",
        r"virus-free\b",
        r"scanned by\b",
    ),
    legal_openings=(
        r"(?:this|the|any) (?:e-?mail|message|communication|transmission|electronic)\b",
        r"the (?:information|contents?) (?:contained|transmitted|in this)",
        r"if you (?:are not|have received|received|receive) ",
        r"confidentiality\b",
        r"disclaimer\b",
        r"(?:legal|privacy|important) notice\b",
        r"privileged\b",
        r"any (?:unauthori|disclosure|dissemination|use)",
    ),
    legal_core=phrases("confidential, intended, recipient, addressee, privileged"),
    legal_stems=phrases(
        """
        in error, delete, sender, attachment, disclos, unauthori, prohibited, liab, solely, distribut,
        copying, dissemina, virus, notify
        """
    ),
    banner_patterns=(
        r"originated (?:from )?outside",
        r"outside (?:of )?(?:your|the|our) organi[sz]ation",
        r"external (?:sender|e-?mail|source)",
        r"do not click",
        r"you don't often get email from",
        r"who received this message don't often get email",
        r"\[external\]\W*$",
        r"external\W*$",
    ),
    reply_prefixes=phrases("re, fwd, fw"),
)
