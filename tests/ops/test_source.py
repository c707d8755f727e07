# SPDX-License-Identifier: Apache-2.0
import pickle
from functools import partial
from threading import get_ident
from time import sleep
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.testing import check_dataset
from tests.ops.iterating import plain, until_error

SOURCE = di.data.Dataset.from_source


class Squares:
    """Ten items that say which of them were read."""

    def __init__(self, length: int = 10) -> None:
        self.length = length
        self.read: list[int] = []

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        self.read.append(index)
        return {"root": np.int64(index), "square": np.full(2, index**2)}


class InOneCall(Squares):
    """The same, which reads many in one call."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[list[int]] = []

    def __getitems__(self, indices: list[int]) -> list[Any]:
        self.calls.append(indices)
        return [self[index] for index in indices]


class Waiting(Squares):
    """The same, which takes a while and tells the thread."""

    def __getitem__(self, index: int) -> Any:
        self.read.append(index)
        sleep(0.002)
        return {"root": np.int64(index), "thread": np.int64(get_ident() % 1_000_003)}


class Damaged(Squares):
    """One item that cannot be read, and one of another kind."""

    def __getitem__(self, index: int) -> Any:
        if index == 6:
            raise ValueError("no such record")
        return {"root": np.int64(index), "square": np.full(2, 0.5)} if index == 8 else super().__getitem__(index)


WAYS: list[dict[str, Any]] = [{}, {"num_parallel_calls": 3}, {"num_parallel_calls": di.data.AUTOTUNE}]


def roots(dataset: Any) -> list[int]:
    return [int(element["root"]) for element in dataset]


def _source_of(kind: type[Squares], spec: Any) -> Any:
    return SOURCE(kind(), element_spec=spec)


@pytest.mark.parametrize("ways", WAYS)
@pytest.mark.parametrize("kind", [Squares, InOneCall])
def test_items_come_in_order_and_once(kind: type[Squares], ways: dict[str, Any]) -> None:
    source = kind()
    dataset = SOURCE(source, **ways)
    assert roots(dataset) == sorted(source.read) == list(range(10))
    assert len(dataset) == 10


def test_the_suite() -> None:
    spec = {"root": di.TensorSpec((), "int64"), "square": di.TensorSpec((2,), "int64")}
    held = check_dataset(partial(_source_of, InOneCall, spec), leave_out=("another process", "distributed"))
    assert {"restart", "facts", "blocks", "positions"} <= set(held)


@pytest.mark.parametrize("ways", WAYS)
def test_shuffled_globally_and_sharded(ways: dict[str, Any]) -> None:
    dataset = SOURCE(Squares(), **ways)
    shuffled = roots(dataset.global_shuffle(seed=2))
    assert shuffled != sorted(shuffled) == list(range(10))
    assert roots(dataset.shard(3, 1)) == [1, 4, 7]


def test_other_workers_items_are_not_read() -> None:
    source = Squares()
    spec = di.data.Dataset.from_source(source).element_spec
    source.read.clear()
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    dataset = SOURCE(source, element_spec=spec).batch(4)
    steps = strategy.experimental_distribute_dataset(dataset)
    rows = [part["root"].tolist() for step in steps for part in strategy.experimental_local_results(step)]
    assert [row for part in rows for row in part] == sorted(source.read) == list(range(10))
    source.read.clear()
    assert roots(di.data.experimental.auto_shard_dataset(SOURCE(source, element_spec=spec), 2, 1)) == source.read
    assert len(source.read) == 5


def test_a_restart_reads_nothing_again() -> None:
    spec = {"root": di.TensorSpec((), "int64"), "square": di.TensorSpec((2,), "int64")}
    elements = iter(SOURCE(Squares(100_000), element_spec=spec).global_shuffle(seed=1))
    for _ in range(50_000):
        next(elements)
    again = Squares(100_000)
    rest = SOURCE(again, element_spec=spec).global_shuffle(seed=1).restore(elements.state())
    assert again.read == []
    assert next(rest)["root"] == next(elements)["root"]
    assert len(again.read) <= 2 * 4096  # what is read at once if reading is quick


def test_a_restart_of_slow_items_reads_few() -> None:
    spec = {"root": di.TensorSpec((), "int64"), "thread": di.TensorSpec((), "int64")}
    elements = iter(SOURCE(Waiting(), element_spec=spec))
    next(elements)
    again = Waiting()
    rest = SOURCE(again, element_spec=spec).restore(elements.state())
    assert next(rest)["root"] == 1
    assert len(again.read) <= 8


def test_the_spec_takes_a_few_reads_and_is_kept() -> None:
    source = Squares(1000)
    dataset = SOURCE(source)
    assert source.read == []
    assert dataset.element_spec == {"root": di.TensorSpec((), "int64"), "square": di.TensorSpec((2,), "int64")}
    assert source.read == [0, 1, 333, 500, 999]
    assert dataset.batch(4).element_spec["square"].shape == (None, 2)
    assert len(source.read) == 5


def test_dimensions_that_vary_are_unknown() -> None:
    assert SOURCE([np.zeros(1), np.zeros(2)]).element_spec == di.TensorSpec([None], "float64")


def test_integers_become_as_wide_as_the_spec_says() -> None:
    dataset = SOURCE([1, 2, 3], element_spec=di.TensorSpec([], "int64"))
    assert [x.dtype for x in dataset] == ["int64"] * 3


def test_threads_read() -> None:
    threads = {int(element["thread"]) for element in SOURCE(Waiting(200), num_parallel_calls=2)}
    assert len(threads) == 2
    shuffled = SOURCE(Waiting(200), num_parallel_calls=2).global_shuffle(seed=1)
    assert len({int(element["thread"]) for element in shuffled}) >= 2


def test_worker_processes_read() -> None:
    source = Squares()
    dataset = SOURCE(source, processes=True, num_parallel_calls=2)
    spec = dataset.element_spec
    source.read.clear()
    assert roots(dataset) == roots(dataset[:]) == list(range(10))
    assert source.read == []
    damaged = SOURCE(Damaged(), processes=True, num_parallel_calls=1, element_spec=spec)
    seen, error = until_error(damaged)
    assert roots(seen) == list(range(6))
    assert "at index 6 of a Damaged" in "\n".join(error.__notes__)


def test_a_source_that_cannot_be_sent() -> None:
    class Local(Squares):
        def __getstate__(self) -> Any:
            raise pickle.PicklingError("an open file")

    dataset = SOURCE(Local(), processes=True, num_parallel_calls=1)
    with pytest.raises(TypeError, match=r"from_source: .*Local.* cannot be sent to worker processes: .*an open file"):
        dataset.to_list()


@pytest.mark.parametrize("ways", WAYS)
def test_an_error_names_the_index(ways: dict[str, Any]) -> None:
    seen, error = until_error(SOURCE(Damaged(), **ways))
    assert roots(seen) == list(range(6))
    assert isinstance(error, ValueError)
    assert "at index 6 of a Damaged" in error.__notes__
    with pytest.raises(ValueError, match="no such record") as raised:
        SOURCE(Damaged(), **ways).global_shuffle(seed=1).to_list()
    assert raised.value.__notes__[0] == "at index 6 of a Damaged"
    assert raised.value.__notes__[1].startswith("in from_source(source=Damaged")


@pytest.mark.parametrize("ways", WAYS)
def test_an_item_of_another_kind_names_the_index(ways: dict[str, Any]) -> None:
    with pytest.raises(
        TypeError, match=r"from_source: the source must give .*int64.* at every index, .* float64.* at index 8"
    ):
        SOURCE(Damaged(), **ways).skip(7).to_list()
    spec = {"root": di.TensorSpec((), "int64"), "square": di.TensorSpec((2,), "int64")}
    with pytest.raises(
        TypeError, match=r"from_source: the source must give what element_spec says, .* at index 8; change"
    ):
        SOURCE(Damaged(), element_spec=spec, **ways).skip(7).to_list()


@pytest.mark.parametrize("ways", WAYS)
def test_errors_can_be_ignored(ways: dict[str, Any]) -> None:
    assert roots(SOURCE(Damaged(), **ways).ignore_errors()) == [0, 1, 2, 3, 4, 5, 7, 9]


def test_items_that_differ_where_the_spec_is_found() -> None:
    with pytest.raises(
        TypeError, match=r"from_source: the source must give items of one structure.* index 0 .* index 1;"
    ):
        _ = SOURCE([1, "a"]).element_spec


@pytest.mark.parametrize("ways", WAYS)
def test_a_length_that_changes(ways: dict[str, Any]) -> None:
    source = Squares()
    dataset = SOURCE(source, **ways)
    source.length = 7
    message = "from_source: the source must keep its length while it is read, got 7 items now and 10 when"
    with pytest.raises(di.errors.FailedPreconditionError, match=message):
        dataset.to_list()
    with pytest.raises(di.errors.FailedPreconditionError, match=message):
        dataset.global_shuffle(seed=1).take(1).to_list()
    source = Squares(100_000)
    elements = iter(SOURCE(source, **ways))
    next(elements)
    source.length = 7
    with pytest.raises(
        di.errors.FailedPreconditionError, match="from_source: the source must keep its length"
    ) as raised:
        list(elements)
    assert "at index " in raised.value.__notes__[0]


def test_a_call_for_many_that_returns_too_few() -> None:
    class Short(Squares):
        def __getitems__(self, indices: list[int]) -> list[Any]:
            return [self[index] for index in indices[:2]]

    with pytest.raises(
        di.errors.InvalidArgumentError, match="from_source: __getitems__ must return one item for each index, got 2 for"
    ):
        SOURCE(Short()).to_list()


def test_a_call_for_many_that_fails_is_tried_one_by_one() -> None:
    class Several(InOneCall):
        def __getitems__(self, indices: list[int]) -> list[Any]:
            if 6 in indices:
                raise ValueError("no such record")
            return super().__getitems__(indices)

    seen, error = until_error(SOURCE(Several()))
    assert roots(seen) == list(range(6))
    assert error.__notes__[0] == "at index 6 of a test_a_call_for_many_that_fails_is_tried_one_by_one.<locals>.Several"


def test_a_call_for_many_that_fails_only_for_many() -> None:
    class OneAtMost(Squares):
        def __getitems__(self, indices: list[int]) -> list[Any]:
            if len(indices) > 1:
                raise ValueError("one, please")
            return [self[index] for index in indices]

    with pytest.raises(ValueError, match="one, please") as raised:
        SOURCE(OneAtMost()).to_list()
    assert "each of which can be read alone" in raised.value.__notes__[0]


def test_arrays_that_the_source_holds_cannot_be_changed_by_others() -> None:
    items = [np.zeros(2), np.zeros(2)]
    for element in SOURCE(items):
        if element.flags.writeable:
            element += 1
    assert [item.tolist() for item in items] == [[0, 0], [0, 0]]


def test_large_items_of_a_list_are_read_only_views() -> None:
    items = [np.zeros((1000, 64)), np.ones((1000, 64))]
    elements = list(SOURCE(items))
    assert all(np.shares_memory(element, item) for element, item in zip(elements, items, strict=True))
    assert not any(element.flags.writeable for element in elements)


class Refilling:
    """Items in one buffer."""

    def __init__(self) -> None:
        self.buffer = np.zeros((1000, 64))

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Any:
        self.buffer[:] = index
        return self.buffer


@pytest.mark.parametrize("ways", WAYS[:1])
def test_a_buffer_that_is_filled_again_changes_no_item(ways: dict[str, Any]) -> None:
    kept = list(SOURCE(Refilling(), **ways).rebatch(300))
    assert np.unique(np.concatenate(kept)).tolist() == list(range(6))
    with pytest.raises(
        di.errors.InvalidArgumentError, match="from_source: the source gave an array that it has changed"
    ):
        list(SOURCE(Refilling(), copy=False, **ways))


def test_rows_of_an_array_are_views() -> None:
    array = np.arange(6 << 17).reshape(3, -1)  # a small one is copied
    dataset = SOURCE(array)
    assert dataset.to_list() == array.tolist()
    assert all(np.shares_memory(element, array) for element in dataset)


def test_another_source_is_another_pipeline() -> None:
    state = iter(SOURCE([1, 2, 3])).state()
    assert [plain(x) for x in SOURCE([1, 2, 3]).restore(state)] == [1, 2, 3]
    for other in ([1, 2, 4], [1, 2]):
        with pytest.raises(di.errors.StateError):
            SOURCE(other).restore(state)
    state = iter(SOURCE(Squares())).state()
    with pytest.raises(di.errors.StateError):
        SOURCE(Damaged()).restore(state)


def test_a_source_without_items() -> None:
    assert SOURCE([]).to_list() == []
    with pytest.raises(di.errors.InvalidArgumentError, match="from_source: cannot tell what the items look like"):
        _ = SOURCE([]).element_spec


@pytest.mark.parametrize(
    "source, message",
    [
        ({"a": [1]}, "from_source: the source must give rows by position, got a dict; use from_arrow"),
        ("abc", "from_source: the source must give rows by position, got a str"),
        (np.array(5), "from_source: the source must have rows, got a ndarray that is one value"),
        (iter([1]), "from_source: .* got a list_iterator without __len__ and __getitem__; use from_generator"),
        (di.data.Dataset.range(3), "from_source: .* got a Dataset, which is a dataset already"),
    ],
)
def test_what_is_no_source(source: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        SOURCE(source)


def test_it_prints_as_its_class() -> None:
    assert repr(SOURCE(Squares(), num_parallel_calls=2)).startswith(
        "<Dataset from_source(source=Squares, num_parallel_calls=2): "
    )
