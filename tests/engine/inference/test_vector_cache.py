"""Vectors kept by content: bounds, folders that processes share, files that are damaged."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path

import joblib
import numpy as np
import pytest

from sktransformer._engine.inference import vector_cache as room
from sktransformer._engine.inference.vector_cache import (
    FOLDER,
    Entry,
    FolderCache,
    MemoryCache,
    cache_for,
    key_of,
)


def entry(value: float, cut: bool = False) -> Entry:
    return Entry(np.full(4, value, dtype=np.float32), cut)


def keys(n: int) -> list[bytes]:
    return [key_of(b"c", (str(i),)) for i in range(n)]


def test_keys_depend_on_texts_and_context() -> None:
    all_keys = {
        key_of(b"c", ("ab", "c")),
        key_of(b"c", ("a", "bc")),
        key_of(b"c", ("abc",)),
        key_of(b"d", ("abc",)),
    }
    assert len(all_keys) == 4
    assert key_of(b"c", ("abc",)) in all_keys


def test_memory_forgets_what_was_not_used_for_longest() -> None:
    cache, (a, b, c) = MemoryCache(limit=32), keys(3)
    cache.put({a: entry(1), b: entry(2)})
    assert cache.get([a])[a].vector.tolist() == [1, 1, 1, 1]
    cache.put({c: entry(3, cut=True)})
    found = cache.get([a, b, c])
    assert set(found) == {a, c}
    assert (found[a].cut, found[c].cut) == (False, True)
    cache.put({a: entry(9)})
    assert cache.get([a])[a].vector[0] == 1  # content decides, so it is the same vector
    assert len(cache) == 2
    cache.clear()
    assert cache.get([a, c]) == {}


def test_memory_keeps_no_more_than_the_rows() -> None:
    cache, matrix = MemoryCache(), np.ones((1000, 4), dtype=np.float32)
    cache.put({keys(1)[0]: Entry(matrix[0], False)})
    kept = cache.get(keys(1))[keys(1)[0]].vector
    assert kept.base is None
    matrix[:] = 7
    assert kept.tolist() == [1, 1, 1, 1]


def test_a_folder_is_shared(tmp_path: Path) -> None:
    one, other = FolderCache(tmp_path / "new" / "folder"), FolderCache(tmp_path / "new" / "folder")
    a, b = keys(2)
    assert one.get([a]) == {}
    one.put({a: entry(1, cut=True)})
    assert other.get([a, b])[a].cut is True
    other.put({b: entry(2)})
    assert one.get([a, b])[b].vector.tolist() == [2, 2, 2, 2]
    one.put({})
    assert len(list((tmp_path / "new" / "folder").iterdir())) == 2


def test_vectors_of_several_widths_live_together(tmp_path: Path) -> None:
    cache, (a, b) = FolderCache(tmp_path), keys(2)
    cache.put({a: entry(1)})
    cache.put({b: Entry(np.ones(7, dtype=np.float32), False)})
    assert {len(found.vector) for found in FolderCache(tmp_path).get([a, b]).values()} == {4, 7}


@pytest.mark.parametrize("content", [b"", b"not numpy", b"\x93NUMPY\x01\x00"])
def test_a_damaged_file_is_left_aside_with_a_warning(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "broken.npy").write_bytes(content)
    (tmp_path / ".x.unfinished").write_bytes(content)  # of a process that was killed
    cache, (a,) = FolderCache(tmp_path), keys(1)
    with pytest.warns(UserWarning, match=r"broken\.npy can't be read .* encoded anew") as record:
        assert cache.get([a]) == {}
    cache.put({a: entry(1)})
    assert list(cache.get([a])) == [a]  # without another warning, which would be an error here
    assert len(record) == 1


def test_nothing_is_left_of_a_write_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(room.np, "save", full)
    with pytest.raises(OSError, match="No space left"):
        FolderCache(tmp_path).put({keys(1)[0]: entry(1)})
    assert list(tmp_path.iterdir()) == []


def _write(folder: str, start: int) -> None:
    cache = FolderCache(Path(folder))
    for i in range(start, start + 10):
        cache.put({keys(40)[i]: entry(i)})
        found = cache.get(keys(40))
        assert all(one.vector[0] == keys(40).index(key) for key, one in found.items())


def test_processes_write_side_by_side(tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    workers = [context.Process(target=_write, args=(str(tmp_path), start)) for start in (0, 5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    found = FolderCache(tmp_path).get(keys(40))
    assert sorted(one.vector[0] for one in found.values()) == list(range(15))


def test_threads_read_and_write(tmp_path: Path) -> None:
    for cache in (MemoryCache(limit=160), FolderCache(tmp_path)):
        wrong: list[bytes] = []

        def work(cache: room.VectorCache = cache, wrong: list[bytes] = wrong) -> None:
            for i, key in enumerate(keys(20)):
                cache.put({key: entry(i)})
                wrong += [k for k, one in cache.get(keys(20)).items() if one.vector[0] != keys(20).index(k)]

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []


def test_what_memory_may_be(tmp_path: Path) -> None:
    assert cache_for(None) is None
    assert cache_for(joblib.Memory(None)) is None
    assert cache_for("memory") is cache_for("memory")
    memory = joblib.Memory(tmp_path, verbose=0)
    folder = cache_for(tmp_path)
    assert isinstance(folder, FolderCache)
    assert folder.folder == tmp_path / FOLDER
    assert cache_for(str(tmp_path)) is cache_for(memory) is folder
    folder.put({keys(1)[0]: entry(1)})
    memory.clear(warn=False)
    assert FolderCache(folder.folder).get(keys(1)) == {}
    for wrong in (3, True, "", object()):
        with pytest.raises(TypeError, match=r'memory must be None, "memory", a folder or a joblib\.Memory'):
            cache_for(wrong)
