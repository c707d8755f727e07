# SPDX-License-Identifier: Apache-2.0
import numpy as np

from distinput.functions.vectorized.whole_block import Vectorizer
from tests.functions.vectorized.blocks import VECTORS, block_of


def test_a_function_that_fails_for_many_blocks_is_not_tried_any_more() -> None:
    verdict = Vectorizer([np.reciprocal], np.reciprocal, measured=True)
    zeros = block_of(np.zeros((4, 2)))
    for _ in range(8):
        assert verdict.reason is None
        assert verdict.made(zeros) is None
    assert str(verdict).startswith("element by element, since the values of 8 blocks in a row")


def test_large_elements_are_left_out_unless_they_are_asked_for() -> None:
    auto = Vectorizer([np.negative], np.negative, measured=False)
    assert not auto.refuses(8.0)
    assert auto.refuses(1e6)
    assert "elements of 1,000,000 bytes gain little" in str(auto)
    assert not Vectorizer([np.negative], np.negative, measured=True).refuses(1e6)


def test_a_reason_given_before_is_kept() -> None:
    verdict = Vectorizer([np.negative], np.negative, measured=True, reason="of something")
    assert verdict.refuses(8.0)
    assert verdict.made(block_of(VECTORS)) is None
    assert str(verdict) == "element by element, since of something"


def test_a_whole_block_is_said_to_be_one() -> None:
    verdict = Vectorizer([np.negative], np.negative, measured=False)
    assert str(verdict) == "whole blocks are tried"
    assert verdict.made(block_of(VECTORS)) is not None
    assert str(verdict) == "whole blocks"
