"""What one language's mail programs and users write around a message."""

from dataclasses import dataclass, field


def phrases(text: str) -> tuple[str, ...]:
    """The phrases of a list with commas, blanks and line ends around them taken off."""
    return tuple(" ".join(phrase.split()) for phrase in text.split(","))


@dataclass(frozen=True)
class Language:
    """The words of one language that mark quotes, headers, signatures and disclaimers."""

    openers: tuple[str, ...]
    """First words of an attribution line: "le", "on"."""
    dates: tuple[str, ...]
    """Stems of the week days, and of months where they come before the day."""
    months: tuple[str, ...]
    """Stems of the months."""
    end_verbs: tuple[str, ...]
    """Verbs that end an attribution line: "a écrit", "wrote"."""
    pronouns: tuple[str, ...] = ()
    """Words before those verbs that show them to be part of a sentence: "il a écrit"."""
    middle_verbs: tuple[str, ...] = ()
    """Verbs that the sender's name follows: "schrieb"."""
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Header keys by role: from, sent, date, to, cc, subject, other."""
    separators: tuple[str, ...] = ()
    """Words between dashes: "message d'origine"."""
    bare_separators: tuple[str, ...] = ()
    """Separator lines that need no dashes: "début du message transféré"."""
    closings: tuple[str, ...] = ()
    """Formulas that end a letter and fill a line."""
    thanks: tuple[str, ...] = ()
    """What may stand beside a closing on its line, but is no closing alone."""
    courtesy_openings: tuple[str, ...] = ()
    """First words of the long formulas: "veuillez agréer"."""
    courtesy_patterns: tuple[str, ...] = ()
    """What a long formula must hold somewhere: "salutations"."""
    courtesy_lines: tuple[str, ...] = ()
    """Patterns of short courtesies above a closing, which say nothing else: "dans l'attente de vous lire"."""
    courtesy_leads: tuple[str, ...] = ()
    """The first words of those."""
    postscripts: tuple[str, ...] = ()
    """Marks of text that comes back after a signature: "ps", "pj"."""
    sentence_openings: tuple[str, ...] = ()
    """First words of a sentence somebody wrote, never of a signature: "je", "please"."""
    greetings: tuple[str, ...] = ()
    """First words of a message: nobody writes them a second time below what their phone adds."""
    company_words: tuple[str, ...] = ()
    """Words of the legal line of a company's signature."""
    footer_patterns: tuple[str, ...] = ()
    """Whole lines that a phone or a program adds."""
    loose_footer_patterns: tuple[str, ...] = ()
    """The same without a known device: only believed when alone in their paragraph."""
    notice_patterns: tuple[str, ...] = ()
    """Starts of lines that are enough for a disclaimer: printing, virus scans."""
    legal_openings: tuple[str, ...] = ()
    """Patterns of starts of a legal notice, which also needs several of the stems below."""
    legal_core: tuple[str, ...] = ()
    """Stems that hardly occur outside legal notices: "confidenti"."""
    legal_stems: tuple[str, ...] = ()
    """Other stems of legal notices: "par erreur"."""
    banner_patterns: tuple[str, ...] = ()
    """Warnings that a gateway puts on top of outside mail."""
    reply_prefixes: tuple[str, ...] = ()
    """What mail programs put before a subject: "re", "tr"."""


# Devices, mail programs and providers, as a pattern: what a line such as "Sent from my iPhone" is
# recognised by.
DEVICES = (
    r"iphone|ipad|ipod|samsung|galaxy|android|huawei|xiaomi|redmi|oppo|honor|pixel|nokia|sony|xperia|wiko|motorola|"
    r"blackberry|smartphone|mobile|t[ée]l[ée]phone|handy|telefon\w*|m[óo]vil|celular|cellulare|portable|tablette?|"
    r"appareil|outlook|yahoo|gmail|orange|sfr|laposte|bouygues|e?-?mail|messagerie|courrier|proton\w*|thunderbird|"
    r"windows|bluemail|typeapp|hotmail|ios|macbook|zimbra|webmail|spark|newton|appli\w*|app|ordinateur|gmx|web\.de"
)
