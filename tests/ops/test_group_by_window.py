# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.sharding.own_rows import batch_size_of
from distinput.testing import check_restart
from distinput.testing.block_sizes import small_blocks
from tests.ops.iterating import plain, until_error

RANGE = di.data.Dataset.range
INFINITE = di.data.INFINITE_CARDINALITY


def lengths(*sizes: int) -> di.data.Dataset:
    """Vectors of these lengths, filled with their length."""
    rows = [np.full(n, n, np.int64) for n in sizes]
    return di.data.Dataset.from_generator(lambda: iter(rows), output_signature=di.TensorSpec([None], "int64"))


def bucketed(dataset: di.data.Dataset, *args: Any, **kwargs: Any) -> di.data.Dataset:
    return dataset.bucket_by_sequence_length(len, *args, **kwargs)


def test_a_full_group_is_sent_at_once_and_the_rest_in_order_of_keys() -> None:
    made = RANGE(8).group_by_window(lambda x: -x % 3, lambda key, rows: rows.batch(9), window_size=2)
    assert made.to_list() == [[0, 3], [1, 4], [2, 5], [6], [7]]


def test_the_size_may_depend_on_the_key() -> None:
    made = RANGE(7).group_by_window(
        lambda x: x % 2, lambda key, rows: rows.batch(9), window_size_func=lambda key: key + 1
    )
    assert made.to_list() == [[0], [2], [1, 3], [4], [6], [5]]


def test_reduce_func_is_given_the_key() -> None:
    made = RANGE(4).group_by_window(lambda x: x % 2, lambda key, rows: rows.map(lambda x: (key, x)), window_size=9)
    assert made.to_list() == [(0, 0), (0, 2), (1, 1), (1, 3)]


@given(st.lists(st.integers(0, 9), max_size=30), st.booleans(), st.integers(1, 4))
def test_len_is_known_without_a_call(sizes: list[int], drop: bool, rows: int) -> None:
    dataset = lengths(*sizes)
    options: dict[str, Any] = {"drop_remainder": drop, "pad_to_bucket_boundary": False}
    called = dataset.bucket_by_sequence_length(lambda x: len(x), [2, 5], [3, 2, 1], **options)
    with small_blocks(rows):
        known = [plain(x) for x in bucketed(dataset, [2, 5], [3, 2, 1], **options)]
    assert known == [plain(x) for x in called] == model(sizes, [2, 5], [3, 2, 1], drop=drop)


def model(sizes: list[int], bounds: list[int], batches: list[int], *, drop: bool) -> list[Any]:
    """Row by row, as the documentation says it."""
    made: list[Any] = []
    waiting: list[list[int]] = [[] for _ in batches]

    def send(bucket: int) -> None:
        rows = waiting[bucket]
        made.append([[size] * size + [0] * (max(rows) - size) for size in rows])
        waiting[bucket] = []

    for size in sizes:
        bucket = sum(size >= bound for bound in bounds)
        waiting[bucket].append(size)
        if len(waiting[bucket]) == batches[bucket]:
            send(bucket)
    for bucket, rows in enumerate(waiting):
        if rows and not drop:
            send(bucket)
    return made


def test_what_came_before_an_error_is_sent() -> None:
    given = lengths(1, 1, 2, 2, 3).bucket_by_sequence_length(lambda x: x if len(x) == 3 else len(x), [2], [2, 2])
    before, error = until_error(given)
    assert [len(batch) for batch in before] == [2, 2]
    assert isinstance(error, InvalidArgumentError)
    assert any("on element array([3, 3, 3])" in note for note in error.__notes__)


@pytest.mark.parametrize(
    "made",
    [
        lambda ds: ds.group_by_window(lambda x: x % 2, lambda key, rows: rows, window_size=2),
        lambda ds: ds.map(np.arange).bucket_by_sequence_length(len, [2], [1, 1]),
    ],
)
def test_the_cardinality_is_infinite_or_unknown(made: Callable[[di.data.Dataset], di.data.Dataset]) -> None:
    # TensorFlow 2.21 answers so.
    assert made(RANGE(3).repeat()).cardinality() == INFINITE
    assert made(RANGE(3)).cardinality() == di.data.UNKNOWN_CARDINALITY


@pytest.mark.parametrize(
    "kwargs, error, message",
    [
        ({}, InvalidArgumentError, "give exactly one of window_size and window_size_func"),
        (
            {"window_size": 1, "window_size_func": len},
            InvalidArgumentError,
            "give exactly one of window_size and window_size_func",
        ),
        ({"window_size": 0}, InvalidArgumentError, "window_size must be greater than zero, got 0"),
        ({"window_size": 1.5}, TypeError, "window_size must be an integer, got 1.5"),
        ({"key_func": 1, "window_size": 1}, TypeError, "key_func must be a function, got 1"),
        ({"reduce_func": 1, "window_size": 1}, TypeError, "reduce_func must be a function, got 1"),
    ],
)
def test_arguments_are_checked(kwargs: Any, error: type[Exception], message: str) -> None:
    functions = {"key_func": lambda x: x, "reduce_func": lambda key, rows: rows}
    with pytest.raises(error, match=f"group_by_window: {message}"):
        RANGE(3).group_by_window(**{**functions, **kwargs})


