# SPDX-License-Identifier: Apache-2.0
"""Blocks are small inside of `small_blocks`, everywhere, and as before behind it."""

import pytest

import distinput as di
from distinput.columns import block as sizes
from distinput.testing import small_blocks


def lengths(dataset: di.data.Dataset) -> list[int]:
    with dataset.iter_blocks() as blocks:
        return [len(block) for block in blocks]


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_sources_and_functions_make_small_blocks(rows: int) -> None:
    with small_blocks(rows):
        assert max(lengths(di.data.Dataset.range(11))) == rows
        assert max(lengths(di.data.Dataset.range(11).map(lambda x: x))) <= rows
    assert lengths(di.data.Dataset.range(11)) == [11]


def test_an_error_inside_leaves_nothing_small() -> None:
    before = sizes.block_rows
    with pytest.raises(KeyError), small_blocks(1):
        raise KeyError
    assert sizes.block_rows is before
    assert lengths(di.data.Dataset.range(11)) == [11]
