# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys

import numpy as np
import pytest

import distinput as di
from tests.ops.iterating import plain

RANGE = di.data.Dataset.range


def test_one_after_the_other() -> None:
    assert RANGE(2).concatenate(RANGE(5, 7)).to_list() == [0, 1, 5, 6]


def test_shapes_are_weakened_to_the_common_one() -> None:
    made = RANGE(4).batch(2, True).concatenate(RANGE(3).batch(3, True))
    assert made.element_spec == di.TensorSpec([None], "int64")
    assert [plain(x) for x in made] == [[0, 1], [2, 3], [0, 1, 2]]


@pytest.mark.parametrize(
    "other, message",
    [
        (RANGE(2, output_type="int32"), "concatenate: all datasets must have the same dtypes, got int64 and int32"),
        (
            RANGE(2).map(lambda x: (x, x)),
            "concatenate: all datasets must have the same structure of elements, got . and",
        ),
        (
            RANGE(2).map(lambda x: {"a": x}),
            "concatenate: all datasets must have the same structure of elements, got . and",
        ),
    ],
)
def test_structure_and_dtype_must_agree(other: di.data.Dataset, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        RANGE(2).concatenate(other).element_spec  # asking is the act  # noqa: B018


@pytest.mark.parametrize(
    "first, second",
    [
        (RANGE(2), RANGE(2).map(lambda x: x / 2)),
        (RANGE(2).map(lambda x: x / 2), RANGE(2)),
        (RANGE(2).filter(lambda x: x > 5).concatenate(RANGE(2).map(lambda x: x + 1)), RANGE(2).map(lambda x: (x, x))),
    ],
)
def test_what_functions_make_is_compared_in_the_iteration(first: di.data.Dataset, second: di.data.Dataset) -> None:
    elements = iter(first.concatenate(second))
    assert [next(elements), next(elements)] == first.to_list()
    with pytest.raises(TypeError, match="concatenate: all datasets must have the same"):
        next(elements)


def test_data_sets_as_components_must_agree() -> None:
    with pytest.raises(TypeError, match="concatenate: all datasets must have the same element type"):
        RANGE(2).window(2).concatenate(RANGE(2, output_type="int32").window(2)).element_spec  # noqa: B018


@pytest.mark.parametrize(
    "first, second, count",
    [
        (RANGE(2), RANGE(3), 5),
        (RANGE(2), RANGE(3).repeat(), di.data.INFINITE_CARDINALITY),
        (RANGE(3).filter(lambda x: x > 0), RANGE(3), di.data.UNKNOWN_CARDINALITY),
    ],
)
def test_the_cardinality_is_the_sum(first: di.data.Dataset, second: di.data.Dataset, count: int) -> None:
    assert first.concatenate(second).cardinality() == count


def test_rows_of_both_are_reached_by_position() -> None:
    made = RANGE(3).concatenate(RANGE(10, 14)).skip(2).take(3)
    assert made.to_list() == [2, 10, 11]
    assert np.asarray(list(RANGE(3).concatenate(RANGE(10, 14)).shuffle(7, seed=1))).sum() == 3 + 46


@pytest.mark.fresh_process
def test_elements_are_compared_also_where_asserts_are_left_out() -> None:
    program = "import distinput as di; r = di.data.Dataset.range; r(2).concatenate(r(2).map(lambda x: x / 2)).to_list()"
    run = subprocess.run(
        [sys.executable, "-O", "-c", program], capture_output=True, text=True, check=False, timeout=300
    )
    assert "TypeError: concatenate: all datasets must have the same dtypes" in run.stderr
