"""The section of each benchmark in README.md: one function a file of results."""

from __future__ import annotations

from collections.abc import Callable

from .embedding_tables import embedding, few_shots, tuned_search
from .generation_tables import generation, toy_sequences, translation
from .prompting_tables import constrained, prompting
from .tables import Record, number, spread, table


def compared(found: Record, unit: str, values: str, scale: float = 1) -> list[str]:
    """Rows of competitors: their times, how many times faster ours is, the share of the ceiling."""
    rows = []
    for name, took in found[values].items():
        faster = found["times_faster"].get(name)
        rows.append(
            [
                name,
                spread(took["wall"], scale),
                spread(took["cpu"], scale),
                "" if faster is None else spread(faster["cpu"]),
                spread(found["share_of_ceiling"][name]["cpu"], 100, " %"),
            ]
        )
    return table(
        ["", f"{unit}, wall", f"{unit}, processor", "ours is faster, times", "of the matrix ceiling"], rows
    )


def training(record: Record) -> list[str]:
    settings, results = record["settings"], record["results"]
    lines = [
        f"{settings['documents']} documents, {number(settings['mean_tokens'])} tokens on average and "
        f"{settings['longest_tokens']} at most, batches of {settings['batch_size']}, {settings['model']}, "
        f"{settings['precision']}, {settings['optimizer']} for all. In float32 without dropout, weights "
        f"that ours and Trainer reached after three steps give logits equal within "
        f"{results['same_step']['largest_difference_of_logits']:.1g}.",
        "",
    ]
    parts = {
        "steps": "Dropout 0.1",
        "steps_without_attention_dropout": "Attention dropout 0",
        "steps_float32": "Dropout 0.1, all in float32",
    }
    for key, words in parts.items():
        if key in results and not (key == "steps_float32" and settings["precision"] == "float32"):
            lines += [f"{words}:", "", *compared(results[key], "s a step", "seconds_per_step")]
    return lines


def training_outcome(record: Record) -> list[str]:
    results, lines = record["results"], []
    if "accuracy" in results:
        found = results["accuracy"]
        lines += [
            f"Accuracy after the same number of steps ({found['documents']} short documents, {found['epochs']} epochs, "
            f"{record['settings']['precision']}, one number a seed):", "",
        ]  # fmt: skip
        rows = [
            [name, ", ".join(f"{value:.3f}" for value in values), f"{sum(values) / len(values):.3f}",
             spread(found["times_faster"][name]["cpu"]) if name in found["times_faster"] else ""]
            for name, values in found["accuracy"].items()
        ]  # fmt: skip
        lines += table(["", "accuracy by seed", "mean", "ours is faster, times"], rows)
    if "memory" in results:
        lines += [f"Peak memory of a training process, {record['settings']['documents']} documents:", ""]
        rows = [
            [name, number(found["above_bytes"] / 1e6), number(found["peak_bytes"] / 1e6)]
            for name, found in results["memory"].items()
        ]
        lines += table(["", "MB above the start of training", "MB in all"], rows)
    return lines


def inference(record: Record) -> list[str]:
    settings, results = record["settings"], record["results"]
    lines = [
        f"{settings['documents']} unsorted documents, {number(settings['mean_tokens'])} tokens on average and "
        f"{settings['longest_tokens']} at most, {settings['model']}, {settings['precision']}.",
        "",
    ]
    for key, words in (("classify", "Probabilities"), ("embed", "Vectors")):
        lines += [f"{words} (equal within {results[key]['largest_difference']:.1g}):", ""]
        lines += compared(results[key], "ms a document", "milliseconds_per_document")
    return lines


def persistence(record: Record) -> list[str]:
    results = record["results"]
    rows = [
        [f"`{name}`", spread(found["wall"]), spread(found["cpu"])]
        for name, found in results["imports"]["seconds"].items()
    ]
    lines = table(["the interpreter's own start taken off", "s, wall", "s, processor"], rows)
    wanted = (
        ("weights_bytes", "weights, MB", 1e-6),
        ("file_bytes", "joblib file, MB", 1e-6),
        ("file_over_weights", "file / weights", 1),
        ("dump_peak_above_over_weights", "peak of dump above the model's own / weights", 1),
        ("dump_seconds", "dump, s", 1),
        ("load_seconds", "load, s", 1),
        ("load_peak_above_bytes", "peak of load, MB", 1e-6),
        ("clone_seconds", "clone, ms", 1e3),
    )
    models = results["saving"]
    rows = [[words, *[spread(models[model][key], scale) for model in models]] for key, words, scale in wanted]
    return lines + table(["", *models], rows)


