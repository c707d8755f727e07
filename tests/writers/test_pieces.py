# SPDX-License-Identifier: Apache-2.0
"""Pieces of files that end together."""

from pathlib import Path

import numpy as np
import pytest

from distinput.columns.block import Block
from distinput.errors import InvalidArgumentError
from distinput.values.nest import LEAF
from distinput.values.spec import Spec
from distinput.writers import open_file as module
from distinput.writers.elements import ElementsWriter
from distinput.writers.open_file import OpenFile, Pieces
from distinput.writers.stage import Stage


def block(*numbers: int) -> Block:
    return Block.of_elements(LEAF, list(map(np.int64, numbers)))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(str(tmp_path), "writing")
    assert made.take()
    return made


def pieces(stage: Stage, **given: object) -> Pieces:
    def begin(number: int, piece: int) -> OpenFile:
        return OpenFile(stage, ElementsWriter(), Spec.leaf((), np.int64), f"{number}-{piece}.arrow", 0)

    return Pieces("save", begin, 100, **given)  # type: ignore[arg-type]


def test_pieces_end_together_and_stand_by_the_numbers_of_their_files(stage: Stage) -> None:
    first = pieces(stage)
    first.file(3).write(block(3))
    first.file(1).write(block(1, 1))
    assert not first.full
    first.file(3).write(block(*range(20)))
    assert first.full
    first.end()
    again = pieces(stage, ended=first.ended, numbers=first.numbers)
    again.file(1).write(block(1))
    again.file(0).write(block(0))
    again.end()
    files, counts = again.in_order()
    assert [file.name for file in files] == ["0-0.arrow", "1-0.arrow", "1-1.arrow", "3-0.arrow"]
    assert ([file.rows for file in files], counts) == ([1, 2, 1, 21], [1, 2, 1])
    stage.discard()


def test_there_is_at_least_one_piece(stage: Stage) -> None:
    none = pieces(stage)
    assert not none.full
    none.end()
    none.end()
    assert [file.rows for file in none.in_order()[0]] == [0]
    stage.discard()


def test_too_many_files_are_refused(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_OPEN", 2)
    open_pieces = pieces(stage)
    open_pieces.file(0).write(block(1))
    open_pieces.file(1).write(block(1))
    with pytest.raises(
        InvalidArgumentError, match="save: shard_func may name 2 files, which are open at once; it named"
    ):
        open_pieces.file(2).write(block(1))
    open_pieces.discard()
    stage.discard()
