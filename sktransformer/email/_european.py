"""German, Spanish, Italian, Dutch and Portuguese: mainly quote headers and closings."""

from ._language import DEVICES, Language, phrases

GERMAN = Language(
    openers=phrases("am"),
    dates=phrases("mo, di, mi, do, fr, sa, so"),
    months=phrases("jan, feb, mär, mrz, apr, mai, jun, jul, aug, sep, okt, nov, dez"),
    end_verbs=phrases("geschrieben"),
    middle_verbs=phrases("schrieb"),
    keys={
        "from": phrases("von"),
        "sent": phrases("gesendet"),
        "date": phrases("datum"),
        "to": phrases("an"),
        "cc": phrases("kopie"),
        "subject": phrases("betreff"),
        "other": phrases("antwort an, wichtigkeit, anlagen"),
    },
    separators=phrases(
        """
        ursprüngliche nachricht, originalnachricht, original-nachricht, weitergeleitete nachricht
        """
    ),
    bare_separators=phrases("anfang der weitergeleiteten nachricht, anfang der weitergeleiteten e-mail"),
    closings=phrases(
        """
        mit freundlichen grüßen, mit freundlichen gruessen, mit freundlichem gruß, freundliche grüße, mfg,
        viele grüße, beste grüße, liebe grüße, herzliche grüße, schöne grüße, mit besten grüßen, vg, lg,
        hochachtungsvoll, gruß
        """
    ),
    thanks=phrases("danke, vielen dank, besten dank, danke im voraus, vielen dank im voraus"),
    postscripts=phrases("ps, p.s, anlage, anlagen"),
    greetings=phrases("hallo, guten tag, guten morgen, sehr geehrte, sehr geehrter, liebe, lieber"),
    sentence_openings=phrases("ich, wir, sie, bitte, können, könnten, mein, meine, danke, wenn, es"),
    company_words=phrases("amtsgericht, geschäftsführer, handelsregister, ust-id"),
    footer_patterns=(
        rf"(?:von meinem|gesendet (?:von|mit|aus|über)) (?=[^,;]*\b(?:{DEVICES})\b)[^,;?]{{1,60}}",
        r"outlook für (?:ios|android)[^,;?]{0,30}",
    ),
    notice_patterns=(r"bitte (?:denken|prüfen) sie.{0,40}(?:umwelt|ausdruck)",),
    legal_openings=(r"(?:diese|die) (?:e-?mail|nachricht|information)", r"wenn sie nicht der"),
    legal_core=phrases("vertraulich, adressat, empfänger"),
    legal_stems=phrases("irrtümlich, vernichten, absender, unbefugt, nicht gestattet, anhänge"),
    reply_prefixes=phrases("aw, wg"),
)

SPANISH = Language(
    openers=phrases("el, el día, con fecha"),
    dates=phrases("lun, mar, mié, mie, jue, vie, sáb, sab, dom"),
    months=phrases("ene, feb, mar, abr, may, jun, jul, ago, sep, oct, nov, dic"),
    end_verbs=phrases("escribió, escribio, ha escrito"),
    keys={
        "from": phrases("de"),
        "sent": phrases("enviado, enviado el"),
        "date": phrases("fecha"),
        "to": phrases("para"),
        "cc": phrases("cco"),
        "subject": phrases("asunto"),
        "other": phrases("responder a, importancia, datos adjuntos"),
    },
    separators=phrases("mensaje original, mensaje reenviado, correo original"),
    bare_separators=phrases("inicio del mensaje reenviado"),
    closings=phrases(
        """
        saludos, un saludo, saludos cordiales, un cordial saludo, cordialmente, atentamente, muy
        atentamente, saludos atentos, un abrazo, le saluda atentamente, cordiales saludos
        """
    ),
    thanks=phrases("gracias, muchas gracias, gracias de antemano, mil gracias"),
    postscripts=phrases("pd, p.d"),
    greetings=phrases("hola, buenos días, buenas tardes, estimado, estimada"),
    sentence_openings=phrases("yo, nosotros, por favor, puede, podría, podrían, mi, no, gracias, quiero"),
    footer_patterns=(rf"enviado (?:desde|con|a través de) (?=[^,;]*\b(?:{DEVICES})\b)[^,;?]{{1,60}}",),
    notice_patterns=(r"antes de imprimir",),
    legal_openings=(
        r"este (?:mensaje|correo)",
        r"la información contenida",
        r"si (?:usted )?no es el destinatario",
    ),
    legal_core=phrases("confidencial, destinatario"),
    legal_stems=phrases("por error, elimin, remitente, adjunt, prohib, exclusiv"),
    reply_prefixes=phrases("rv, rm"),
)

