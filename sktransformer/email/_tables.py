"""What mail programs and their users write around a message, one entry a language.

Everything is lower case and normalised (see :mod:`._normalise`): straight apostrophes, plain blanks, composed
accents. Words that may lose their accents ("ecrit", "envoye") are listed twice. Adding a language means adding one
:class:`Language` to :data:`LANGUAGES`; the patterns are built from the union of all of them, because one thread
often mixes languages. Fields whose name ends in ``patterns`` hold regular expressions, all others plain words.
"""

from dataclasses import dataclass, field


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
    postscripts: tuple[str, ...] = ()
    """Marks of text that comes back after a signature: "ps", "pj"."""
    sentence_openings: tuple[str, ...] = ()
    """First words of a sentence somebody wrote, never of a signature: "je", "please"."""
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


_DEVICES = (
    r"iphone|ipad|ipod|samsung|galaxy|android|huawei|xiaomi|redmi|oppo|honor|pixel|nokia|sony|xperia|wiko|motorola|"
    r"blackberry|smartphone|mobile|t[ée]l[ée]phone|handy|telefon\w*|m[óo]vil|celular|cellulare|portable|tablette?|"
    r"appareil|outlook|yahoo|gmail|orange|sfr|laposte|bouygues|e?-?mail|messagerie|courrier|proton\w*|thunderbird|"
    r"windows|bluemail|typeapp|hotmail|ios|macbook|zimbra|webmail|spark|newton|appli\w*|app|ordinateur|gmx|web\.de"
)