def budget(record: Record) -> list[str]:
    results = record["results"]
    lines: list[str] = []
    for what in ("training", "inference"):
        found = results["budgets"][what]
        sizes = sorted({int(key.split(", ")[1]) for key in found["seconds"]})
        rows = [
            [layout, *[spread(found["seconds"][f"{layout}, {size}"]["cpu"]) for size in sizes]]
            for layout in ("packed", "padded")
        ]
        lines += [
            f"Processor seconds of {what}, {found['documents']} documents; best: {found['best']} tokens.",
            "",
        ]
        lines += table(["tokens in a forward pass", *map(str, sizes)], rows)
    found = results["precision"]
    if found["has_bfloat16"]:
        speed = {what: spread(found["times_faster"][what]["cpu"]) for what in ("training", "inference")}
        lines += [
            f'bfloat16 (`precision="auto"` takes it on this processor) is {speed["training"]} times as fast as '
            f"float32 in training and {speed['inference']} in inference; probabilities move by "
            f"{found['largest_difference_of_probabilities']:.1g} at most.",
            "",
        ]
    rows = [
        [
            what,
            *[
                f"{results['growth'][what][key]:.2f}"
                for key in ("exponent_of_documents", "exponent_of_lengths")
            ],
        ]
        for what in ("training", "inference")
    ]
    return lines + table(["exponent of time", "documents x1 to x16", "lengths x1 to x4"], rows)


def french_topics(record: Record) -> list[str]:
    settings = record["settings"]
    rows = []
    for name, found in record["results"].items():
        score = f"{found['macro_f1']:.3f}"
        if "macro_f1_std" in found:
            seeds = len(found["macro_f1_by_seed"])
            score += f" ± {found['macro_f1_std']:.3f} ({seeds} seeds)"
        rest = (
            f"{found['accuracy']:.3f}",
            *map(number, (found["fit_cpu_seconds"], found["milliseconds_per_document"])),
        )
        rows.append([name, score, *rest])
    lead = f"SIB-200, French: {settings['train']} sentences to train on, {settings['dev']} to judge by."
    lines = [lead, "", *table(["", "macro-F1", "accuracy", "fit, processor s", "ms a document"], rows)]
    for name, found in record["results"].items():
        if "beside" in found:  # a vote: its members, and the vote that weights them alike
            beside = ", ".join(f"{other} {score:.3f}" for other, score in found["beside"].items())
            weights = ", ".join(f"{other} {share:.2f}" for other, share in found["weights"].items())
            lines += [f"{name}: macro-F1 beside it: {beside}; its weights: {weights}.", ""]
    return lines


def answering(record: Record) -> list[str]:
    settings = record["settings"]
    rows = []
    for name, found in record["results"].items():
        spread_of_seeds = f" ± {found['f1_std']:.3f}" if len(found.get("f1_by_seed", ())) > 1 else ""
        cells = [f"{found['f1_english']:.3f}{spread_of_seeds}"]
        cells += [f"{found[key]:.3f}" for key in ("exact_match_english", "f1_french")]
        measured = (found.get(key) for key in ("fit_cpu_seconds", "milliseconds_per_question"))
        rows.append([name, *cells, *("" if value is None else number(value) for value in measured)])
    lead = (
        f"PIAF: {settings['train']} questions about {settings['train_articles']} articles to train on, "
        f"{settings['test']} about {settings['test_articles']} others to judge by."
    )
    columns = ["", "F1", "exact match", "F1, French articles", "fit, processor s", "ms a question"]
    return [lead, "", *table(columns, rows)]


def email_cleaning(record: Record) -> list[str]:
    short, hostile = record["results"]["short"], record["results"]["hostile"]
    rows = [
        [name, *[spread(found[clock]) for clock in ("wall", "cpu")]]
        for name, found in short["mails_per_second"].items()
    ]
    lines = [f"{short['mails']} mails, {number(short['mean_characters'])} characters on average.", ""]
    lines += table(["mails a second", "by wall time", "by processor time"], rows)
    rows = [
        [name, spread(list(found["seconds"].values())[-1]["cpu"]), f"{found['growth']:.2f}"]
        for name, found in hostile.items()
    ]
    return lines + table(["one hostile megabyte", "s, processor", "exponent of time, x1 to x16"], rows)


