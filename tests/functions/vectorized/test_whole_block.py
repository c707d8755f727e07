# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from distinput.functions.chain import Chain
from distinput.functions.vectorized.answers import Refused
from distinput.functions.vectorized.whole_block import WholeBlock
from tests.functions.vectorized.blocks import EYE, IMAGES, LABELS, MEAN, SCALARS, VECTORS, block_of, judged


def test_elements_may_be_tuples_and_dicts() -> None:
    nest = {"v": VECTORS, "y": (LABELS, SCALARS)}
    assert judged(lambda d: {**d, "n": [1, 2], "w": d["v"] * 2, "one": 1, "f": 0.5}, nest) == "whole blocks"
    assert judged(lambda x, y: [(x.astype(np.float32) / 255 - MEAN), EYE[y], None], (IMAGES, LABELS)) == "whole blocks"


@pytest.mark.parametrize(
    "function, nest, reason",
    [
        (lambda x: (x, b"text"), VECTORS, "returns text"),
        (lambda x: (x, "text"), VECTORS, "returns text"),
        (lambda x: (x, [x, x]), VECTORS, "a list of arrays inside"),
        (lambda x: x, np.array([b"a", b"b"], object), "only booleans, integers and floats"),
    ],
)
def test_what_is_no_number_is_refused(function: Callable[..., Any], nest: Any, reason: str) -> None:
    assert reason in judged(function, nest)


def test_several_functions_are_called_one_after_the_other() -> None:
    functions: list[Callable[..., Any]] = [lambda x: [x, 3], lambda x, k: {"x": x[:2] * k}, lambda d: d["x"]]
    whole, chain = WholeBlock(functions, measured=False), Chain(functions)
    rows = block_of(VECTORS)
    made, ways = whole(rows)
    whole.compared(rows, made, ways, chain)
    assert [x.tolist() for x in made.elements()] == [chain(x).tolist() for x in rows.elements()]


def test_no_memory_is_shared_with_the_input_or_among_results() -> None:
    rows = block_of(VECTORS)
    made = WholeBlock([lambda x: (x, x, x[1:], EYE[0])], measured=False)(rows)[0]
    arrays = [column.array for column in made.columns]  # type: ignore[attr-defined]
    held = [*arrays, VECTORS, EYE]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in held[i + 1 :])
    assert all(array.flags.writeable for array in arrays)


def test_a_result_that_differs_from_a_single_call_is_found_out() -> None:
    rows = block_of(VECTORS)
    whole = WholeBlock([lambda x: x * 2], measured=False)
    with pytest.raises(Refused, match="differed from the one for a single element"):
        whole.compared(rows, *whole(rows), lambda x: x * 3)
    with pytest.raises(Refused, match="another structure"):
        whole.compared(rows, *whole(rows), lambda x: (x, x))
