"""Run every benchmark, each in a process of its own, then write README.md from their files.

python -m benchmarks [--only training inference] [--rounds N] [--quick]
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from .common import ROOT, say

NAMES = (
    "persistence",
    "inference",
    "training",
    "budget",
    "french_topics",
    "cleaning_gain",
    "tuning",
    "email_cleaning",
    "training_outcome",
    "regression",
    "tagging",
    "answering",
    "embedding",
    "few_shots",
    "retrieval",
    "tuned_search",
    "architecture",
    "generation",
    "toy_sequences",
    "translation",
    "prompting",
    "constrained",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    handed_on = [] if options.rounds is None else ["--rounds", str(options.rounds)]
    handed_on += ["--quick"] if options.quick else []
    failed = []
    for name in options.only:
        say(f"== {name}")
        command = [sys.executable, "-m", f"benchmarks.{name}", *handed_on]
        if subprocess.run(command, cwd=ROOT).returncode:
            failed.append(name)
    if not options.quick:
        subprocess.run([sys.executable, "-m", "benchmarks.report"], cwd=ROOT, check=True)
    if failed:
        say(f"failed: {', '.join(failed)}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
