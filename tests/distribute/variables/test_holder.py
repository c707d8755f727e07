# SPDX-License-Identifier: Apache-2.0
"""The values at a parameter server."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from distinput.distribute.coordinator.servers import Holder


def test_variables_have_values_of_their_own() -> None:
    holder = Holder("ps")
    holder.make(0, np.zeros(2))
    holder.make(1, np.ones(()))
    holder.update(0, "assign_add", np.array([1.0, 2.0]))
    holder.update(1, "assign", np.array(5.0))
    first, second = holder.read_all([0, 1])
    np.testing.assert_array_equal(first, [1.0, 2.0])
    assert second == 5.0


def test_an_update_returns_the_new_value_of_a_scalar_alone() -> None:
    holder = Holder("ps")
    holder.make(0, np.zeros(2))
    holder.make(1, np.zeros(()))
    assert holder.update(0, "assign_add", np.ones(2)) is None
    assert holder.update(1, "assign_add", np.ones(())) == 1.0


def test_a_value_that_was_read_does_not_change() -> None:
    holder = Holder("ps")
    holder.make(0, np.zeros(2))
    before = holder.read(0)
    holder.update(0, "assign_add", np.ones(2))
    np.testing.assert_array_equal(before, [0, 0])


def test_additions_at_the_same_time_are_all_counted() -> None:
    holder = Holder("ps")
    holder.make(0, np.zeros((), np.int64))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: holder.update(0, "assign_add", np.ones((), np.int64)), range(400)))
    assert holder.read(0) == 400


def test_a_dropped_variable_is_gone() -> None:
    holder = Holder("ps")
    holder.make(0, np.zeros(2))
    holder.make(1, np.zeros(2), [0])
    with pytest.raises(KeyError, match="no longer at ps"):
        holder.read(0)
