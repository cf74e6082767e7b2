"""Where answers stand in windows, what windows weigh, and the threshold of no answer."""

import itertools

import numpy as np
import pytest

from sktransformer._engine.checkpoints.loading import read_tokenizer
from sktransformer._engine.text.documents import Documents
from sktransformer._engine.text.encoding import TextEncoder
from sktransformer._engine.text.windows import Cut
from sktransformer.tasks._answering.agreement import best_threshold
from sktransformer.tasks._answering.windows import answer_examples, context_windows
from sktransformer.testing import tiny_checkpoint

WORDS = ["le", "chat", "et", "le", "chien", "dort"] * 7
QUESTION = "où ?"


def encode(name, pairs, max_length=32, stride=8):
    encoder = TextEncoder(read_tokenizer(tiny_checkpoint(name)))
    documents = Documents([q for q, _ in pairs], [c for _, c in pairs])
    return context_windows(encoder, documents, Cut(max_length, "chunk", stride=stride))


@pytest.mark.parametrize("name", ["bert", "roberta", "camembert", "modernbert", "flaubert", "gpt2"])
def test_characters_of_tokens(name):
    contexts = ["  Un chat\u00a0dort à l'hôpital ; e\u0301té 👍.\n", "", " \t ", "« œuf »"]
    windows = encode(name, [(QUESTION, context) for context in contexts])
    for context, characters in zip(contexts, windows.characters, strict=True):
        texts = [context[a:b] for a, b in characters]
        assert all(text == text.strip() for text in texts)
        covered = {i for a, b in characters for i in range(a, b)}
        letters = {i for i, character in enumerate(context) if character.isalnum()}
        assert letters <= covered


def test_windows_know_their_part_of_the_context():
    windows = encode("bert", [(QUESTION, " ".join(WORDS)), (QUESTION, "chat"), (QUESTION, "")])
    encoded, tokenizer = windows.encoded, read_tokenizer(tiny_checkpoint("bert"))
    context = tokenizer(" ".join(WORDS), add_special_tokens=False)["input_ids"]
    long = np.flatnonzero(encoded.document == 0)
    assert len(long) > 2
    for w in long:
        ids = encoded.ids[encoded.starts[w] : encoded.starts[w + 1]]
        assert ids[windows.begin[w] : windows.end[w]].tolist() == context[windows.first[w] : windows.stop[w]]
    assert (windows.first[long][1:] == windows.stop[long][:-1] - 8).all()
    assert windows.stop[long][-1] == len(context)
    assert (windows.stop - windows.first)[encoded.document == 2].tolist() == [0]


def test_targets_and_shares():
    contexts = [" ".join(WORDS), " ".join(WORDS), "le chat", " ".join(WORDS)]
    windows = encode("bert", [(QUESTION, context) for context in contexts], stride=12)
    shared = windows.characters[0][windows.first[1] : windows.stop[0]]  # by the first two windows
    assert len(shared) == 12
    places = np.array([[shared[2, 0], shared[4, 1]], [-1, -1], [3, 7], [0, len(contexts[3])]])
    (encoded, targets, shares, _), n_lost = answer_examples(windows, places)
    assert n_lost == 1
    holding = targets.values[:, 0] > 0
    for w in np.flatnonzero(holding):
        d = int(encoded.document[w])
        first, last = (int(targets.values[w, side]) - windows.begin[w] + windows.first[w] for side in (0, 1))
        begin, end = windows.characters[d][first, 0], windows.characters[d][last, 1]
        assert (begin, end) == tuple(places[d])
    assert holding[encoded.document == 0].sum() == 2
    assert not holding[np.isin(encoded.document, (1, 3))].any()
    assert (targets.values[~holding, :2] == 0).all()
    assert targets.values[:, 2].tolist() == windows.begin.tolist()
    assert targets.values[:, 3].tolist() == windows.end.tolist()
    totals = np.bincount(encoded.document, weights=shares)
    np.testing.assert_allclose(totals, [1, 1, 1, 0])
    assert shares[(encoded.document == 0) & holding.numpy()].sum() == pytest.approx(0.5)


def test_a_window_that_holds_a_part_of_the_answer_holds_none():
    context = " ".join(WORDS)
    windows = encode("bert", [(QUESTION, context)])
    last = windows.stop[0] - 1  # the last token of the first window
    begin, end = windows.characters[0][last, 0], windows.characters[0][last + 1, 1]
    (_, targets, *_), _ = answer_examples(windows, np.array([[begin, end]]))
    assert targets.values[0, :2].tolist() == [0, 0]
    assert targets.values[1, 0] > 0


def test_no_documents():
    windows = encode("bert", [])
    (_, targets, shares, _), n_lost = answer_examples(windows, np.zeros((0, 2), dtype=np.int64))
    assert (len(targets.values), len(shares), n_lost) == (0, 0, 0)


@pytest.mark.parametrize("seed", range(5))
def test_threshold_is_the_best_of_all(seed):
    random = np.random.default_rng(seed)
    margins = random.integers(-4, 5, 9).astype(float)
    margins[seed % 3] = -np.inf
    answered, refused = random.random(9), (random.random(9) < 0.5).astype(float)
    found = best_threshold(margins, answered, refused)

    def gained(threshold):
        return float(np.where(margins > threshold, answered, refused).sum())

    grid = np.arange(-6, 6, 0.25)
    assert gained(found) == pytest.approx(max(map(gained, grid)))
    as_good = [abs(t) for t in grid if gained(t) >= gained(found) - 1e-9]
    assert abs(found) <= min(as_good) + 1.0  # half way between two margins, or 1 beyond the last


def test_threshold_at_the_ends():
    margins = np.array([1.0, 2.0, 3.0])
    for answered, refused in itertools.product((np.zeros(3), np.ones(3)), repeat=2):
        found = best_threshold(margins, answered, refused)
        expected = (
            3 if answered[0] < refused[0] else 0
        )  # all refused, or 0 where nothing is gained by another
        assert found > expected if expected else found == 0.0
    assert best_threshold(np.array([-np.inf]), np.ones(1), np.zeros(1)) == 0.0
    assert best_threshold(-margins, np.ones(3), np.zeros(3)) < -3
