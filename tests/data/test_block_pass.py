# SPDX-License-Identifier: Apache-2.0
"""A pass in blocks goes on from a state in the middle of a block."""

import json

import numpy as np
import pytest

import distinput as di
from distinput.columns.block import concat_blocks
from distinput.data.writing import BlockPass

Dataset = di.data.Dataset


@pytest.mark.parametrize("rows", [0, 1, 3, 7])
def test_it_goes_on_from_the_middle_of_a_block(rows: int) -> None:
    dataset = Dataset.range(20).shuffle(20).batch(2)
    first = BlockPass(dataset)
    block = next(first.blocks())
    whole = list(map(list, block.elements()))
    state = json.loads(json.dumps(first.state(rows)))
    first.close()
    rest = BlockPass(Dataset.range(20).shuffle(20).batch(2), state)
    found = [list(element) for block in rest.blocks() for element in block.elements()]
    rest.close()
    assert len(whole) == 10
    assert found == whole[rows:]


def test_blocks_are_a_few_mebibytes() -> None:
    passed = BlockPass(Dataset.from_tensor_slices(np.arange(12).repeat(1 << 17).reshape(12, 1 << 17)))
    blocks = list(passed.blocks())
    passed.close()
    assert [block.size for block in blocks] == [4, 4, 4]
    assert [int(row[0]) for row in concat_blocks(blocks).elements()] == list(range(12))
