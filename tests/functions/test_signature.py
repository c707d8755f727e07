# SPDX-License-Identifier: Apache-2.0
"""What functions return is what their signature says."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.testing import check_restart, check_rewrites
from tests.ops.iterating import plain, until_error

RANGE = di.data.Dataset.range
INT64 = di.TensorSpec([], "int64")
WAYS = [{}, {"num_parallel_calls": 2}, {"num_parallel_calls": di.data.AUTOTUNE}]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "call, signature, before, message",
    [
        (
            lambda x: np.zeros(2 + (x == 3)),
            di.TensorSpec([2], "float64"),
            3,
            r"\(2,\), .* got shape \[3\] and dtype float64",
        ),
        (lambda x: np.zeros(x), di.TensorSpec([None, 2], "float64"), 0, r"got shape \[0\] and dtype float64"),
        (lambda x: np.zeros((2, x)), di.TensorSpec([2, 0], "float64"), 1, r"got shape \[2, 1\] and dtype float64"),
        (lambda x: np.float32(0.5), di.TensorSpec([], "float64"), 0, r"got shape \[\] and dtype float32"),
        (lambda x: x, di.TensorSpec([], "int32"), 0, r"got shape \[\] and dtype int64"),
        (lambda x: "a", INT64, 0, r"got shape \[\] and dtype string"),
        (
            lambda x: ["a"] * 2,
            (di.TensorSpec([], object), INT64),
            0,
            r"component \[1\], got shape \[\] and dtype string",
        ),
        (lambda x: {"a": x}, {"b": INT64}, 0, r"elements nested as {'b': \.}, got {'a': \.}"),
        (lambda x: (x, x), INT64, 0, r"got \(\., \.\)"),
        (lambda x: RANGE(x), INT64, 0, "got a dataset of TensorSpec"),
        (lambda x: x, di.data.DatasetSpec(INT64), 0, r"got shape \[\] and dtype int64"),
        (lambda x: RANGE(x), di.data.DatasetSpec(di.TensorSpec([], object)), 0, "got a dataset of TensorSpec"),
    ],
)
def test_an_element_that_does_not_fit_is_an_error(
    call: Callable[[Any], Any], signature: Any, before: int, message: str, way: dict[str, Any]
) -> None:
    dataset = RANGE(5).map(call, output_signature=signature, **way)
    found, error = until_error(dataset)
    assert len(found) == before
    assert isinstance(error, TypeError)
    assert str(error).startswith("map: map_func must return what output_signature says, ")
    assert str(error).endswith("; change one of them")
    with pytest.raises(TypeError, match=message):
        raise error
    assert any("in map(" in note and "test_signature.py" in note for note in error.__notes__)


@pytest.mark.parametrize(
    "call, signature",
    [
        (lambda x: np.arange(x), di.TensorSpec([None], "int64")),
        (lambda x: np.zeros((x, 2)), di.TensorSpec(None, "float64")),
        (lambda x: (x, {"a": ["t"] * 3}), (INT64, {"a": di.TensorSpec([3], object)})),
        (lambda x: [x, x], [INT64, INT64]),
        (lambda x: np.zeros((2, x)), di.TensorSpec([2, None], "float64")),
        (lambda x: RANGE(x), di.data.DatasetSpec(INT64)),
    ],
)
def test_elements_that_fit_stay_as_they_are(call: Callable[[Any], Any], signature: Any) -> None:
    checked = [plain(x) for x in RANGE(4).map(call, output_signature=signature)]
    assert checked == [plain(x) for x in RANGE(4).map(call)]


@pytest.mark.parametrize(
    "call, signature",
    [
        (lambda x: int(x), INT64),
        (lambda x: np.int8(x), di.TensorSpec([], "int16")),
        (lambda x: np.arange(x, dtype=np.int32), di.TensorSpec([None], "int64")),
        (lambda x: np.zeros((x, 300), np.int32), di.TensorSpec([None, 300], "int64")),
        (lambda x: np.zeros((x, x), np.uint8), di.TensorSpec([None, None], "int64")),
    ],
)
def test_whole_numbers_become_as_wide_as_the_signature_says(call: Callable[[Any], Any], signature: Any) -> None:
    dataset = RANGE(1, 4).map(lambda x: np.array(call(x)), output_signature=signature)
    assert {element.dtype for element in dataset} == {signature.dtype}
    assert [plain(x) for x in dataset] == [plain(x) for x in RANGE(1, 4).map(call)]


def test_neighbouring_maps_are_checked_each() -> None:
    dataset = RANGE(4).map(lambda x: int(x), output_signature=INT64).map(lambda x: x)
    assert dataset.element_spec == INT64
    assert {type(x) for x in dataset} == {np.int64}
    check_rewrites(dataset)
    check_restart(dataset)
    wrong = RANGE(4).map(lambda x: np.zeros(x), output_signature=INT64).map(len)
    assert "output_signature" in str(until_error(wrong)[1])


def test_elements_fetched_by_position_are_checked() -> None:
    dataset = RANGE(4).map(lambda x: np.zeros(x), output_signature=di.TensorSpec([2], "float64")).global_shuffle(seed=1)
    with pytest.raises(TypeError, match="map: map_func must return what output_signature says"):
        list(dataset)


def test_map_rows_is_checked() -> None:
    assert RANGE(3).map_rows(lambda x: x.astype(np.int32), output_signature=INT64).to_list() == [0, 1, 2]
    with pytest.raises(TypeError, match=r"map_rows: map_func must return .*, got shape \[\] and dtype float64"):
        list(RANGE(3).map_rows(lambda x: x / 2, output_signature=INT64))


def test_a_compiled_function_is_checked() -> None:
    numba = pytest.importorskip("numba")
    with pytest.raises(TypeError, match=r"got shape \[\] and dtype float64"):
        list(RANGE(3).map(numba.njit(lambda x: x / 2), output_signature=INT64))
