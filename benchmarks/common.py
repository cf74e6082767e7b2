"""What every benchmark shares: an interleaved runner, facts of the machine, and the file it writes.

Rules of measuring: the peer has the same weights, documents and threads, and its best documented setting; outputs are
compared before anything is timed; competitors take turns within a round, since a busy machine slows all of them alike,
so that ratios within a round mean something where seconds do not.
"""

from __future__ import annotations

import argparse
import datetime
import json
import logging
import os
import platform
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

# Peers that tokenize in several threads would not be measured on the threads that were asked for, and nobody here may
# look weights up on the network.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch

from sktransformer._engine.cpu.kernels import computing
from sktransformer._engine.devices import has_bfloat16

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"
MINILM = "bundled:all-MiniLM-L6-v2"
E5 = "bundled:multilingual-e5-small"
PACKAGES = (
    "torch",
    "transformers",
    "tokenizers",
    "scikit-learn",
    "skorch",
    "accelerate",
    "sentence-transformers",
    "numpy",
)

# -- taking turns ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """Seconds of one run: on the wall, and of the processor."""

    wall: float
    cpu: float


class Stopwatch:
    """Seconds between `start` and `stop`."""

    def start(self) -> None:
        self._begin = time.perf_counter(), time.process_time()

    def stop(self) -> Sample:
        wall, cpu = self._begin
        return Sample(time.perf_counter() - wall, time.process_time() - cpu)


def timed(run: Callable[[], Any]) -> Callable[[], Sample]:
    """Turn a function into one that returns how long it took."""

    def measure() -> Sample:
        watch = Stopwatch()
        watch.start()
        run()
        return watch.stop()

    return measure


def interleave(
    runs: Mapping[str, Callable[[], Sample]], rounds: int, *, warm_up: bool = True
) -> dict[str, list[Sample]]:
    """Run every competitor once a round, the first one a different one each time."""
    names = list(runs)
    samples: dict[str, list[Sample]] = {name: [] for name in names}
    if warm_up:
        for name in names:
            runs[name]()
    for turn in range(rounds):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            samples[name].append(runs[name]())
            say(f"  round {turn + 1}/{rounds}  {name:<44} {samples[name][-1].wall:9.3f} s")
    return samples


def summary(values: Sequence[float]) -> dict[str, float]:
    """Median, and the smallest and largest value."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def seconds(samples: Sequence[Sample], per: float = 1) -> dict[str, Any]:
    """Summarize wall and processor seconds, divided by `per`."""
    return {
        "wall": summary([sample.wall / per for sample in samples]),
        "cpu": summary([sample.cpu / per for sample in samples]),
    }


def ratio(slow: Sequence[Sample], fast: Sequence[Sample]) -> dict[str, Any]:
    """How many times faster: one ratio a round, then summarized."""
    pairs = list(zip(slow, fast, strict=True))
    return {
        "wall": summary([a.wall / b.wall for a, b in pairs]),
        "cpu": summary([a.cpu / b.cpu for a, b in pairs]),
    }


# -- arithmetic ------------------------------------------------------------------------------------


def forward_flops(config: Any, lengths: Sequence[int] | np.ndarray) -> float:
    """Floating-point operations of a BERT-like encoder's matrix products on real tokens.

    A layer and token: four H x H projections and two H x I ones, two operations an element; and q k^T and its product
    with v, 4 T H over a document of T tokens. A training step is three times as much (forward, and two products
    backward).
    """
    hidden, inner, n_layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    tokens = np.asarray(lengths, dtype=np.float64)
    return float(n_layers * (tokens * (8 * hidden**2 + 4 * hidden * inner) + 4 * hidden * tokens**2).sum())


def matrix_ceiling(dtype: torch.dtype = torch.float32, seconds_each: float = 0.2) -> float:
    """Best rate of a matrix product on the threads in use, in FLOP/s: torch's own product, and that of our engine."""
    best = 0.0
    for context in (torch.inference_mode, partial(computing, torch.device("cpu"), dtype)):
        for m, k, n in [
            (512, 384, 384),
            (512, 384, 1536),
            (1024, 1536, 384),
            (1024, 1024, 1024),
            (2048, 768, 3072),
        ]:
            a, b = torch.randn(m, k).to(dtype), torch.randn(n, k).to(dtype)
            end = time.perf_counter() + seconds_each
            with context():
                while time.perf_counter() < end:
                    start = time.perf_counter()
                    torch.nn.functional.linear(a, b)
                    best = max(best, 2 * m * k * n / (time.perf_counter() - start))
    return best


class Ceiling:
    """The matrix ceiling of this run, in one dtype: the best of the probes taken in its rounds."""

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        self.dtype = dtype
        self.best = 0.0

    def probe(self) -> Sample:
        watch = Stopwatch()
        watch.start()
        self.best = max(self.best, matrix_ceiling(self.dtype))
        return watch.stop()

    def share(self, flops: float, samples: Sequence[Sample]) -> dict[str, Any]:
        """Part of the ceiling that real tokens' products reached, by wall time and by processor time."""
        per_thread = self.best / torch.get_num_threads()
        return {
            "wall": summary([flops / sample.wall / self.best for sample in samples]),
            "cpu": summary([flops / sample.cpu / per_thread for sample in samples]),
        }


