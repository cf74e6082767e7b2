"""French."""

from ._language import DEVICES, Language, phrases

# What one thanks for or waits for without saying more: "Merci de me rappeler" asks for something and is body.
_WANTED = (
    r"(?:vous (?:re)?lire|(?:votre|vos|une|un) (?:(?:prompte?|rapide|bonne|aimable|précieuse) )?"
    r"(?:retours?|réponses?|aide|attention|compréhension|temps|diligence|collaboration|confiance|nouvelles|appel"
    r"|considération|lecture|intervention)(?: (?:rapide|favorable))?(?: de votre part)?)"
)
_FOR = rf"(?: (?:de|pour) {_WANTED})"
_MUCH = r"(?: (?:par avance|d'avance|beaucoup|vivement|infiniment|encore|bien))"

FRENCH = Language(
    openers=phrases("le, en date de, en date du"),
    dates=phrases("lun, mar, mer, jeu, ven, sam, dim"),
    months=phrases(
        """
        janv, jan, fév, fev, mars, avr, mai, juin, juil, août, aout, sep, oct, nov, déc, dec
        """
    ),
    end_verbs=phrases("a écrit, à écrit, a ecrit, avez écrit"),
    pronouns=phrases("il, elle, on, ils, elles, qui, y, lui, nous"),
    keys={
        "from": phrases("de, de la part de, expéditeur, expediteur"),
        "sent": phrases(
            """
            envoyé, envoye, envoyé le, envoye le, envoyée, envoyé à, date d'envoi, reçu le
            """
        ),
        "date": phrases("date, message du"),
        "to": phrases("à, a, pour, destinataire, destinataires"),
        "cc": phrases("cc, cci, ccn, copie, copie à, copie a, copies, copie cachée"),
        "subject": phrases("objet, sujet"),
        "other": phrases(
            """
            répondre à, importance, priorité, pièces jointes, pièce jointe, pj, organisation
            """
        ),
    },
    separators=phrases(
        """
        message d'origine, message original, message initial, courriel original, courriel d'origine, mail
        original, mail d'origine, e-mail d'origine, message transféré, message transfere, message réexpédié,
        mail transféré, courriel transféré, transféré par, réexpédié par, réponse au message, fin du message
        d'origine
        """
    ),
    bare_separators=phrases("début du message transféré, début du message réexpédié, message transféré"),
    closings=phrases(
        """
        cordialement, bien cordialement, très cordialement, tres cordialement, cordialement vôtre,
        cordialement votre, bien cordialement à vous, cordialement à vous, cordlt, cordlmt, cordialt, cdlt,
        cdt, cdlmt, cldt, bien cdlt, bien à vous, bien a vous, bien à toi, bien vôtre, très sincèrement,
        sincèrement, sincerement, sincèrement vôtre, respectueusement, très respectueusement, amicalement,
        bien amicalement, amitiés, chaleureusement, courtoisement, salutations, sincères salutations,
        sinceres salutations, salutations distinguées, salutations distinguees, cordiales salutations,
        salutations cordiales, salutations sincères, meilleures salutations, mes salutations, mes
        salutations distinguées, mes sincères salutations, mes salutations les meilleures, avec mes
        salutations, avec mes meilleures salutations, avec mes salutations distinguées, avec nos
        salutations, sentiments distingués, à bientôt, a bientot, à très bientôt, bonne journée, bonne
        journee, très bonne journée, belle journée, bonne fin de journée, bonne soirée, bonne soiree, belle
        soirée, bonne après-midi, bon après-midi, bon week-end, bon weekend, bonne semaine, bonne réception,
        bonne reception, bonne fin de semaine, bonne journée à vous, bonne soirée à
        vous, belle journée à vous, belle soirée à vous, très belle journée, bien respectueusement, cordialement
        bonne journée, avec mes remerciements, votre dévoué, votre dévouée, votre bien dévoué, votre bien
        dévouée, bien des choses
        """
    ),
    thanks=phrases(
        """
        merci, merci d'avance, merci par avance, merci beaucoup, un grand merci, encore merci, merci encore,
        merci bien, avec mes remerciements, en vous remerciant, bonne réception, merci à vous
        """
    ),
    courtesy_openings=phrases(
        """
        veuillez, je vous prie, nous vous prions, vous priant, je vous prierai, je vous prierais, en vous
        priant, recevez, agréez, agreez, croyez, je vous adresse, nous vous adressons, dans l'attente, dans
        cette attente, en attendant, en attente, restant à, en vous remerciant, vous remerciant, vous en
        remerciant, par avance, avec mes remerciements, merci de croire, merci d'agréer, daignez
        """
    ),
    courtesy_patterns=(
        r"salutations\b",
        r"\b(?:mes|nos|de)(?: [^\W\d_]+){0,2} sentiments\b",
        r"l'expression de (?:ma|mes|notre|nos|toute)\b",
        r"\b(?:ma|notre)(?: [^\W\d_]+)? consid[ée]ration\b",  # not "prendre en considération"
        r"\b(?:mes|nos)(?: [^\W\d_]+)? hommages\b",
    ),
    courtesy_lines=(
        rf"dans (?:l'attente|cette attente)(?: d(?:e |'){_WANTED})?",
        rf"(?:dans l'|en )?attente d(?:e |'){_WANTED}",
        rf"(?:en )?attendant {_WANTED}",
        r"(?:je |nous )?rest(?:e|ons|ant) à votre (?:entière )?disposition(?: pour toute?s? (?:autres? )?"
        r"(?:renseignement|question|information|précision|complément)s?"
        r"(?: d'informations?| complémentaires?| supplémentaires?)?)?",
        rf"(?:je|nous) vous (?:en )?remerci(?:e|ons){_MUCH}?{_FOR}?{_MUCH}?",
        rf"(?:en )?vous (?:en )?remerciant{_MUCH}?{_FOR}?{_MUCH}?",
        rf"(?:un grand )?merci{_MUCH}?{_FOR}{_MUCH}?",
    ),
    courtesy_leads=phrases("dans, en, attente, restant, je, nous, vous, merci, un"),
    postscripts=phrases(
        """
        ps, p.s, p.-s, p-s, post-scriptum, post scriptum, nb, n.b, pj, p.j, pièce jointe, pièces jointes,
        piece jointe, pieces jointes
        """
    ),
    greetings=phrases("bonjour, bonsoir, salut, madame, monsieur, mesdames, messieurs, cher, chère, chers"),
    sentence_openings=phrases(
        """
        je, j'ai, j'avais, j'attends, j'aimerais, j'espère, nous, vous, merci, pouvez-vous, pourriez-vous,
        pourrais-je, puis-je, est-ce, c'est, il, elle, on, mon, ma, mes, ce, cette, si, quand, comment,
        pourquoi, désolé, désolée, bonjour
        """
    ),
    company_words=phrases(
        """
        capital de, rcs, r.c.s, siret, siren, siège social, tva, orias, immatriculé, code ape
        """
    ),
    footer_patterns=(
        rf"(?:(?:e-?mail|message|courriel|mail) )?envoyée? "
        rf"(?:de|d'|depuis|à partir d|a partir d|avec|via|sur|par l'app)"
        rf"(?=[^,;]*\b(?:{DEVICES})\b)[^,;?]{{1,80}}",
        r"(?:obtenez|obtenir|t[ée]l[ée]chargez|t[ée]l[ée]charger|d[ée]couvrez) (?:l'app\w* )?"
        r"(?:outlook|yahoo|gmail|orange|bluemail|proton)[^,;?]{0,60}",
        r"provenance : [^,;?]{1,60}",
    ),
    loose_footer_patterns=(r"envoyée? de(?:puis)? (?:mon|ma|mes) [^,;?.]{1,40}",),
    notice_patterns=(
        r"pensez à l'environnement",
        r"pensez environnement",
        r"avant d'imprimer",
        r"n'imprime[zr] ce",
        r"n'imprimez que",
        r"merci de n'imprimer",
        r"merci de penser à l'environnement",
        r"préservons l'environnement",
        r"adoptons? l'éco",
        r"adoptez l'éco",
        r"afin de (?:contribuer au respect|préserver) (?:de )?l'environnement",
        r"devez-vous vraiment imprimer",
        r"l'absence de virus",
        r"garanti sans virus",
        r"sans virus\b.{0,20}\bavast",
        r"ce[t]? (?:e-?mail|courriel|message|courrier électronique|mail) (?:a été|ne contient|est garanti)"
        r"[^.]{0,60}(?:virus|antivirus|avast)",
        r"l'intégrité (?:de ce|du présent) (?:message|mail|e-?mail|courriel)[^.]{0,40}(?:assur|garanti)",
        r"conformément à la loi[\W_]{1,3}informatique et libertés[^.]{0,80}\bvous (?:disposez|bénéficiez)",
        r"(?:- )?ce message (?:a été )?(?:traité|analysé|vérifié) par",
    ),
    legal_openings=(
        r"(?:ce|cet|le présent|tout) (?:message|mail|e-?mail|courriel|courrier électronique|m[ée]l)\b",
        r"(?:les |l')informations? (?:contenues?|figurant|transmises?|véhiculées?) dans",
        r"si vous (?:recevez|avez reçu|n'êtes pas|n'etes pas|n'en êtes pas)",
        r"au cas où ce (?:message|mail|courriel)",
        r"toute (?:utilisation|diffusion|publication|divulgation|copie|reproduction|modification)",
        r"(?:avertissement|avis|clause|mention|note)s? (?:de |légale|l[ée]gal|juridique|importante?)",
        r"(?:avertissement|attention|important|avis|note|nb)s? ?[:!-] ?"
        r"(?:ce|cet|le présent|tout|les informations|si vous)\b",
        r"message à caractère (?:privé|personnel)\b",
        r"confidentialité\b",
        r"(?:message |contenu )?confidentiel\b",
        r"secret professionnel\b",
        r"l'intégrité d",
        r"(?:l'expéditeur|notre société|la société|[\w' -]{2,30}) (?:décline|ne (?:peut|saurait))",
    ),
    legal_core=phrases(
        "confidenti, destinataire, privilégi, secret profession, n'engage que son auteur, n'engagent que leur auteur"
    ),
    legal_stems=phrases(
        """
        par erreur, détrui, supprim, expéditeur, pièces jointes, joints, toute utilisation, toute diffusion,
        utilisation non, toute publication, interdit, intégrité, altér, falsifi, exclusif, exclusive,
        responsabilité, non autorisé, strictement, sécurité, décline, divulg, copi, effac, réservé,
        imprim, destiné, secret
        """
    ),
    banner_patterns=(
        r"(?:provient|vient|émane|a été envoyé) (?:de l'|d'une? )"
        r"(?:extérieur|expéditeur|(?:adresse|source) ext)",
        r"expéditeur (?:est )?(?:externe|inconnu)",
        r"ne cliquez pas",
        r"n'ouvrez pas les pièces",
        r"vous n'obtenez pas souvent d'e-mail",
        r"vous ne recevez pas souvent de courriers?",
        r"(?:message|mail|e-mail) externe\W*$",
        r"\[(?:externe?|ext)\]\W*$",
    ),
    reply_prefixes=phrases("re, ré, rép, tr, fwd, fw"),
)
