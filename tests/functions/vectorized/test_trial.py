# SPDX-License-Identifier: Apache-2.0
import numpy as np

import distinput as di
from distinput.functions.vectorized.whole_block import Vectorizer, tried


def test_made_up_elements_show_what_a_pass_would() -> None:
    source = di.data.Dataset.range(5).batch(2).node
    assert tried(Vectorizer([np.negative], np.negative, measured=False), source) == "whole blocks"
    assert "np.exp is not exact" in tried(Vectorizer([np.exp], np.exp, measured=False), source)


def test_text_is_not_made_up() -> None:
    source = di.data.Dataset.from_tensor_slices(["a", "b"]).node
    assert "nests of tuples and dicts of numbers" in tried(
        Vectorizer([np.negative], np.negative, measured=False), source
    )
