# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from distinput.functions.vectorized.answers import Refused, Rules, StandIn
from distinput.functions.vectorized.whole_block import NAMES, NumPy


def test_every_name_is_one_of_numpy() -> None:
    assert all(hasattr(np, name) or name == "norm" for name in NAMES)
    assert {"stack", "where", "add", "linalg"} <= NAMES
    assert not {"random", "save", "fromfile", "memmap", "seterr", "partition", "vectorize"} & NAMES


def test_other_names_are_refused() -> None:
    numpy = NumPy(Rules(measured=False))
    assert numpy.pi == np.pi
    assert numpy.float32 is np.float32
    with pytest.raises(Refused, match=r"np\.random"):
        numpy.random  # noqa: B018 - asking is the act
    with pytest.raises(Refused, match=r"np\.linalg\.svd"):
        numpy.linalg.svd  # noqa: B018


def test_arrays_that_are_made_may_be_indexed_by_an_element() -> None:
    rules = Rules(measured=False)
    found = NumPy(rules).eye(3)[StandIn(np.array([2, 0]), rules)]
    assert found.block.tolist() == [[0, 0, 1], [1, 0, 0]]
