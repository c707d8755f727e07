# SPDX-License-Identifier: Apache-2.0
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError, NotFoundError
from tests.ops.iterating import plain

Dataset = di.data.Dataset
RANGE = Dataset.range


def test_every_iteration_starts_over() -> None:
    dataset = RANGE(3)
    first = iter(dataset)
    next(first)
    assert dataset.to_list() == [0, 1, 2]
    assert next(first) == 1


def test_elements_are_numpy_values() -> None:
    assert [type(x) for x in RANGE(1)] == [np.int64]
    assert [type(x) for x in Dataset.from_tensor_slices(["a"])] == [bytes]
    (batch,) = Dataset.from_tensor_slices(["a"]).batch(1)
    assert batch.dtype == object
    assert [plain(x) for x in RANGE(2).as_numpy_iterator()] == [0, 1]


def test_length_is_the_cardinality() -> None:
    assert len(RANGE(5).batch(2)) == 3
    with pytest.raises(TypeError, match="The dataset is infinite"):
        len(RANGE(5).repeat())
    with pytest.raises(TypeError, match="The dataset length is unknown"):
        len(RANGE(5).filter(lambda x: True))


def test_a_data_set_is_true_even_when_empty() -> None:
    assert RANGE(0)


def test_enumerate_numbers_the_elements() -> None:
    made = Dataset.from_tensor_slices(["a", "b"]).enumerate(start=5)
    assert made.to_list() == [(5, b"a"), (6, b"b")]
    assert made.element_spec == (di.TensorSpec([], "int64"), di.TensorSpec([], "string"))


def test_apply_must_give_a_data_set() -> None:
    assert RANGE(4).apply(lambda ds: ds.skip(2)).to_list() == [2, 3]
    with pytest.raises(TypeError, match="apply: transformation_func must return a Dataset, got list"):
        RANGE(4).apply(list)
    with pytest.raises(TypeError, match="apply: transformation_func must be a function, got 3"):
        RANGE(4).apply(3)


def test_reduce_carries_any_nest() -> None:
    total, count = RANGE(5).reduce((np.int64(0), np.int64(0)), lambda s, x: (s[0] + x, s[1] + 1))
    assert (int(total), int(count)) == (10, 5)


def test_reduce_gives_a_tuple_element_as_one_argument() -> None:
    assert RANGE(3).enumerate(1).reduce(np.int64(0), lambda s, pair: s + pair[0] * pair[1]) == 1 * 0 + 2 * 1 + 3 * 2


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda s, x: np.float64(s), "reduce: the carried value must keep its dtype int64, got float64"),
        (lambda s, x: (s,), "reduce: the carried value must keep its structure"),
        (3, "reduce: reduce_func must be a function, got 3"),
    ],
)
def test_reduce_checks_its_function(function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        RANGE(3).reduce(np.int64(0), function)


def test_get_single_element() -> None:
    assert plain(RANGE(3).batch(3).get_single_element()) == [0, 1, 2]
    with pytest.raises(InvalidArgumentError, match="get_single_element: Dataset was empty"):
        RANGE(0).get_single_element()
    with pytest.raises(InvalidArgumentError, match="get_single_element: Dataset had more than one element"):
        RANGE(2).get_single_element()


def test_list_files_sorts_the_matches_of_all_patterns(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.csv"):
        (tmp_path / name).write_text("")
    patterns = [str(tmp_path / "*.txt"), str(tmp_path / "c.*")]
    found = [Path(name.decode()).name for name in Dataset.list_files(patterns, shuffle=False)]
    assert found == ["a.txt", "b.txt", "c.csv"]
    shuffled = Dataset.list_files(patterns, seed=1)
    assert sorted(Path(name.decode()).name for name in shuffled) == found


def test_list_files_needs_a_match(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="No files matched pattern"):
        Dataset.list_files(str(tmp_path / "*.none"))


def test_blocks_hold_many_elements() -> None:
    with RANGE(5).map_rows(lambda x: x * 2).iter_blocks() as blocks:
        assert [block.columns[0].array.tolist() for block in blocks] == [[0, 2, 4, 6, 8]]


def test_explain_shows_what_runs() -> None:
    text = RANGE(9).repeat(2).take(5).take(3).explain()
    assert "rules: take_of_take" in text
    assert text.index("described:") < text.index("runs:")
    assert "rules: none" in RANGE(9).repeat(2).take(5).explain()


def test_methods_are_documented_as_their_ops() -> None:
    assert "Stack `batch_size` consecutive elements" in (Dataset.batch.__doc__ or "")
    assert list(Dataset.batch.__signature__.parameters)[:3] == ["self", "batch_size", "drop_remainder"]


@pytest.mark.parametrize("value", [[1, 2], np.arange(3), None])
def test_a_dataset_is_not_made_by_its_class(value: Any) -> None:
    with pytest.raises(
        TypeError, match=r"^Dataset: a dataset is not made by its class, got .*; use Dataset.from_tensor_slices"
    ):
        Dataset(value)


def test_names_of_steps_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    file = str(tmp_path / "a.txt")
    named = [
        Dataset.range(3).enumerate(0, "numbered"),
        di.data.TextLineDataset(file, name="numbered"),
        di.data.TextLineDataset(file, num_parallel_reads=2, name="numbered"),
        di.data.TFRecordDataset(file, name="numbered"),
        di.data.FixedLengthRecordDataset(file, 1, name="numbered"),
        Dataset.range(3, name="numbered"),
        Dataset.from_tensors(3, "numbered"),
        Dataset.list_files(file, name="numbered"),
    ]
    assert [dataset.node.name for dataset in named] == ["numbered"] * len(named)
    assert "[numbered]" in named[0].explain()


@pytest.mark.parametrize("start", [2**63, -(2**63) - 1])
def test_enumerate_begins_with_an_int64(start: int) -> None:
    with pytest.raises(InvalidArgumentError, match="enumerate: start must be at"):
        RANGE(3).enumerate(start)
    assert RANGE(2).enumerate(-(2**63)).to_list() == [(-(2**63), 0), (1 - 2**63, 1)]
