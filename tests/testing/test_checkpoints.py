"""Tiny checkpoints: whole, loadable by the Auto classes, the same everywhere, and quick."""

import os
import subprocess
import sys
import time

import pytest
import torch
import transformers
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

from sktransformer._engine.checkpoints.folder_checks import check_folder
from sktransformer._engine.checkpoints.quiet import quiet_transformers
from sktransformer.testing.checkpoints import (
    CAUSAL,
    ENCODERS,
    SENTENCES,
    SEQ2SEQ,
    TINY_NAMES,
    tiny_checkpoint,
)

TEXTS = ["the quick fox", "l'été est très chaud ! où est le chat ?"]
LM_HEADS = {
    **dict.fromkeys(ENCODERS, "AutoModelForMaskedLM"),
    **dict.fromkeys(SEQ2SEQ, "AutoModelForSeq2SeqLM"),
    **dict.fromkeys(CAUSAL, "AutoModelForCausalLM"),
}


def test_groups_share_out_the_names():
    assert TINY_NAMES == ENCODERS + SEQ2SEQ + CAUSAL
    assert len(set(TINY_NAMES)) == len(TINY_NAMES)
    assert {
        "bert",
        "roberta",
        "camembert",
        "xlm-roberta",
        "flaubert",
        "flaubert-prenorm",
        "modernbert",
    } <= set(ENCODERS)
    assert {"t5", "bart", "marian"} == set(SEQ2SEQ)
    assert {"gpt2", "llama"} == set(CAUSAL)


@pytest.mark.parametrize("name", TINY_NAMES)
def test_a_checkpoint_is_whole_small_and_has_all_its_weights(name):
    folder = tiny_checkpoint(name)
    check_folder(folder)
    assert sum(path.stat().st_size for path in folder.rglob("*")) < 800_000
    assert (folder / "model.safetensors").is_file()
    with quiet_transformers():
        model, report = getattr(transformers, LM_HEADS[name]).from_pretrained(
            folder, output_loading_info=True
        )
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert model.config.vocab_size == len(AutoTokenizer.from_pretrained(folder))


@pytest.mark.parametrize("name", [name for name in TINY_NAMES if name != "flaubert-prenorm"])
def test_a_checkpoint_runs(name):
    folder = tiny_checkpoint(name)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with quiet_transformers():
        model = AutoModel.from_pretrained(folder).eval()
    batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
    if name in SEQ2SEQ:
        batch["decoder_input_ids"] = batch["input_ids"]
    with torch.inference_mode():
        hidden = model(**batch)[0]
    assert hidden.shape[-1] == 32
    assert torch.isfinite(hidden).all()
    ids = tokenizer(TEXTS[1])["input_ids"]
    assert tokenizer.unk_token_id not in ids or name == "gpt2"  # its unknown token is its end token
    assert len(set(ids)) > 5


@pytest.mark.parametrize("name", ["bert", "camembert", "flaubert", "modernbert", "bart", "gpt2"])
def test_a_checkpoint_takes_a_head(name):
    with quiet_transformers():
        model = AutoModelForSequenceClassification.from_pretrained(tiny_checkpoint(name), num_labels=3)
    assert model.config.num_labels == 3


@pytest.mark.parametrize("name", [n for n in TINY_NAMES if n not in ("t5", "llama")])
def test_a_full_window_can_be_read(name):
    tokenizer = AutoTokenizer.from_pretrained(tiny_checkpoint(name))
    assert tokenizer.model_max_length == 64


def test_prenorm_is_the_other_flaubert():
    configs = [
        transformers.AutoConfig.from_pretrained(tiny_checkpoint(n)) for n in ("flaubert", "flaubert-prenorm")
    ]
    assert [config.pre_norm for config in configs] == [False, True]


def test_a_folder_of_its_own_may_be_changed(tmp_path):
    own = tiny_checkpoint("bert", tmp_path / "deep" / "bert")
    assert own == tmp_path / "deep" / "bert"
    shared = tiny_checkpoint("bert")
    assert {path.name for path in own.iterdir()} == {path.name for path in shared.iterdir()}
    (own / "config.json").unlink()
    assert (shared / "config.json").is_file()
    assert tiny_checkpoint("bert", str(own)) == own  # written again, also where the folder exists
    check_folder(own)


def test_building_leaves_the_random_state_and_says_nothing(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("SKTRANSFORMER_CACHE", str(tmp_path))
    torch.manual_seed(5)
    before = torch.get_rng_state()
    for name in TINY_NAMES:
        tiny_checkpoint(name)
    assert torch.equal(torch.get_rng_state(), before)
    assert capfd.readouterr() == ("", "")


def test_weights_do_not_depend_on_the_random_state(tmp_path, monkeypatch):
    contents = []
    for seed in (1, 2):
        monkeypatch.setenv("SKTRANSFORMER_CACHE", str(tmp_path / str(seed)))
        torch.manual_seed(seed)
        contents.append((tiny_checkpoint("bert") / "model.safetensors").read_bytes())
    assert contents[0] == contents[1]


@pytest.mark.slow
def test_every_process_builds_the_same_bytes(tmp_path):
    code = (
        "import hashlib; from sktransformer.testing.checkpoints import TINY_NAMES, tiny_checkpoint\n"
        "for name in TINY_NAMES:\n"
        "    for path in sorted(tiny_checkpoint(name).rglob('*')):\n"
        "        print(name, path.name, hashlib.sha256(path.read_bytes()).hexdigest())\n"
    )
    processes = []
    for i in ("0", "1"):
        environment = {**os.environ, "SKTRANSFORMER_CACHE": str(tmp_path / i), "PYTHONHASHSEED": i}
        processes.append(
            subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE)
        )
    outputs = [process.communicate(timeout=300)[0].splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) > 3 * len(TINY_NAMES)


def test_a_second_call_costs_next_to_nothing():
    tiny_checkpoint("camembert")
    start = time.perf_counter()
    tiny_checkpoint("camembert")
    assert time.perf_counter() - start < 0.1


def test_an_unknown_name():
    with pytest.raises(
        ValueError, match=r"there is no tiny checkpoint 'camenbert'.*Did you mean 'camembert'\?"
    ):
        tiny_checkpoint("camenbert")


def test_importing_builds_nothing_and_loads_no_torch():
    code = "import sys, sktransformer.testing.checkpoints; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_sentences_are_french_and_english():
    assert any("été" in sentence for sentence in SENTENCES)
    assert any("the" in sentence.split() for sentence in SENTENCES)


def test_an_empty_folder_is_not_the_current_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="folder is empty"):
        tiny_checkpoint("bert", "")
    assert list(tmp_path.iterdir()) == []