FRENCH = Language(
    openers=("le", "en date de", "en date du"),
    dates=("lun", "mar", "mer", "jeu", "ven", "sam", "dim"),
    months=("janv", "jan", "fév", "fev", "mars", "avr", "mai", "juin", "juil", "août", "aout", "sep", "oct", "nov", "déc", "dec"),
    end_verbs=("a écrit", "à écrit", "a ecrit", "avez écrit"),
    pronouns=("il", "elle", "on", "ils", "elles", "qui", "y", "lui", "nous"),
    keys={
        "from": ("de", "de la part de", "expéditeur", "expediteur"),
        "sent": ("envoyé", "envoye", "envoyé le", "envoye le", "envoyée", "envoyé à", "date d'envoi", "reçu le"),
        "date": ("date", "message du"),
        "to": ("à", "a", "pour", "destinataire", "destinataires"),
        "cc": ("cc", "cci", "ccn", "copie", "copie à", "copie a", "copies", "copie cachée"),
        "subject": ("objet", "sujet"),
        "other": ("répondre à", "importance", "priorité", "pièces jointes", "pièce jointe", "pj", "organisation"),
    },
    separators=(
        "message d'origine", "message original", "message initial", "courriel original", "courriel d'origine",
        "mail original", "mail d'origine", "e-mail d'origine", "message transféré", "message transfere",
        "message réexpédié", "mail transféré", "courriel transféré", "transféré par", "réexpédié par",
        "réponse au message", "fin du message d'origine",
    ),
    bare_separators=("début du message transféré", "début du message réexpédié", "message transféré"),
    closings=(
        "cordialement", "bien cordialement", "très cordialement", "tres cordialement", "cordialement vôtre",
        "cordialement votre", "bien cordialement à vous", "cordialement à vous", "cordlt", "cordlmt", "cordialt",
        "cdlt", "cdt", "cdlmt", "cldt", "bien cdlt", "bien à vous", "bien a vous", "bien à toi", "bien vôtre",
        "très sincèrement", "sincèrement", "sincerement", "sincèrement vôtre", "respectueusement",
        "très respectueusement", "amicalement", "bien amicalement", "amitiés", "chaleureusement", "courtoisement",
        "salutations", "sincères salutations", "sinceres salutations", "salutations distinguées",
        "salutations distinguees", "cordiales salutations", "salutations cordiales", "salutations sincères",
        "meilleures salutations", "mes salutations", "mes salutations distinguées", "mes sincères salutations",
        "mes salutations les meilleures", "avec mes salutations", "avec mes meilleures salutations",
        "avec mes salutations distinguées", "avec nos salutations", "sentiments distingués", "à bientôt",
        "a bientot", "à très bientôt", "bonne journée", "bonne journee", "très bonne journée", "belle journée",
        "bonne fin de journée", "bonne soirée", "bonne soiree", "belle soirée", "bonne après-midi",
        "bon après-midi", "bon week-end", "bon weekend", "bonne semaine", "bonne réception", "bonne reception",
        "bonne fin de semaine", "bonne journée à vous", "bien respectueusement", "cordialement bonne journée",
        "avec mes remerciements",
    ),
    thanks=(
        "merci", "merci d'avance", "merci par avance", "merci beaucoup", "un grand merci", "encore merci",
        "merci encore", "merci bien", "avec mes remerciements", "en vous remerciant", "bonne réception",
        "merci à vous",
    ),
    courtesy_openings=(
        "veuillez", "je vous prie", "nous vous prions", "vous priant", "je vous prierai", "je vous prierais",
        "en vous priant", "recevez", "agréez", "agreez", "croyez", "je vous adresse", "nous vous adressons",
        "dans l'attente", "dans cette attente", "en attendant", "en attente", "restant à", "en vous remerciant",
        "vous remerciant", "vous en remerciant", "par avance", "avec mes remerciements", "merci de croire",
        "merci d'agréer", "daignez",
    ),
    courtesy_patterns=(
        r"salutations\b", r"sentiments\b", r"l'expression de\b", r"\bconsid[ée]ration", r"hommages\b",
    ),
    postscripts=(
        "ps", "p.s", "p.-s", "p-s", "post-scriptum", "post scriptum", "nb", "n.b", "pj", "p.j", "pièce jointe",
        "pièces jointes", "piece jointe", "pieces jointes",
    ),
    sentence_openings=(
        "je", "j'ai", "j'avais", "j'attends", "j'aimerais", "j'espère", "nous", "vous", "merci", "pouvez-vous",
        "pourriez-vous", "pourrais-je", "puis-je", "est-ce", "c'est", "il", "elle", "on", "mon", "ma", "mes", "ce",
        "cette", "si", "quand", "comment", "pourquoi", "désolé", "désolée", "bonjour",
    ),
    company_words=(
        "capital de", "rcs", "r.c.s", "siret", "siren", "siège social", "tva", "orias", "immatriculé", "code ape",
    ),
    footer_patterns=(
        rf"(?:(?:e-?mail|message|courriel|mail) )?envoyée? (?:de|d'|depuis|à partir d|a partir d|avec|via|sur|par l'app)"
        rf"(?=[^,;]*\b(?:{_DEVICES})\b)[^,;?]{{1,80}}",
        r"(?:obtenez|obtenir|t[ée]l[ée]chargez|t[ée]l[ée]charger|d[ée]couvrez) (?:l'app\w* )?"
        r"(?:outlook|yahoo|gmail|orange|bluemail|proton)[^,;?]{0,60}",
        r"provenance : [^,;?]{1,60}",
    ),
    loose_footer_patterns=(r"envoyée? de(?:puis)? (?:mon|ma|mes) [^,;?.]{1,40}",),
    notice_patterns=(
        r"pensez à l'environnement", r"pensez environnement", r"avant d'imprimer", r"n'imprime[zr] ce",
        r"n'imprimez que", r"merci de n'imprimer", r"merci de penser à l'environnement", r"préservons l'environnement",
        r"adoptons? l'éco", r"adoptez l'éco", r"afin de (?:contribuer au respect|préserver) (?:de )?l'environnement",
        r"devez-vous vraiment imprimer", r"l'absence de virus", r"garanti sans virus", r"sans virus\b.{0,20}\bavast",
        r"ce[t]? (?:e-?mail|courriel|message|courrier électronique|mail) (?:a été|ne contient|est garanti)"
        r"[^.]{0,60}(?:virus|antivirus|avast)",
        r"(?:- )?ce message (?:a été )?(?:traité|analysé|vérifié) par",
    ),
    legal_openings=(
        r"(?:ce|cet|le présent|les présents?|tout) (?:message|mail|e-?mail|courriel|courrier électronique|m[ée]l)\b",
        r"(?:les |l')informations? (?:contenues?|figurant|transmises?|véhiculées?) dans",
        r"si vous (?:recevez|avez reçu|n'êtes pas|n'etes pas|n'en êtes pas)",
        r"au cas où ce (?:message|mail|courriel)",
        r"toute (?:utilisation|diffusion|publication|divulgation|copie|reproduction|modification)",
        r"(?:avertissement|avis|clause|mention|note)s? (?:de |légale|l[ée]gal|juridique|importante?)",
        r"confidentialité\b", r"(?:message )?confidentiel\b", r"l'intégrité d",
        r"(?:l'expéditeur|notre société|la société|[\w' -]{2,30}) (?:décline|ne (?:peut|saurait))",
    ),
    legal_core=("confidenti", "destinataire", "privilégi", "secret profession"),
    legal_stems=(
        "par erreur", "détrui", "supprim", "expéditeur", "pièces jointes", "joints", "toute utilisation",
        "toute diffusion", "utilisation non", "toute publication", "interdit", "intégrité", "altér", "falsifi",
        "exclusif", "exclusive", "responsabilité", "non autorisé", "strictement", "sécurité", "décline", "divulg",
    ),
    banner_patterns=(
        r"(?:provient|vient|émane|a été envoyé) (?:de l'|d'un |d'une )(?:extérieur|expéditeur|adresse ext|source ext)",
        r"expéditeur (?:est )?(?:externe|inconnu)", r"ne cliquez pas", r"n'ouvrez pas les pièces",
        r"vous n'obtenez pas souvent d'e-mail", r"vous ne recevez pas souvent de courriers?", r"(?:message|mail|e-mail) externe\W*$",
        r"\[(?:externe?|ext)\]\W*$",
    ),
    reply_prefixes=("re", "ré", "rép", "tr", "fwd", "fw"),
)

