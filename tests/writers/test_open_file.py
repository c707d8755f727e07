# SPDX-License-Identifier: Apache-2.0
"""Small blocks are joined before they are written."""

import os
from pathlib import Path

import numpy as np
from pyarrow import ipc

from distinput.columns.block import Block
from distinput.values.nest import LEAF
from distinput.values.spec import Spec
from distinput.writers.arrow import ArrowWriter
from distinput.writers.open_file import OpenFile
from distinput.writers.stage import Stage


def test_small_blocks_are_joined(tmp_path: Path) -> None:
    stage = Stage(str(tmp_path), "writing")
    assert stage.take()
    file = OpenFile(stage, ArrowWriter(), Spec.leaf((), np.int64), "a", 0)
    for number in range(10):
        file.write(Block.of_elements(LEAF, [np.int64(number)] * number))
    assert file.size >= 45 * 8
    made = file.end()
    file.discard()
    reader = ipc.open_file(os.path.join(stage.folder, "a"))
    assert (made.rows, reader.num_record_batches) == (45, 1)
    assert made.bytes == os.path.getsize(os.path.join(stage.folder, "a"))
    stage.remove()


def test_what_is_discarded_leaves_nothing(tmp_path: Path) -> None:
    stage = Stage(str(tmp_path), "writing")
    stage.take()
    file = OpenFile(stage, ArrowWriter(), Spec.leaf((), np.int64), "a", 0)
    file.write(Block.of_elements(LEAF, [np.int64(1)]))
    file.discard()
    stage.remove()
    assert os.listdir(tmp_path) == []
