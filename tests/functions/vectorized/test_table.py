# SPDX-License-Identifier: Apache-2.0
import numpy as np

from distinput.functions.vectorized import answers
from distinput.functions.vectorized.answers import FUNCTIONS


def test_every_function_in_the_table_is_one_of_numpy() -> None:
    assert answers.Rules  # which fills the table
    assert len(FUNCTIONS) > 40
    assert all(function.__module__.startswith("numpy") for function in FUNCTIONS)
    assert np.partition not in FUNCTIONS
