# SPDX-License-Identifier: Apache-2.0
"""Files that a pass writes on its way."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distinput.columns.block import Block
from distinput.errors import InvalidArgumentError
from distinput.values.nest import LEAF
from distinput.values.spec import Spec
from distinput.writers import open_file as module
from distinput.writers.elements import ElementsWriter
from distinput.writers.open_file import KEPT, KeptFiles, file_numbers
from distinput.writers.stage import Stage

SPEC = Spec.leaf((), np.int64)


def block(*numbers: int) -> Block:
    return Block.of_elements(LEAF, list(map(np.int64, numbers)))


def test_files_end_by_bytes_or_by_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(str(tmp_path), "cache")
    assert stage.take()
    monkeypatch.setattr(module, "SHARD_BYTES", 16)
    files = KeptFiles(stage, ElementsWriter(), SPEC)
    monkeypatch.setattr(module, "rows_within", lambda *_: 1)
    files.write(block(*range(5)))
    assert files.size >= 40
    made = files.end()
    assert [file.rows for file in made] == [4, 1]
    assert all(KEPT.fullmatch(file.name) for file in made)
    by_function = KeptFiles(stage, ElementsWriter(), SPEC, lambda x: x % 3)
    by_function.write(block(*range(6)))
    by_function.write(block(1, 1))
    assert [file.rows for file in by_function.end()] == [2, 4, 2]
    by_function.discard()
    stage.discard()


def test_files_end_with_a_block_where_a_pass_can_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(str(tmp_path), "cache")
    assert stage.take()
    monkeypatch.setattr(module, "SHARD_BYTES", 16)
    files = KeptFiles(stage, ElementsWriter(), SPEC)
    found = []
    for number in range(5):
        files.write(block(number))
        found.append(files.cut())
    assert [None if made is None else len(made) for made in found] == [None, 1, None, 2, None]
    again = KeptFiles(stage, ElementsWriter(), SPEC, done=found[3] or ())
    again.write(block(4))
    assert [file.rows for file in again.end()] == [2, 2, 1]
    files.discard()
    dealt = KeptFiles(stage, ElementsWriter(), SPEC, int)
    dealt.write(block(1, 2, 3))
    assert dealt.cut() is None
    dealt.discard()
    stage.discard()


def test_there_is_at_least_one_file(tmp_path: Path) -> None:
    stage = Stage(str(tmp_path), "cache")
    stage.take()
    assert [file.rows for file in KeptFiles(stage, ElementsWriter(), SPEC).end()] == [0]
    stage.discard()


@pytest.mark.parametrize("wrong", [-1, 1.0, True, None, "a"])
def test_a_function_returns_numbers(wrong: Any) -> None:
    with pytest.raises(
        InvalidArgumentError, match="shard_func must return the number of a file, an integer from 0 on, got"
    ):
        file_numbers(lambda _: wrong, block(1))


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_OPEN", 3)
    stage = Stage(str(tmp_path), "cache")
    stage.take()
    files = KeptFiles(stage, ElementsWriter(), SPEC, int)
    with pytest.raises(
        InvalidArgumentError, match="shard_func may name 3 files, which are open at once; it named more"
    ):
        files.write(block(*range(9)))
    files.discard()
    stage.discard()
