# SPDX-License-Identifier: Apache-2.0
"""The counter of saves."""

import numpy as np

from distinput.train.checkpoint import SaveCounter


def test_it_is_used_as_a_variable_is() -> None:
    counter = SaveCounter()
    counter.assign(3).assign_add(2).assign_sub(1)
    assert (int(counter), counter.numpy(), counter.read_value(), float(counter), bool(counter)) == (4, 4, 4, 4.0, True)
    assert counter == 4
    assert counter + 1 == 5
    assert range(9)[counter] == 4
    assert f"{counter:03d}" == "004"
    assert np.asarray(counter).dtype == np.int64
    assert repr(counter) == "<save_counter 4>"