ENGLISH = Language(
    openers=("on",),
    dates=(
        "mon", "tue", "wed", "thu", "fri", "sat", "sun", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep",
        "oct", "nov", "dec",
    ),
    months=("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    end_verbs=("wrote", "writes", "has written"),
    pronouns=("he", "she", "i", "we", "they", "who", "it"),
    keys={
        "from": ("from",),
        "sent": ("sent", "sent on", "received"),
        "date": ("date",),
        "to": ("to",),
        "cc": ("cc", "bcc"),
        "subject": ("subject",),
        "other": ("reply-to", "reply to", "importance", "priority", "attachments", "organization"),
    },
    separators=(
        "original message", "forwarded message", "forwarded by", "original mail", "original email", "reply message",
    ),
    bare_separators=("begin forwarded message", "start of forwarded message"),
    closings=(
        "regards", "best regards", "kind regards", "kindest regards", "warm regards", "warmest regards", "rgds",
        "with kind regards", "with best regards", "many regards", "best", "best wishes", "with best wishes",
        "all the best", "sincerely", "sincerely yours", "yours sincerely", "yours faithfully", "yours truly",
        "yours", "respectfully", "cordially", "cheers", "kr", "br", "have a nice day", "have a great day",
        "talk soon", "take care", "warmly",
    ),
    thanks=(
        "thanks", "thank you", "many thanks", "thanks in advance", "thank you in advance", "thanks again", "thx",
        "with thanks", "thanks a lot", "thank you very much",
    ),
    courtesy_openings=("please accept", "i remain", "assuring you", "looking forward"),
    courtesy_patterns=(r"\b(?:kind|best|warm) regards\b", r"yours (?:sincerely|faithfully|truly)"),
    postscripts=("ps", "p.s", "nb", "n.b", "encl", "enclosure", "attachment"),
    sentence_openings=(
        "i", "i'm", "i've", "i'd", "we", "you", "please", "could", "can", "would", "thanks", "thank", "my", "if",
        "when", "how", "why", "what", "sorry", "hello", "dear", "this", "it",
    ),
    company_words=("registered in", "registered office", "company number", "vat "),
    footer_patterns=(
        rf"sent (?:from|via|with|using|by) (?=[^,;]*\b(?:{_DEVICES})\b)[^,;?.]{{1,60}}\.?",
        r"get (?:outlook|yahoo mail|gmail|bluemail) for [^,;?]{1,40}",
    ),
    loose_footer_patterns=(r"sent from (?:my|an?) [^,;?.]{1,40}",),
    notice_patterns=(
        r"please (?:consider|think of|think about) the environment", r"please don't print", r"save a tree",
        r"(?:this (?:e-?mail|message) (?:has been|was|is)[^.]{0,50}|virus-free)(?:virus|avast|scanned|www\.)",
        r"virus-free\b", r"scanned by\b",
    ),
    legal_openings=(
        r"(?:this|the|any) (?:e-?mail|message|communication|transmission|electronic)\b",
        r"the (?:information|contents?) (?:contained|transmitted|in this)",
        r"if you (?:are not|have received|received|receive) ", r"confidentiality\b", r"disclaimer\b",
        r"(?:legal|privacy|important) notice\b", r"privileged\b", r"any (?:unauthori|disclosure|dissemination|use)",
    ),
    legal_core=("confidential", "intended", "recipient", "addressee", "privileged"),
    legal_stems=(
        "in error", "delete", "sender", "attachment", "disclos", "unauthori", "prohibited", "liab", "solely",
        "distribut", "copying", "dissemina", "virus", "notify",
    ),
    banner_patterns=(
        r"originated (?:from )?outside", r"outside (?:of )?(?:your|the|our) organi[sz]ation", r"external (?:sender|e-?mail|source)",
        r"do not click", r"you don't often get email from", r"who received this message don't often get email",
        r"\[external\]\W*$", r"external\W*$",
    ),
    reply_prefixes=("re", "fwd", "fw"),
)

GERMAN = Language(
    openers=("am",),
    dates=("mo", "di", "mi", "do", "fr", "sa", "so"),
    months=("jan", "feb", "mär", "mrz", "apr", "mai", "jun", "jul", "aug", "sep", "okt", "nov", "dez"),
    end_verbs=("geschrieben",),
    middle_verbs=("schrieb",),
    keys={
        "from": ("von",), "sent": ("gesendet",), "date": ("datum",), "to": ("an",), "cc": ("kopie",),
        "subject": ("betreff",), "other": ("antwort an", "wichtigkeit", "anlagen"),
    },
    separators=("ursprüngliche nachricht", "originalnachricht", "original-nachricht", "weitergeleitete nachricht"),
    bare_separators=("anfang der weitergeleiteten nachricht", "anfang der weitergeleiteten e-mail"),
    closings=(
        "mit freundlichen grüßen", "mit freundlichen gruessen", "mit freundlichem gruß", "freundliche grüße", "mfg",
        "viele grüße", "beste grüße", "liebe grüße", "herzliche grüße", "schöne grüße", "mit besten grüßen", "vg", "lg",
        "hochachtungsvoll", "gruß",
    ),
    thanks=("danke", "vielen dank", "besten dank", "danke im voraus", "vielen dank im voraus"),
    postscripts=("ps", "p.s", "anlage", "anlagen"),
    sentence_openings=("ich", "wir", "sie", "bitte", "können", "könnten", "mein", "meine", "danke", "wenn", "es"),
    company_words=("amtsgericht", "geschäftsführer", "handelsregister", "ust-id"),
    footer_patterns=(
        rf"(?:von meinem|gesendet (?:von|mit|aus|über)) (?=[^,;]*\b(?:{_DEVICES})\b)[^,;?]{{1,60}}",
        r"outlook für (?:ios|android)[^,;?]{0,30}",
    ),
    notice_patterns=(r"bitte (?:denken|prüfen) sie.{0,40}(?:umwelt|ausdruck)",),
    legal_openings=(r"(?:diese|die) (?:e-?mail|nachricht|information)", r"wenn sie nicht der"),
    legal_core=("vertraulich", "adressat", "empfänger"),
    legal_stems=("irrtümlich", "vernichten", "absender", "unbefugt", "nicht gestattet", "anhänge"),
    reply_prefixes=("aw", "wg"),
)

SPANISH = Language(
    openers=("el", "el día", "con fecha"),
    dates=("lun", "mar", "mié", "mie", "jue", "vie", "sáb", "sab", "dom"),
    months=("ene", "feb", "mar", "abr", "may", "jun", "jul", "ago", "sep", "oct", "nov", "dic"),
    end_verbs=("escribió", "escribio", "ha escrito"),
    keys={
        "from": ("de",), "sent": ("enviado", "enviado el"), "date": ("fecha",), "to": ("para",), "cc": ("cco",),
        "subject": ("asunto",), "other": ("responder a", "importancia", "datos adjuntos"),
    },
    separators=("mensaje original", "mensaje reenviado", "correo original"),
    bare_separators=("inicio del mensaje reenviado",),
    closings=(
        "saludos", "un saludo", "saludos cordiales", "un cordial saludo", "cordialmente", "atentamente",
        "muy atentamente", "saludos atentos", "un abrazo", "le saluda atentamente", "cordiales saludos",
    ),
    thanks=("gracias", "muchas gracias", "gracias de antemano", "mil gracias"),
    postscripts=("pd", "p.d"),
    sentence_openings=("yo", "nosotros", "por favor", "puede", "podría", "podrían", "mi", "no", "gracias", "quiero"),
    footer_patterns=(rf"enviado (?:desde|con|a través de) (?=[^,;]*\b(?:{_DEVICES})\b)[^,;?]{{1,60}}",),
    notice_patterns=(r"antes de imprimir",),
    legal_openings=(r"este (?:mensaje|correo)", r"la información contenida", r"si (?:usted )?no es el destinatario"),
    legal_core=("confidencial", "destinatario"),
    legal_stems=("por error", "elimin", "remitente", "adjunt", "prohib", "exclusiv"),
    reply_prefixes=("rv", "rm"),
)

ITALIAN = Language(
    openers=("il", "il giorno", "in data"),
    dates=("lun", "mar", "mer", "gio", "ven", "sab", "dom"),
    months=("gen", "feb", "mar", "apr", "mag", "giu", "lug", "ago", "set", "ott", "nov", "dic"),
    end_verbs=("ha scritto", "scrive", "scriveva"),
    keys={
        "from": ("da",), "sent": ("inviato", "inviata"), "date": ("data",), "to": ("a",), "cc": ("ccn",),
        "subject": ("oggetto",), "other": ("rispondi a", "priorità", "allegati"),
    },
    separators=("messaggio originale", "messaggio inoltrato", "messaggio originario"),
    bare_separators=("inizio messaggio inoltrato",),
    closings=(
        "cordiali saluti", "distinti saluti", "cordialmente", "saluti", "un saluto", "cordialità", "a presto",
        "un cordiale saluto", "i miei più cordiali saluti", "buona giornata",
    ),
    thanks=("grazie", "grazie mille", "grazie in anticipo", "molte grazie"),
    sentence_openings=("io", "noi", "vorrei", "potete", "può", "per favore", "non", "il mio", "grazie", "ho"),
    footer_patterns=(
        rf"inviato (?:da|dal|dalla|con|tramite) (?=[^,;]*\b(?:{_DEVICES})\b)[^,;?]{{1,60}}",
    ),
    notice_patterns=(r"prima di stampare",),
    legal_openings=(r"(?:le informazioni|il (?:presente )?messaggio|questo messaggio|questa e-?mail)",),
    legal_core=("riservat", "destinatari", "confidenzial"),
    legal_stems=("per errore", "cancellar", "mittente", "allegat", "vietat", "esclusiv"),
    reply_prefixes=("inoltro", "rif"),
)

DUTCH = Language(
    openers=("op",),
    dates=("ma", "di", "wo", "do", "vr", "za", "zo"),
    months=("jan", "feb", "mrt", "maart", "apr", "mei", "jun", "jul", "aug", "sep", "okt", "nov", "dec"),
    end_verbs=("geschreven",),
    middle_verbs=("schreef",),
    keys={
        "from": ("van",), "sent": ("verzonden",), "date": ("datum",), "to": ("aan",), "cc": ("bcc",),
        "subject": ("onderwerp",), "other": ("urgentie", "bijlagen"),
    },
    separators=("oorspronkelijk bericht", "doorgestuurd bericht", "origineel bericht"),
    bare_separators=("begin doorgestuurd bericht",),
    closings=(
        "met vriendelijke groet", "met vriendelijke groeten", "vriendelijke groet", "vriendelijke groeten", "groeten",
        "mvg", "hartelijke groet", "hartelijke groeten", "hoogachtend", "groet",
    ),
    thanks=("bedankt", "alvast bedankt", "dank u", "dank je"),
    sentence_openings=("ik", "wij", "we", "kunt", "graag", "mijn", "bedankt"),
    footer_patterns=(rf"verzonden (?:vanaf|vanuit|met|via) (?=[^,;]*\b(?:{_DEVICES})\b)[^,;?]{{1,60}}",),
    legal_openings=(r"(?:dit bericht|deze e-?mail|de informatie)",),
    legal_core=("vertrouwelijk", "geadresseerde"),
    legal_stems=("vergissing", "verwijderen", "afzender", "bijlage", "bestemd", "niet toegestaan"),
    reply_prefixes=("antw", "doorst", "betr"),
)

PORTUGUESE = Language(
    openers=("em", "no dia", "a"),
    dates=("seg", "ter", "qua", "qui", "sex", "sáb", "sab", "dom"),
    months=("jan", "fev", "mar", "abr", "mai", "jun", "jul", "ago", "set", "out", "nov", "dez"),
    end_verbs=("escreveu",),
    keys={
        "from": ("de",), "sent": ("enviado", "enviada", "enviado em", "enviada em"), "date": ("data",),
        "to": ("para",), "cc": ("cco",), "subject": ("assunto",), "other": ("anexos",),
    },
    separators=("mensagem original", "mensagem encaminhada", "mensagem reencaminhada"),
    bare_separators=("início da mensagem encaminhada", "início da mensagem reencaminhada"),
    closings=(
        "atenciosamente", "cumprimentos", "com os melhores cumprimentos", "melhores cumprimentos", "att",
        "cordialmente", "abraços", "um abraço", "saudações",
    ),
    thanks=("obrigado", "obrigada", "muito obrigado", "muito obrigada", "desde já obrigado"),
    sentence_openings=("eu", "nós", "por favor", "pode", "poderia", "meu", "minha", "não", "obrigado", "obrigada"),
    footer_patterns=(rf"enviado (?:do|de|a partir do|pelo) (?=[^,;]*\b(?:{_DEVICES})\b)[^,;?]{{1,60}}",),
    legal_openings=(r"esta (?:mensagem|comunicação)", r"as informações contidas"),
    legal_core=("confidencia", "destinatário"),
    legal_stems=("por engano", "elimin", "remetente", "anexo", "proibid", "exclusiv"),
    reply_prefixes=("enc", "res"),
)

LANGUAGES: dict[str, Language] = {
    "fr": FRENCH,
    "en": ENGLISH,
    "de": GERMAN,
    "es": SPANISH,
    "it": ITALIAN,
    "nl": DUTCH,
    "pt": PORTUGUESE,
}
"""The known languages by ISO 639-1 code."""


def collect(name: str) -> tuple[str, ...]:
    """All entries of one field over all languages, without repeats, in order."""
    return tuple(dict.fromkeys(word for language in LANGUAGES.values() for word in getattr(language, name)))


def collect_keys() -> dict[str, str]:
    """Header key to role over all languages; the first language that knows a key decides its role."""
    roles: dict[str, str] = {}
    for language in LANGUAGES.values():
        for role, words in language.keys.items():
            for word in words:
                roles.setdefault(word, role)
    return roles