ITALIAN = Language(
    openers=phrases("il, il giorno, in data"),
    dates=phrases("lun, mar, mer, gio, ven, sab, dom"),
    months=phrases("gen, feb, mar, apr, mag, giu, lug, ago, set, ott, nov, dic"),
    end_verbs=phrases("ha scritto, scrive, scriveva"),
    keys={
        "from": phrases("da"),
        "sent": phrases("inviato, inviata"),
        "date": phrases("data"),
        "to": phrases("a"),
        "cc": phrases("ccn"),
        "subject": phrases("oggetto"),
        "other": phrases("rispondi a, priorità, allegati"),
    },
    separators=phrases("messaggio originale, messaggio inoltrato, messaggio originario"),
    bare_separators=phrases("inizio messaggio inoltrato"),
    closings=phrases(
        """
        cordiali saluti, distinti saluti, cordialmente, saluti, un saluto, cordialità, a presto, un cordiale
        saluto, i miei più cordiali saluti, buona giornata
        """
    ),
    thanks=phrases("grazie, grazie mille, grazie in anticipo, molte grazie"),
    greetings=phrases("buongiorno, buonasera, ciao, salve, gentile, egregio"),
    sentence_openings=phrases("io, noi, vorrei, potete, può, per favore, non, il mio, grazie, ho"),
    footer_patterns=(rf"inviato (?:da|dal|dalla|con|tramite) (?=[^,;]*\b(?:{DEVICES})\b)[^,;?]{{1,60}}",),
    notice_patterns=(r"prima di stampare",),
    legal_openings=(r"(?:le informazioni|il (?:presente )?messaggio|questo messaggio|questa e-?mail)",),
    legal_core=phrases("riservat, destinatari, confidenzial"),
    legal_stems=phrases("per errore, cancellar, mittente, allegat, vietat, esclusiv"),
    reply_prefixes=phrases("inoltro, rif"),
)

DUTCH = Language(
    openers=phrases("op"),
    dates=phrases("ma, di, wo, do, vr, za, zo"),
    months=phrases("jan, feb, mrt, maart, apr, mei, jun, jul, aug, sep, okt, nov, dec"),
    end_verbs=phrases("geschreven"),
    middle_verbs=phrases("schreef"),
    keys={
        "from": phrases("van"),
        "sent": phrases("verzonden"),
        "date": phrases("datum"),
        "to": phrases("aan"),
        "cc": phrases("bcc"),
        "subject": phrases("onderwerp"),
        "other": phrases("urgentie, bijlagen"),
    },
    separators=phrases("oorspronkelijk bericht, doorgestuurd bericht, origineel bericht"),
    bare_separators=phrases("begin doorgestuurd bericht"),
    closings=phrases(
        """
        met vriendelijke groet, met vriendelijke groeten, vriendelijke groet, vriendelijke groeten, groeten,
        mvg, hartelijke groet, hartelijke groeten, hoogachtend, groet
        """
    ),
    thanks=phrases("bedankt, alvast bedankt, dank u, dank je"),
    greetings=phrases("hallo, beste, geachte, goedemorgen, goedemiddag"),
    sentence_openings=phrases("ik, wij, we, kunt, graag, mijn, bedankt"),
    footer_patterns=(rf"verzonden (?:vanaf|vanuit|met|via) (?=[^,;]*\b(?:{DEVICES})\b)[^,;?]{{1,60}}",),
    legal_openings=(r"(?:dit bericht|deze e-?mail|de informatie)",),
    legal_core=phrases("vertrouwelijk, geadresseerde"),
    legal_stems=phrases("vergissing, verwijderen, afzender, bijlage, bestemd, niet toegestaan"),
    reply_prefixes=phrases("antw, doorst, betr"),
)

PORTUGUESE = Language(
    openers=phrases("em, no dia, a"),
    dates=phrases("seg, ter, qua, qui, sex, sáb, sab, dom"),
    months=phrases("jan, fev, mar, abr, mai, jun, jul, ago, set, out, nov, dez"),
    end_verbs=phrases("escreveu"),
    keys={
        "from": phrases("de"),
        "sent": phrases("enviado, enviada, enviado em, enviada em"),
        "date": phrases("data"),
        "to": phrases("para"),
        "cc": phrases("cco"),
        "subject": phrases("assunto"),
        "other": phrases("anexos"),
    },
    separators=phrases("mensagem original, mensagem encaminhada, mensagem reencaminhada"),
    bare_separators=phrases("início da mensagem encaminhada, início da mensagem reencaminhada"),
    closings=phrases(
        """
        atenciosamente, cumprimentos, com os melhores cumprimentos, melhores cumprimentos, att,
        cordialmente, abraços, um abraço, saudações, sem outro assunto
        """
    ),
    thanks=phrases("obrigado, obrigada, muito obrigado, muito obrigada, desde já obrigado"),
    greetings=phrases("olá, bom dia, boa tarde, caro, cara, prezado, prezada"),
    sentence_openings=phrases("eu, nós, por favor, pode, poderia, meu, minha, não, obrigado, obrigada"),
    footer_patterns=(rf"enviado (?:do|de|a partir do|pelo) (?=[^,;]*\b(?:{DEVICES})\b)[^,;?]{{1,60}}",),
    legal_openings=(r"esta (?:mensagem|comunicação)", r"as informações contidas"),
    legal_core=phrases("confidencia, destinatário"),
    legal_stems=phrases("por engano, elimin, remetente, anexo, proibid, exclusiv"),
    reply_prefixes=phrases("enc, res"),
)