@pytest.mark.parametrize(
    "key, size, error, message",
    [
        (lambda x: 0.5, 2, TypeError, "group_by_window: key_func must return an integer, got array(0.5)"),
        (lambda x: [0], 2, TypeError, "group_by_window: key_func must return an integer, got array([0])"),
        (lambda x: 0, 0, InvalidArgumentError, "group_by_window: window_size must be greater than zero, got 0"),
    ],
)
def test_what_the_functions_return_is_checked(
    key: Callable[[Any], Any], size: int, error: type[Exception], message: str
) -> None:
    made = RANGE(3).group_by_window(key, lambda key, rows: rows, window_size_func=lambda key: np.int64(size))
    before, failure = until_error(made)
    assert before == []
    assert type(failure) is error
    assert str(failure) == message


def test_reduce_func_must_return_a_data_set() -> None:
    made = RANGE(3).group_by_window(lambda x: 0, lambda key, rows: key, window_size=2)
    with pytest.raises(TypeError, match="group_by_window: reduce_func must return a dataset"):
        made.element_spec  # asking is the act  # noqa: B018
    assert "group_by_window: the function must return a dataset, got int64" in str(until_error(made)[1])


def test_buckets_are_padded_to_their_longest() -> None:
    made = bucketed(lengths(1, 4, 2, 5), [3], [2, 2])
    assert [plain(x) for x in made] == [[[1, 0], [2, 2]], [[4, 4, 4, 4, 0], [5, 5, 5, 5, 5]]]


def test_buckets_may_be_padded_to_their_boundary() -> None:
    made = bucketed(lengths(1, 4), [3, 7], [2, 2, 2], pad_to_bucket_boundary=True)
    assert [plain(x) for x in made] == [[[1, 0]], [[4, 4, 4, 4, 0, 0]]]


def test_an_element_beyond_the_last_boundary_cannot_be_padded_to_it() -> None:
    before, error = until_error(bucketed(lengths(1, 7), [3, 7], [1, 1, 1], pad_to_bucket_boundary=True))
    assert before == [[[1, 0]]]
    assert isinstance(error, InvalidArgumentError)
    assert "elements must have length < max(bucket_boundaries), which is 7" in str(error)


def test_equal_lengths_need_no_padding() -> None:
    made = bucketed(lengths(2, 4, 2), [3], [2, 1], no_padding=True)
    assert [plain(x) for x in made] == [[[4, 4, 4, 4]], [[2, 2], [2, 2]]]


def test_short_buckets_can_be_dropped() -> None:
    made = bucketed(lengths(1, 4, 1), [3], [2, 2], drop_remainder=True)
    assert [plain(x) for x in made] == [[[1], [1]]]
    assert made.element_spec == di.TensorSpec([None, None], "int64")  # as in TensorFlow


def test_there_is_one_batch_size_for_each_bucket() -> None:
    message = r"`len\(bucket_batch_sizes\)` must equal `len\(bucket_boundaries\) \+ 1`, got 1 and 1"
    with pytest.raises(InvalidArgumentError, match=message):
        bucketed(lengths(1), [3], [2])


def test_batch_sizes_are_positive() -> None:
    message = "bucket_by_sequence_length: bucket_batch_sizes must be greater than zero, got 0"
    with pytest.raises(InvalidArgumentError, match=message):
        bucketed(lengths(1), [3], [2, 0])


def test_a_length_is_one_number() -> None:
    made = lengths(1).bucket_by_sequence_length(lambda x: x, [3], [2, 2])
    assert "element_length_func must return one number, got array([1])" in str(until_error(made)[1])


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(1, 3), st.integers(1, 9), st.booleans())
def test_batches_of_one_block_are_those_of_many(sizes: list[int], batch: int, rows: int, drop: bool) -> None:
    batches = [batch, batch + 1, batch + 2]
    expected = model(sizes, [3, 6], batches, drop=drop)
    source = lengths(*sizes).cache()
    source.to_list()  # now all elements come in one block
    dataset = bucketed(source, [3, 6], batches, drop_remainder=drop)
    assert [plain(x) for x in dataset] == expected
    check_restart(dataset)
    with small_blocks(rows):
        assert [plain(x) for x in dataset] == expected


