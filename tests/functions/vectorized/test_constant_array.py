# SPDX-License-Identifier: Apache-2.0
import numpy as np

from distinput.functions.vectorized.answers import Rules, StandIn
from distinput.functions.vectorized.whole_block import table_of


def test_parts_of_it_and_results_may_be_indexed_too() -> None:
    rules = Rules(measured=False)
    table, one = table_of(np.arange(12).reshape(3, 4), rules), StandIn(np.array([1, 0]), rules)
    assert table[one].block.tolist() == [[4, 5, 6, 7], [0, 1, 2, 3]]
    assert (table + 1)[:, 1:][one].block.tolist() == [[6, 7, 8], [2, 3, 4]]
    assert table[1, 2] == 6
