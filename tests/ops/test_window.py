# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from tests.ops.iterating import plain, until_error
from tests.traced_memory import peak_memory

RANGE = di.data.Dataset.range


@pytest.mark.parametrize(
    "args, want",
    [
        ((2,), [[0, 1], [2, 3], [4]]),
        ((2, None, 1, True), [[0, 1], [2, 3]]),
        ((3, 1), [[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4], [4]]),
        ((2, 3), [[0, 1], [3, 4]]),
        ((2, 1, 2), [[0, 2], [1, 3], [2, 4], [3], [4]]),
        ((2, 1, 2, True), [[0, 2], [1, 3], [2, 4]]),
        ((1, 9), [[0]]),
        ((7, 1, 1, True), []),
    ],
)
def test_size_shift_and_stride(args: Any, want: list[list[int]]) -> None:
    made = RANGE(5).window(*args)
    assert [plain(window) for window in made] == want
    assert len(made) == len(want)


def test_every_component_is_a_data_set_of_its_own() -> None:
    made = RANGE(3).map(lambda x: {"a": x, "b": (x * 10,)}).window(2)
    assert [plain(window) for window in made] == [{"a": [0, 1], "b": ([0, 10],)}, {"a": [2], "b": ([20],)}]
    scalar = di.data.DatasetSpec(di.TensorSpec([], "int64"))
    assert made.element_spec == {"a": scalar, "b": (scalar,)}


def test_windows_can_be_batched_again() -> None:
    assert RANGE(5).window(3, 1, drop_remainder=True).flat_map(lambda w: w.batch(3)).to_list() == [
        [0, 1, 2],
        [1, 2, 3],
        [2, 3, 4],
    ]


def test_windows_of_windows() -> None:
    assert [plain(x) for x in RANGE(4).window(2).window(2)] == [[[0, 1], [2, 3]]]


def test_windows_cannot_be_batched_as_they_are() -> None:
    message = "a component that is a dataset cannot be batched; flat_map or zip it first"
    assert message in str(until_error(RANGE(4).window(2).batch(2))[1])


@pytest.mark.parametrize(
    "args, error, message",
    [
        ((0,), InvalidArgumentError, "size must be greater than zero, got 0"),
        ((2, 0), InvalidArgumentError, "shift must be greater than zero, got 0"),
        ((2, 1, 0), InvalidArgumentError, "stride must be greater than zero, got 0"),
        ((1.5,), TypeError, "size must be an integer, got 1.5"),
    ],
)
def test_arguments_are_checked(args: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"window: {message}"):
        RANGE(3).window(*args)


def test_windows_of_sparse_tensors_are_datasets_of_them() -> None:
    sparse = di.data.Dataset.from_tensor_slices(np.ones((3, 2))).sparse_batch(1, [None])
    windows = sparse.enumerate().window(2)
    assert windows.element_spec[1] == di.data.DatasetSpec(di.SparseTensorSpec([None, None], "float64"))
    assert [[each.shape for each in window] for _, window in windows] == [[(1, 2), (1, 2)], [(1, 2)]]


def test_windows_hand_out_str_and_rows_as_their_input_does() -> None:
    rows = [[{"a": 1, "t": "x"}], [{"a": 2, "t": "y"}, {"a": 3, "t": "z"}], []]
    ds = di.data.Dataset.from_arrow(pa.table({"m": rows, "t": ["é", "b", "c"]}), nested="rows", text="str")
    windows = ds.window(2)
    assert [plain(window) for window in windows] == [{"m": rows[:2], "t": ["é", "b"]}, {"m": rows[2:], "t": ["c"]}]
    assert windows.element_spec["t"] == di.data.DatasetSpec(di.TensorSpec([], bytes))
    assert windows.flat_map(lambda window: window["m"]).to_list() == rows
    assert windows.flat_map(lambda window: window["m"].ragged_batch(2)).to_list() == [rows[:2], rows[2:]]
    assert windows.flat_map(di.data.Dataset.zip).to_list() == ds.to_list()


def test_windows_of_sparse_text_hand_out_str() -> None:
    ds = di.data.Dataset.from_tensor_slices(["a", "b", "c"]).batch(1).sparse_batch(2, [1]).as_text()
    assert [[sparse.values.tolist() for sparse in window] for window in ds.window(2)] == [[["a", "b"], ["c"]]]
    assert ds.window(2).element_spec.element_spec == ds.element_spec
    mixed = di.data.Dataset.zip((ds, ds)).map(lambda a, b: (a, a.values)).as_text()
    assert [(sparse.values.tolist(), text.tolist()) for sparse, text in mixed] == [(["a", "b"],) * 2, (["c"],) * 2]


def test_what_lies_between_windows_is_not_held() -> None:
    spec = di.TensorSpec([60_000], "int64")
    windows = RANGE(400).map(lambda x: np.full(60_000, x), output_signature=spec).window(2, shift=200)
    found: list[Any] = []
    most = peak_memory(lambda: found.extend([int(x[0]) for x in window] for window in windows))
    assert found == [[0, 1], [200, 201]]
    assert most < 40 * 60_000 * 8


@pytest.mark.parametrize("bad", range(9))
@pytest.mark.parametrize("drop", [True, False])
def test_an_error_between_two_windows_has_a_place(bad: int, drop: bool) -> None:
    def checked(x: Any) -> Any:
        if x == bad:
            raise ValueError(f"element {x}")
        return x

    windows = RANGE(9).map(checked).window(2, shift=4, drop_remainder=drop)
    want = [places for places in ([0, 1], [4, 5], [8]) if bad not in places and (len(places) == 2 or not drop)]
    assert [plain(window) for window in windows.ignore_errors()] == want
    with iter(windows.ignore_errors()) as elements:
        for place in range(len(want) + 1):
            assert [plain(window) for window in windows.ignore_errors().restore(elements.state())] == want[place:]
            next(elements, None)
