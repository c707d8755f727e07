# SPDX-License-Identifier: Apache-2.0
"""`cache(shared=)`: jobs share what is alike; another function, tokenizer or file is another cache, never a stale one."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.writers.manifest import MANIFEST

RANGE = di.data.Dataset.range
SCALE = 2


class Encoder:
    """An object that can be called, as tokenizers are."""

    def __init__(self, offset: int) -> None:
        self.offset = offset

    def __call__(self, x: Any) -> Any:
        return x + self.offset


def scaled(x: Any) -> Any:
    return x * SCALE


encoder: Any = Encoder(1)
words: Any = None
other = ModuleType("other_module_of_the_user")


@pytest.fixture
def caches(tmp_path: Path) -> Callable[[Any], bool]:
    """Whether a function over a range makes a cache of its own; what comes from it is what the function says now."""
    folder = tmp_path / "caches"

    def is_new(function: Any) -> bool:
        before = os.listdir(folder) if folder.exists() else []
        dataset = RANGE(4).map(function).cache(shared=str(folder))
        assert dataset.to_list() == dataset.to_list() == RANGE(4).map(function).to_list()
        return len(os.listdir(folder)) > len(before)

    return is_new


def test_what_a_function_does_and_reads_makes_the_cache(caches: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def offset(n: int) -> Any:
        return lambda x: x + n

    here = sys.modules[__name__]
    assert caches(offset(1))
    assert not caches(offset(1))
    assert caches(offset(2))  # a closure
    assert caches(lambda x: scaled(x))
    assert not caches(lambda x: scaled(x))
    monkeypatch.setattr(here, "SCALE", 3)  # a global of a function that is called
    assert caches(lambda x: scaled(x))
    monkeypatch.setattr(here, "scaled", lambda x: x - SCALE)
    assert caches(lambda x: scaled(x))
    assert caches(lambda x: encoder(x))
    assert not caches(lambda x: encoder(x))
    monkeypatch.setattr(here, "encoder", Encoder(1))  # made again, and alike
    assert not caches(lambda x: encoder(x))
    monkeypatch.setattr(encoder, "offset", 5)
    assert caches(lambda x: encoder(x))
    monkeypatch.setattr(Encoder, "__call__", lambda self, x: x - self.offset)
    assert caches(lambda x: encoder(x))


def test_functions_of_other_modules_of_the_user_count_by_what_they_do(caches: Any) -> None:
    found = []
    for factor in (1, 1, 2):  # as a file that was edited
        exec(f"def encode(x): return x * {factor}", other.__dict__)
        found.append(caches(lambda x: other.encode(x)))
    assert found == [True, False, True]


def test_tokenizers_of_packages_count_by_what_they_hold(caches: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizers = pytest.importorskip("tokenizers")

    def made(*vocabulary: str) -> Any:
        model = tokenizers.models.WordLevel({word: n for n, word in enumerate(vocabulary)}, unk_token=vocabulary[0])
        return tokenizers.Tokenizer(model)

    here = sys.modules[__name__]
    found = []
    for vocabulary in (("u", "a"), ("u", "a"), ("u", "b", "a")):
        monkeypatch.setattr(here, "words", made(*vocabulary))
        found.append(caches(lambda x: x + words.encode("a").ids[0]))
    assert found == [True, False, True]


def test_changed_files_make_another_cache(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1\n2\n")

    def lengths() -> list[Any]:
        dataset = di.data.TextLineDataset(str(tmp_path / "a.txt")).map(len)
        return list(dataset.cache(shared=str(tmp_path / "caches")).to_list())

    assert lengths() == lengths() == [1, 1]
    (tmp_path / "a.txt").write_text("100\n2\n3\n")
    assert lengths() == [3, 1, 1]
    assert len(os.listdir(tmp_path / "caches")) == 2


JOB = """
import sys
import distinput as di
calls = []
def see(x):
    calls.append(x)
    return x + 1
ds = di.data.Dataset.range(9).map(see, output_signature=di.TensorSpec([], "int64")).cache(shared=sys.argv[1])
print(ds.to_list(), len(calls))
"""


def test_jobs_in_two_processes_share_a_cache(tmp_path: Path) -> None:
    printed = [
        subprocess.run(
            [sys.executable, "-c", JOB, str(tmp_path / "caches")],
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        ).stdout
        for _ in range(2)
    ]
    numbers = list(range(1, 10))
    assert printed == [f"{numbers} 9\n", f"{numbers} 0\n"]
    (folder,) = (tmp_path / "caches").iterdir()
    assert (folder / MANIFEST).exists()


def test_a_state_goes_on_from_a_shared_cache(tmp_path: Path) -> None:
    make = RANGE(20).shuffle(9, seed=1).cache(shared=str(tmp_path)).batch
    elements = [batch.tolist() for batch in make(3)]
    iterator = iter(make(3))
    next(iterator)
    assert [batch.tolist() for batch in make(3).restore(iterator.state())] == elements[1:]


def test_arguments_are_checked(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidArgumentError, match="filename is one cache and shared a folder of many; give one of them, got"
    ):
        RANGE(3).cache("a", shared="b")
    ds = RANGE(3)
    for several in (["a"], ["a", "b"], [], ("a",)):
        calls: list[Any] = [
            lambda path: ds.cache(path),
            lambda path: ds.cache(shared=path),
            lambda path: ds.snapshot(path),
            lambda path: ds.save(path),
            lambda path: ds.write(path, "arrow"),
            lambda path: di.io.TFRecordWriter(path),
        ]
        for call in calls:
            with pytest.raises(TypeError, match="a path must be str, bytes or a path object, got a "):
                call(several)
    with pytest.raises(InvalidArgumentError, match="cache: max_bytes must be greater than zero, got 0"):
        RANGE(3).cache(shared="b", max_bytes=0)
    with pytest.warns(di.errors.InputWarning, match="max_bytes"):
        RANGE(300).cache(shared=str(tmp_path), max_bytes=10).to_list()