def cleaning_gain(record: Record) -> list[str]:
    mails, settings = record["results"]["mails"], record["settings"]
    counts = ", ".join(f"{count} {name}" for name, count in settings["classes"].items())
    lines = [
        f"{settings['messages']} distinct French customer messages ({counts}; invented by the look of them, many near "
        f"copies, which stay on one side of the split), {number(mails['mean_characters_of_body'])} characters on "
        f"average, and as mails {number(mails['mean_characters'])}: greeting, closing, signature, legal notice and a "
        f"quoted message of another class. Of the cleaned mails {mails['body_whole']:.1%} hold the whole message, and "
        f"{mails['nothing_but_body']:.1%} nothing but that; cleaning takes "
        f"{number(mails['milliseconds_per_mail'])} ms a mail. Fine-tuning sees at most {settings['most_tuned']} of the "
        f"{settings['train']} training messages. Intervals (95 %) hold for other test messages, not for other seeds.",
        "",
    ]
    rows = []
    for name, found in record["results"]["models"].items():
        scores = [f"{score:.3f}" for score in found["macro_f1"].values()]
        won = [
            f"{part['share_won_back']:.3f} ({part['share_interval'][0]:.3f} to {part['share_interval'][1]:.3f})"
            for part in (found, found["greetings_kept"])
        ]
        costs = [
            f"{number(found['cost']['raw'][key])} / {number(found['cost']['cleaned'][key])}"
            for key in ("fit_cpu_seconds", "milliseconds_per_document")
        ]
        rows.append([name, str(found["documents"]), *scores, *won, *costs])
    head = ["macro-F1", "judged by", "plain", "raw mails", "cleaned", "cleaned, greetings kept",
            "share won back", "greetings kept", "fit, s, raw / cleaned"]  # fmt: skip
    return lines + table([*head, "ms a document, raw / cleaned"], rows)


def tuning(record: Record) -> list[str]:
    results, settings = record["results"], record["settings"]
    columns = {
        "epochs": "epochs",
        "share_of_epochs": "of those without",
        "pruned": "pruned trials",
        "best_score": "best macro-F1",
        "score_gained": "less that without",
    }
    searches = results["searches"].items()
    rows = [[name, *(spread(found[key]) for key in columns)] for name, found in searches]
    lead = (
        f"OptunaSearch, {settings['trials']} trials of three folds on {results['documents']} e-mails of the sample "
        f"inbox, its three largest classes; a round is a seed. TF-IDF and a linear SVM reach "
        f"{number(results['tfidf_svm_best_score'])}."
    )
    return [lead, "", *table(["", *columns.values()], rows)]


def retrieval(record: Record) -> list[str]:
    settings, results = record["settings"], record["results"]
    lines: list[str] = []
    if "piaf" in results:
        lines += [
            f"PIAF: {settings['questions']} French questions, each asked of all {settings['paragraphs']} paragraphs. "
            f"Settings were chosen by {settings['questions_to_choose_by']} of them, those of a third of the articles; "
            f"the figures are of the others, in brackets of all. Hybrid as it comes has "
            f"{results['piaf']['points_gained']:+.1f} points of recall at 1 against the best ranking without fusion.",
            "",
        ]
        rows = [
            [name, *(f"{found[key]:.3f} ({found[f'{key}_all']:.3f})" for key in ("recall_1", "recall_10"))]
            for name, found in results["piaf"]["chosen"].items()
        ]
        lines += table(["", "recall at 1", "recall at 10"], rows)
    if "approximate" in results:
        found = results["approximate"]
        lines += [
            f"The approximate index: {number(found['documents'])} unit vectors of width {found['width']}, drawn round "
            f"{number(found['clusters'])} centres with as much spread within as between; {found['queries']} queries, "
            f"ten neighbours. The graph took {number(found['build_cpu_seconds'])} s to build and is "
            f"{number(found['graph_bytes'] / 1e6)} MB large, the vectors {number(found['vectors_bytes'] / 1e6)} MB.",
            "",
        ]
        ways = ("together", "one_by_one")
        rows = [
            [name, "1" if name == "exact" else f"{found['recall_10'][name]:.4f}",
             *(spread(found[way]["seconds_per_query"][name]["cpu"], 1e3) for way in ways),
             *("" if name == "exact" else spread(found[way]["times_faster"][name]["cpu"]) for way in ways)]
            for name in found["together"]["seconds_per_query"]
        ]  # fmt: skip
        head = ["", "recall at 10", "ms a query, all in one call", "one a call"]
        lines += table([*head, "times faster, all in one call", "one a call"], rows)
    return lines