# -- memory ----------------------------------------------------------------------------------------


def peak_rss() -> int:
    """Most memory that this process held at once, in bytes.

    Linux counts it for the program itself (VmHWM); getrusage would count what a large parent held before it started us.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def reset_peak() -> int:
    """Begin a new peak where the system allows it; return the memory held now, in bytes."""
    import psutil

    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError as error:
        say(f"  the peak counter can't be reset here ({error}); peaks are since the start of the process")
    return int(psutil.Process().memory_info().rss)


def in_subprocess(module: str, *arguments: str) -> dict[str, Any]:
    """Run ``python -m module arguments`` and return the JSON object on its last line."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


# -- the file --------------------------------------------------------------------------------------


def arguments(description: str, rounds: int, threads: int = 1) -> argparse.ArgumentParser:
    """Return a parser with the options that every benchmark has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=rounds, help="interleaved rounds (%(default)s)")
    parser.add_argument("--threads", type=int, default=threads, help="threads of a process (%(default)s)")
    parser.add_argument(
        "--quick", action="store_true", help="small work, two rounds: does it run? Not a measurement"
    )
    return parser


def prepare(options: argparse.Namespace) -> None:
    """Set the threads, and silence what peers say about themselves."""
    torch.set_num_threads(options.threads)
    warnings.filterwarnings(
        "ignore", module=r"(transformers|skorch|accelerate|sentence_transformers|datasets)\b"
    )
    for name in ("transformers", "accelerate", "sentence_transformers", "datasets"):
        logging.getLogger(name).setLevel(logging.ERROR)
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    if options.quick:
        options.rounds = min(options.rounds, 2)


def write(
    name: str, options: argparse.Namespace, results: Mapping[str, Any], settings: Mapping[str, Any]
) -> Path:
    """Write ``results/NAME.json`` (``results/quick/`` for a quick run) with all that a reader needs to judge it."""
    folder = RESULTS / "quick" if options.quick else RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    record = {
        "name": name,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "commit": commit(),
        "changed_files": len((_git("status", "--porcelain", "--", "sktransformer") or "").splitlines()),
        "quick": options.quick,
        "rounds": options.rounds,
        "threads": options.threads,
        "machine": machine(),
        "versions": versions(),
        "settings": dict(settings),
        "results": dict(results),
    }
    path.write_text(json.dumps(_rounded(record), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    say(f"{path.relative_to(ROOT)}")
    return path


def found_before(name: str, options: argparse.Namespace, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results that ``results/NAME.json`` holds of the same commit and settings, for a run that goes on."""
    path = RESULTS / f"{name}.json"
    if options.quick or not path.exists():
        return {}
    record = json.loads(path.read_text(encoding="utf-8"))
    same = record["commit"] == commit() and record["settings"] == settings
    return dict(record["results"]) if same else {}


def best_precision() -> str:
    """Return the fastest precision of this chip, for everyone."""
    return "bfloat16" if has_bfloat16(torch.device("cpu")) else "float32"


def machine() -> dict[str, Any]:
    """Return what the numbers depend on: processor, its vector flags, cores, memory, load."""
    import psutil

    cpuinfo = Path("/proc/cpuinfo")
    facts: dict[str, str] = {}
    if cpuinfo.exists():
        lines = [line.partition(":") for line in cpuinfo.read_text().splitlines()]
        facts = {key.strip(): value.strip() for key, _, value in lines}
    wanted = ("avx2", "fma", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_tile")
    flags = facts.get("flags", "").split()
    return {
        "processor": facts.get("model name", platform.processor()),
        "flags": [flag for flag in wanted if flag in flags],
        "cores": os.cpu_count(),
        "memory_gb": psutil.virtual_memory().total / 1e9,
        "load_average": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
    }


def versions() -> dict[str, str | None]:
    """Return the versions that took part, None for what is not installed."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


def commit() -> str | None:
    """Return the commit that is checked out, None outside of a repository."""
    return _git("rev-parse", "HEAD")


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _rounded(value: Any) -> Any:
    """Four significant digits: more would claim what the machine's noise does not hold."""
    if isinstance(value, Mapping):
        return {str(key): _rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.4g}")
    return value.item() if isinstance(value, np.generic) else value


# -- odds and ends ---------------------------------------------------------------------------------


def say(line: str) -> None:
    print(line, flush=True)


def bundled(name: str) -> Path:
    """Return the checkpoint folder of ``"bundled:NAME"``."""
    from sktransformer._engine.checkpoints.sources import resolve

    folder = resolve(name).folder
    if folder is None:
        raise ValueError(f"{name!r} is no folder of weights.")
    return Path(folder)


@contextmanager
def classifier_folder(name: str, n_classes: int, **config: Any) -> Iterator[Path]:
    """Make a checkpoint folder with a classification head, drawn once: the same weights for every competitor."""
    import tempfile

    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    source = bundled(name)
    with tempfile.TemporaryDirectory(prefix="bench-") as made:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = AutoModelForSequenceClassification.from_pretrained(
                source, num_labels=n_classes, dtype=torch.float32
            )
        for field, value in config.items():
            setattr(model.config, field, value)
        model.save_pretrained(made)
        AutoTokenizer.from_pretrained(source).save_pretrained(made)
        yield Path(made)
