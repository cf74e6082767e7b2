"""What cleaning costs: short mails a second, a hostile megabyte, how time grows with the length of a mail.

Short mails are the subjects and bodies of the sample inbox. The hostile texts are made so that careless patterns take
quadratic time on them; each is also measured at a sixteenth and at a quarter of a megabyte, and the growth is the slope
of time over length between the ends, on logarithmic scales: 1 is linear, 2 quadratic.

    python -m benchmarks.email_cleaning [--rounds N] [--quick]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sktransformer import EmailCleaner, load_french_emails

from .common import Sample, arguments, interleave, prepare, say, seconds, summary, timed, write

MEGABYTE = 1_000_000
SIZES = (MEGABYTE // 16, MEGABYTE // 4, MEGABYTE)
# What is repeated up to the length that is asked for; tests/email/test_properties.py has more of the kind.
HOSTILE = {
    "blank lines": "\n",
    "one line of words": "mot ",
    "quote marks": "> ",
    "attributions without an end": "Le 3 mars 2025 à 10:12, X\n",
    "verbs of attributions": "a écrit :\n",
    "header blocks": "De : P <p@e.org>\nEnvoyé : lundi 3 mars 2025 10:12\nÀ : X\nObjet : y\n",
    "wrapped recipients": "De : x\n" + ("à : a;\n" + "x;\n" * 38),
    "closings": "Cordialement,\n",
    "closings and names": "Cordialement Jean Jean Jean Jean Jean,,,,\n",
    "formulas": "salutations agréer\n",
    "openings of notices": "Ce message est destiné uniquement au service client de la part du responsable\n",
    "legal notices": "mot\n\nCe message est confidentiel\n\n",
    "combining marks": "\u0301\u0316",
    "HTML paragraphs": "<p>x</p>",
    "HTML wrappers": "<blockquote>",
    "open comments": "<p>x</p><br><!--",
    "open attributes": "<p>x</p><a b='",
    "at signs above quotes": "@" * 380 + " :\n> a\n",
    "addresses with many at signs": "1 aaaaa <" + "@" * 380 + ":\n",
    "formulas inside lines": "Merci je vous prie d'agréer mes salutations\n",
    "courtesies": "Merci,\n\n",
    "warnings": "ATTENTION : cet e-mail provient\n",
    "long dates": "Le 3 mars 2025 à 10:12, " + "a écrit x " * 30 + ":\n",
    "surrogates": "\ud800",
    "many attributes": "<p " + "a=b " * 40 + ">x</p>",
    "preformatted lines": "<pre>" + "x\n" * 200,
    "references to line ends": "<pre>&#13;",
}


def repeated(piece: str, size: int) -> str:
    return ("x\n" + piece * (size // len(piece) + 1))[:size]


def short_mails(options: Any) -> dict[str, Any]:
    """Mails a second in one call of `transform`, and in one call a mail."""
    mails = load_french_emails().frame[["subject", "body"]]
    bodies = mails["body"].tolist()
    times = 1 if options.quick else 10
    many, texts = mails.loc[np.tile(mails.index, times)].reset_index(drop=True), bodies * times
    cleaner = EmailCleaner()
    samples = interleave(
        {
            "subjects and bodies, one call": timed(lambda: cleaner.transform(many)),
            "bodies, one call": timed(lambda: cleaner.transform(texts)),
            "bodies, a call a mail": timed(lambda: [cleaner.transform([text]) for text in texts]),
        },
        options.rounds,
    )
    return {
        "mails": len(texts),
        "mean_characters": sum(map(len, bodies)) / len(bodies),
        "seconds_per_mail": {name: seconds(found, len(texts)) for name, found in samples.items()},
        "mails_per_second": {name: rates(found, len(texts)) for name, found in samples.items()},
    }


def rates(samples: list[Sample], count: int) -> dict[str, Any]:
    return {
        "wall": summary([count / sample.wall for sample in samples]),
        "cpu": summary([count / sample.cpu for sample in samples]),
    }


def hostile(options: Any) -> dict[str, Any]:
    """Processor seconds of each hostile text at each length, and how they grow."""
    cleaner = EmailCleaner(max_chars=MEGABYTE)

    def runs() -> Iterator[tuple[str, Callable[[], Sample]]]:
        for name, piece in HOSTILE.items():
            for size in SIZES:
                text = repeated(piece, size)
                yield f"{name}, {size}", timed(lambda text=text: cleaner.transform([text]))

    samples = interleave(dict(runs()), options.rounds)
    found = {}
    for name in HOSTILE:
        best = [min(sample.cpu for sample in samples[f"{name}, {size}"]) for size in SIZES]
        found[name] = {
            "seconds": {str(size): seconds(samples[f"{name}, {size}"]) for size in SIZES},
            "growth": math.log(best[-1] / best[0]) / math.log(SIZES[-1] / SIZES[0]),
        }
    return found


def main() -> None:
    options = arguments(__doc__ or "", rounds=5).parse_args()
    prepare(options)
    results = {"short": short_mails(options), "hostile": hostile(options)}
    full = {
        name: found["seconds"][str(MEGABYTE)]["cpu"]["median"] for name, found in results["hostile"].items()
    }
    worst = max(full, key=full.__getitem__)
    steepest = max(results["hostile"], key=lambda name: results["hostile"][name]["growth"])
    results["worst_megabyte"] = {"text": worst, **results["hostile"][worst]["seconds"][str(MEGABYTE)]}
    results["worst_growth"] = {"text": steepest, "exponent": results["hostile"][steepest]["growth"]}
    for name, found in results["short"]["mails_per_second"].items():
        say(f"{name}: {found['cpu']['median']:.0f} mails a second of processor time")
    say(f"worst megabyte: {worst}, {full[worst]:.2f} s")
    say(f"steepest growth: {steepest}, exponent {results['worst_growth']['exponent']:.2f}")
    write("email_cleaning", options, results, {"sizes": SIZES, "hostile": len(HOSTILE)})


if __name__ == "__main__":
    main()