def tagging_words(record: Record) -> list[str]:
    found = record["results"]
    return [
        f"Parts of speech of UD French Sequoia, {record['settings']['encoder']}: accuracy {found['accuracy']:.4f} on "
        f"the {found['dev_words']} words of its development part, after {found['train']} sentences of training "
        f"({number(found['fit_cpu_seconds'])} processor seconds).",
        "",
    ]


def tagging_entities(record: Record) -> list[str]:
    found = record["results"]
    lead = f"WNUT 2017, {found['train']} sentences to train on, {found['test']} of its test part to judge by."
    rows = [
        [name, f"{row['entity_f1']:.3f}", str(row["illegal_sentences"]), number(row["fit_cpu_seconds"])]
        for name, row in found.items()
        if isinstance(row, dict)
    ]
    head = ["decoding", "entity F1", "sentences with illegal tags", "fit, processor s"]
    return [lead, "", *table(head, rows)]


def tagging_legal(record: Record) -> list[str]:
    found = record["results"]
    rows = [[scheme, *map(str, counts.values())] for scheme, counts in found["illegal"].items()]
    decodings = next(iter(found["illegal"].values()))
    lead = f"Illegal sequences among {number(found['sequences'])} of random scores, by decoding."
    return [lead, "", *table(["scheme", *decodings], rows)]


def tagging_cost(record: Record) -> list[str]:
    found = record["results"]
    return [
        f"An optimizer step with a CRF takes {spread(found['times_longer']['cpu'])} times one without by processor "
        f"time, on {found['sentences']} sentences; its sums and their gradient alone are "
        f"{found['chain_over_step']:.2%} of a step.",
        "",
    ]


def regression(record: Record) -> list[str]:
    rows = [
        [name, *(f"{found[key]:.3f}" for key in ("spearman", "r2")), number(found["fit_cpu_seconds"])]
        for name, found in record["results"].items()
    ]
    return table(["STS-B, French, development part", "Spearman", "R2", "fit, processor s"], rows)


def architecture(record: Record) -> list[str]:
    settings, rows = record["settings"], []
    for layout, found in record["results"].items():
        for work in ("reading", "training"):
            took = found[work]["milliseconds_per_thousand_tokens"]
            faster = found[work]["times_faster"]["cpu"]
            rows.append([f"{work}, {layout}", *(spread(one["cpu"]) for one in took.values()), spread(faster)])
    lead = (
        f"{settings['num_hidden_layers']} layers of width {settings['hidden_size']}, the same weights, attention "
        f"kernels and dropout, {settings['precision']}; logits and gradients agree. Milliseconds of a processor for a "
        f"thousand tokens."
    )
    return [lead, "", *table(["", *took, "ours is faster, times"], rows)]


SECTIONS: dict[str, tuple[str, Callable[[Record], list[str]]]] = {
    "training": ("Training", training),
    "training_outcome": ("What training leaves: accuracy, memory", training_outcome),
    "inference": ("Inference", inference),
    "persistence": ("Import, files, memory", persistence),
    "french_topics": ("French topics", french_topics),
    "answering": ("Answering French questions", answering),
    "email_cleaning": ("Cleaning e-mails", email_cleaning),
    "cleaning_gain": ("What cleaning wins back", cleaning_gain),
    "tuning": ("Tuning", tuning),
    "retrieval": ("Search", retrieval),
    "tuned_search": ("An embedder fine-tuned for search", tuned_search),
    "embedding": ("Embeddings", embedding),
    "few_shots": ("Few examples of many classes", few_shots),
    "budget": ("Token budgets, precision, growth", budget),
    "regression": ("Similarity of pairs", regression),
    "prompting": ("Labels by prompting", prompting),
    "constrained": ("Constrained JSON", constrained),
    "tagging_words": ("Parts of speech", tagging_words),
    "tagging_entities": ("Entities", tagging_entities),
    "tagging_legal": ("Legal sequences of tags", tagging_legal),
    "architecture": ("Our encoder and Transformers' BERT", architecture),
    "tagging_cost": ("What a CRF costs", tagging_cost),
    "generation": ("Generation", generation),
    "toy_sequences": ("Copies and reversals", toy_sequences),
    "translation": ("Translation from scratch", translation),
}