def test_what_comes_before_an_element_that_is_too_long_is_sent() -> None:
    source = lengths(1, 2, 1, 5, 1).cache()
    source.to_list()
    before, error = until_error(bucketed(source, [9], [2, 2], padded_shapes=[4]))
    assert before == [[[1, 0, 0, 0], [2, 2, 0, 0]]]
    assert isinstance(error, DataLossError)


def test_a_restart_behind_an_error_knows_what_is_returned_by_the_elements_without_errors() -> None:
    def make() -> di.data.Dataset:
        one = di.TensorSpec([], "int64")
        mapped = RANGE(3).map(lambda x: 6 // x, output_signature=one)  # an error for the first element
        return mapped.group_by_window(lambda x: x % 2, lambda key, rows: rows.batch(2), window_size=2).ignore_errors()

    iterator = iter(make())
    states = [iterator.state()]
    found = []
    for element in iterator:
        found.append(plain(element))
        states.append(iterator.state())
    assert found == [[3], [6]] or found == [[6], [3]]
    for place, state in enumerate(states):
        assert [plain(element) for element in make().restore(state)] == found[place:]


@pytest.mark.parametrize("key", [2**63, 2**64 - 1])
def test_a_key_that_does_not_fit_is_told_and_may_be_ignored(key: int) -> None:
    keyed = RANGE(3).group_by_window(
        lambda x: np.uint64(key if x == 1 else 0), lambda _, rows: rows.batch(2), window_size=2
    )
    with pytest.raises(InvalidArgumentError, match=f"a key must fit into int64, got {key}"):
        keyed.to_list()
    assert [plain(batch) for batch in keyed.ignore_errors()] == [[0, 2]]


def test_padding_to_a_boundary_needs_one() -> None:
    with pytest.raises(InvalidArgumentError, match="needs a boundary, got none"):
        RANGE(3).bucket_by_sequence_length(lambda x: 1, [], [2], pad_to_bucket_boundary=True)


@pytest.mark.parametrize("key", [(1 << 63) - 1, (1 << 62) + 1, -(1 << 63)])
def test_a_restart_between_groups_of_large_keys(key: int) -> None:
    dataset = RANGE(12).group_by_window(
        lambda x: np.int64(key) if x else np.int64(0), lambda _, group: group.batch(3), window_size=3
    )
    want = (
        [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11], [0]]
        if key < 0
        else [[1, 2, 3], [4, 5, 6], [7, 8, 9], [0], [10, 11]]
    )
    with iter(dataset) as elements:
        for place in range(len(want)):
            assert [x.tolist() for x in dataset.restore(elements.state())] == want[place:]
            next(elements)


def test_the_spec_of_batches_without_padding_may_have_no_rank() -> None:
    unknown = di.data.Dataset.from_generator(
        lambda: iter([np.zeros(1), np.zeros(3)]), output_signature=di.TensorSpec(None, "float64")
    )
    made = unknown.bucket_by_sequence_length(lambda x: len(x), [2], [2, 2], no_padding=True)
    assert made.element_spec == di.TensorSpec(None, "float64")
    assert [x.shape for x in made] == [(1, 1), (1, 3)]


def test_boundaries_fit_into_int64() -> None:
    with pytest.raises(InvalidArgumentError, match="bucket_by_sequence_length: bucket_boundaries must be at most"):
        RANGE(3).bucket_by_sequence_length(lambda x: x, [1 << 70], [1, 1])


@pytest.mark.parametrize("tail", ["drop", "pad"])
def test_the_size_of_full_batches_of_buckets_is_known(tail: str) -> None:
    """A job whose steps need it has it, though the spec leaves it open."""
    made = RANGE(7).bucket_by_sequence_length(lambda x: x, [3, 100], [2, 2, 2], drop_remainder=True).prefetch(1)
    assert [batch_size_of(made.node), made.element_spec] == [2, di.TensorSpec([None], "int64")]
    steps = list(
        di.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).experimental_distribute_dataset(
            made, di.distribute.InputOptions(tail=tail)
        )
    )
    assert len(steps) == 3
    for sizes, drop in (([2, 2, 2], False), ([2, 2, 4], True)):
        other = RANGE(7).bucket_by_sequence_length(lambda x: x, [3, 100], sizes, drop_remainder=drop)
        assert batch_size_of(other.node) is None


def test_full_batches_of_buckets_are_all_delivered_to_replicas() -> None:
    """TensorFlow leaves their size open, so the step in which one replica alone has a batch is delivered."""
    made = RANGE(7).bucket_by_sequence_length(lambda x: x, [3, 100], [2, 2, 2], drop_remainder=True)
    assert made.element_spec == di.TensorSpec([None], "int64")
    two = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    steps = two.distribute_datasets_from_function(lambda context: made)
    assert [[part.tolist() for part in step.values] for step in steps] == [[[0, 1], [3, 4]], [[5, 6], []]]
