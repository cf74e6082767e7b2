"""The runner, the arithmetic and the file of the benchmarks; nothing here is timed."""

import argparse
import json
import sys

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig, BertModel

from benchmarks import common
from benchmarks.common import Sample


def test_competitors_take_turns_and_another_begins_each_round():
    order = []

    def run(name):
        order.append(name)
        return Sample(1.0, 1.0)

    samples = common.interleave({n: (lambda n=n: run(n)) for n in "abc"}, 3, warm_up=False)
    assert "".join(order) == "abcbcacab"
    assert {name: len(values) for name, values in samples.items()} == {"a": 3, "b": 3, "c": 3}


def test_warm_up_is_not_counted():
    calls = []
    samples = common.interleave({"a": lambda: calls.append(1) or Sample(1.0, 1.0)}, 2)
    assert len(calls) == 3
    assert len(samples["a"]) == 2


def test_ratio_is_taken_within_a_round():
    slow, fast = [Sample(8, 4), Sample(3, 4), Sample(9, 4)], [Sample(2, 1), Sample(1, 2), Sample(3, 4)]
    found = common.ratio(slow, fast)
    assert found["wall"] == {"median": 3, "min": 3, "max": 4}
    assert found["cpu"] == {"median": 2, "min": 1, "max": 4}


def test_seconds_are_divided():
    assert common.seconds([Sample(8, 4)], per=4)["wall"]["median"] == 2


def test_flops_are_those_that_torch_counts():
    config = BertConfig(
        vocab_size=20, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4,
        attn_implementation="eager",
    )  # fmt: skip
    model = BertModel(config, add_pooling_layer=False).eval()
    total = 0
    for length in (5, 17):
        with FlopCounterMode(display=False) as counter, torch.inference_mode():
            model(torch.zeros(1, length, dtype=torch.int64))
        total += counter.get_total_flops()
    assert common.forward_flops(config, [5, 17]) == total


def test_share_of_ceiling(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    ceiling = common.Ceiling()
    ceiling.best = 100.0  # of two threads, so one thread reaches 50 a processor second
    share = ceiling.share(60.0, [Sample(wall=1.0, cpu=1.5)])
    assert share["wall"]["median"] == pytest.approx(0.6)
    assert share["cpu"]["median"] == pytest.approx(0.8)


def test_a_probe_never_lowers_the_ceiling(monkeypatch):
    rates = iter([3.0, 5.0, 4.0])
    monkeypatch.setattr(common, "matrix_ceiling", lambda dtype: next(rates))
    ceiling = common.Ceiling()
    for _ in range(3):
        ceiling.probe()
    assert ceiling.best == 5.0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak counter is Linux's")
def test_peak_sees_what_was_freed_again():
    held = common.reset_peak()
    block = np.ones(8_000_000)  # 64 MB
    del block
    assert 55e6 < common.peak_rss() - held < 120e6


def test_file_says_where_it_comes_from(tmp_path, monkeypatch):
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    monkeypatch.setattr(common, "ROOT", tmp_path)
    options = argparse.Namespace(quick=False, rounds=3, threads=2)
    path = common.write(
        "speed", options, {"ratio": np.float64(1.23456789), "n": np.int64(3)}, {"batch_size": 32}
    )
    record = json.loads(path.read_text(encoding="utf-8"))
    assert path == tmp_path / "speed.json"
    assert record["results"] == {"ratio": 1.235, "n": 3}
    assert record["settings"] == {"batch_size": 32}
    assert (record["rounds"], record["threads"], record["quick"]) == (3, 2, False)
    assert record["versions"]["torch"] == torch.__version__
    assert record["commit"] is None  # the folder is no repository


def test_quick_runs_overwrite_no_measurement(tmp_path, monkeypatch):
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    monkeypatch.setattr(common, "ROOT", tmp_path)
    options = argparse.Namespace(quick=True, rounds=1, threads=1)
    assert common.write("speed", options, {}, {}) == tmp_path / "quick" / "speed.json"


def test_a_run_goes_on_from_the_same_commit_and_settings_only(tmp_path, monkeypatch):
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    monkeypatch.setattr(common, "ROOT", tmp_path)
    options = argparse.Namespace(quick=False, rounds=1, threads=1)
    settings = {"learning_rate": 2e-4}
    assert common.found_before("speed", options, settings) == {}
    common.write("speed", options, {"seeds": {"0": 1.5}}, settings)
    assert common.found_before("speed", options, settings) == {"seeds": {"0": 1.5}}
    assert common.found_before("speed", options, {"learning_rate": 1e-4}) == {}
    assert common.found_before("speed", argparse.Namespace(quick=True), settings) == {}
    monkeypatch.setattr(common, "commit", lambda: "another")
    assert common.found_before("speed", options, settings) == {}


def test_a_failing_subprocess_shows_its_last_words():
    with pytest.raises(RuntimeError, match=r"No module named benchmarks\.absent"):
        common.in_subprocess("benchmarks.absent")
