"""What README.md says of prompting and of constrained texts."""

from __future__ import annotations

from .tables import Record, number, spread, table


def prompting(record: Record) -> list[str]:
    found, settings = record["results"], record["settings"]
    rows = []
    for name, case in found.items():
        if "interval" in case:
            low, high = case["interval"]
            rows.append([name, f"{case['accuracy']:.3f}", f"{low:.3f} to {high:.3f} (95 % interval)"])
        elif "draws" in case:
            seen = f"{case['lowest']:.3f} to {case['highest']:.3f} over {case['draws']} draws of examples"
            rows.append([name, f"{case['accuracy']:.3f}", seen])
    lead = f"Sentiment of {settings['reviews']} short English reviews, half of them positive, by {settings['model']}."
    lines = [lead, "", *table(["prompt", "accuracy", "spread"], rows)]
    if "sharing" in found:
        one = found["sharing"]
        lines += [
            f"Likelihoods of both labels of {one['documents']} reviews behind four examples "
            f"({number(one['tokens_of_a_prompt']['mean'])} tokens a prompt): sharing what prompts and labels have in "
            f"common is {spread(one['speed_up']['wall'])} times as fast as reading each label with its whole prompt "
            f"(by processor time {spread(one['speed_up']['cpu'])}), and differs by {one['largest_difference']:.1e}.",
            "",
        ]
    return lines


def constrained(record: Record) -> list[str]:
    rows = [
        [
            f"{name}, {most}",
            f"{one['valid']} of {one['of']}",
            str(one["brought_to_an_end"]),
            str(one["different"]),
        ]
        for name, cases in record["results"]["cases"].items()
        for most, one in cases.items()
    ]
    return table(["schema", "valid", "brought to an end", "different texts"], rows)
