# SPDX-License-Identifier: Apache-2.0
import time
from collections.abc import Callable, Iterator
from itertools import accumulate
from time import monotonic, sleep
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.errors import FailedPreconditionError, InputWarning
from distinput.ops import generator
from distinput.run.run import CoreUse
from distinput.values.buffers import copy_of
from tests.ops.iterating import plain, until_error

GENERATOR = di.data.Dataset.from_generator
SCALAR = di.TensorSpec([], "int64")


def test_each_pass_calls_the_generator_anew() -> None:
    dataset = GENERATOR(lambda: iter([1, 2]), output_signature=SCALAR)
    assert dataset.to_list() == dataset.to_list() == [1, 2]


def test_arguments_are_handed_over() -> None:
    assert GENERATOR(range, args=(2, 5), output_signature=SCALAR).to_list() == [2, 3, 4]


def test_values_are_cast() -> None:
    assert GENERATOR(lambda: [np.float64(1.5), True], output_signature=SCALAR).to_list() == [1, 1]


@pytest.mark.parametrize(
    "value, dtype",
    [
        *[(x, dtype) for x in (1.5, 1.0, 1j, "1", b"1", [1, 2.0], ["1"]) for dtype in ("int32", "uint8", "bool")],
        *[(x, dtype) for x in (1j, "1.5", b"1") for dtype in ("float32", "float64")],
        *[(x, "bool") for x in (1, -1, [0, 1])],
        ("1", "complex64"),
    ],
)
def test_a_value_of_python_that_is_of_another_kind_is_refused(value: Any, dtype: str) -> None:
    """As `tf.data` refuses it: a fraction would be lost, and text or a number is no truth value."""
    dataset = GENERATOR(lambda: iter([value]), output_signature=di.TensorSpec(None, dtype))
    with pytest.raises(TypeError, match=f"could not be converted to the expected type {dtype}: .*element 0; "):
        dataset.to_list()


SIZES = st.sampled_from([3, 1 << 13, 1 << 17])
"""Below and above the sizes from which memory is used again, and from which elements are blocks of their own."""
REFILLS = ("one buffer", "a ring", "now and then a new one", "a view", "two components", "changed afterwards")


def refilling(how: str, size: int, count: int, ring: int) -> Iterator[Any]:
    """Arrays full of 0, 1, 2, ..., in memory that is filled again in some way."""
    buffers = [np.zeros(size) for _ in range(ring)]
    for i in range(count):
        if how == "now and then a new one" and i % ring == 0:
            buffers[0] = np.zeros(size)
        buffer = buffers[i % ring] if how == "a ring" else buffers[0]
        buffer[:] = i
        if how == "a view":
            yield buffer[1:]
        elif how == "two components":
            yield buffer, buffers[-1]
        else:
            yield buffer
        if how == "changed afterwards":
            buffer[:] = -1
            buffers[0] = np.zeros(size)


@pytest.mark.parametrize("how", REFILLS)
@settings(max_examples=15, deadline=None)
@given(SIZES, st.integers(1, 9), st.integers(1, 3), st.sampled_from(["as they are", "shuffled", "cut"]))
def test_buffers_that_are_filled_again_change_no_element(how: str, size: int, count: int, ring: int, then: str) -> None:
    def generator() -> Iterator[Any]:
        return refilling(how, size, count, ring)

    wanted = [np.array(x[0] if isinstance(x, tuple) else x)[0] for x in generator()]
    spec = di.TensorSpec([None], "float64")
    dataset = GENERATOR(generator, output_signature=(spec, spec) if how == "two components" else spec)
    dataset = {"shuffled": dataset.shuffle(4, seed=1), "cut": dataset.rebatch(size // 2)}.get(then, dataset)
    kept = [x[0] if isinstance(x, tuple) else x for x in dataset]
    assert all((array == array[0]).all() for array in kept if then != "cut")
    if then == "cut":
        assert sorted(set(np.concatenate(kept).tolist())) == wanted
    else:
        assert sorted(float(array[0]) for array in kept) == wanted


@pytest.mark.parametrize("ring", [1, 5])
def test_a_generator_that_says_so_is_not_copied_and_a_false_promise_is_seen(ring: int) -> None:
    held = [np.full((1000, 64), float(i)) for i in range(ring)]
    spec = di.TensorSpec([None, 64], "float64")

    def promised(fills: int) -> Iterator[Any]:
        for i in range(3 * ring):
            if i < fills:
                held[i % ring][:] = i
            yield held[i % ring]

    kept = list(GENERATOR(promised, args=(0,), output_signature=spec, copy=False))
    assert all(np.shares_memory(element, array) for element, array in zip(kept, held * 3, strict=True))
    assert not any(element.flags.writeable for element in kept)
    with pytest.raises(
        di.errors.InvalidArgumentError, match="from_generator: `generator` gave an array that it has changed"
    ):
        list(GENERATOR(promised, args=(3 * ring,), output_signature=spec, copy=False))


PROMISES: dict[str, Callable[[int], Any]] = {
    "an array": lambda i: np.full(300_000, i, np.uint8),
    "a view": lambda i: np.full(300_001, i, np.uint8)[1:],
    "bytes": lambda i: np.frombuffer(bytes([i]) * 300_000, np.uint8),
    "memory of the pool": lambda i: copy_of(np.full(300_000, i, np.uint8)),
}


@pytest.mark.parametrize("way", PROMISES)
def test_a_new_array_in_memory_that_was_freed_keeps_the_promise(way: str) -> None:
    spec = di.TensorSpec([300_000], "uint8")
    dataset = GENERATOR(lambda: map(PROMISES[way], range(40)), output_signature=spec, copy=False)
    assert [int(array[-1]) for array in dataset] == list(range(40))


def test_a_false_promise_is_seen_through_new_views() -> None:
    whole, half = np.zeros(600_000, np.uint8), bytearray(300_000)

    def views() -> Iterator[Any]:
        for i in range(3):
            whole[:] = i
            yield whole[: len(half)]

    def unpacked() -> Iterator[Any]:
        for i in range(3):
            half[:] = bytes([i]) * len(half)
            yield np.frombuffer(half, np.uint8)

    for refilled in (views, unpacked):
        dataset = GENERATOR(refilled, output_signature=di.TensorSpec([len(half)], "uint8"), copy=False)
        with pytest.raises(di.errors.InvalidArgumentError, match="gave an array that it has changed"):
            list(dataset)


def test_a_false_promise_is_seen_through_tensors_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    spec = di.TensorSpec([300_000], "uint8")
    ring = torch.zeros((2, 300_000), dtype=torch.uint8)

    def refilled() -> Iterator[Any]:
        for i in range(4):
            ring[i % 2] = i
            yield ring[i % 2].numpy()

    with pytest.raises(di.errors.InvalidArgumentError, match="gave an array that it has changed"):
        list(GENERATOR(refilled, output_signature=spec, copy=False))
    made = (torch.full((300_000,), i, dtype=torch.uint8).numpy() for i in range(40))
    assert [int(array[-1]) for array in GENERATOR(lambda: made, output_signature=spec, copy=False)] == list(range(40))


def test_items_of_a_list_are_not_copied() -> None:
    held = [np.zeros((1000, 64)), np.ones((1000, 64))]
    for items in (held, tuple(held)):
        elements = list(GENERATOR(lambda items=items: items, output_signature=di.TensorSpec([None, 64], "float64")))
        assert all(np.shares_memory(element, array) for element, array in zip(elements, held, strict=True))
        assert not any(element.flags.writeable for element in elements)


def test_states_do_not_depend_on_copies() -> None:
    spec = di.TensorSpec([], "int64")
    state = iter(GENERATOR(range, args=(3,), output_signature=spec)).state()
    assert [int(x) for x in GENERATOR(range, args=(3,), output_signature=spec, copy=False).restore(state)] == [0, 1, 2]


def test_a_list_stands_for_a_tuple() -> None:
    spec = (SCALAR, {"a": di.TensorSpec([None], "float32")})
    assert [plain(x) for x in GENERATOR(lambda: [[1, {"a": [0.5]}]], output_signature=spec)] == [(1, {"a": [0.5]})]


def test_the_older_way_to_give_a_signature() -> None:
    dataset = GENERATOR(lambda: [(1, "a")], output_types=("int32", "string"), output_shapes=((), ()))
    assert dataset.element_spec == (di.TensorSpec([], "int32"), di.TensorSpec([], "string"))
    assert dataset.to_list() == [(1, b"a")]


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: GENERATOR([1], output_signature=SCALAR),
            r"from_generator: `?generator`? must be a function, got \[1\]",
        ),
        (lambda: GENERATOR(range), "from_generator: give output_signature, or output_types with output_shapes"),
        (
            lambda: GENERATOR(range, output_types="int64", output_signature=SCALAR),
            "from_generator: give output_signature, or output_types with output_shapes, and not both",
        ),
        (
            lambda: GENERATOR(range, output_shapes=[], output_signature=SCALAR),
            "from_generator: output_shapes does not go with output_signature",
        ),
    ],
)
def test_arguments_are_checked(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize(
    "spec, bad, message",
    [
        (SCALAR, [1], "yielded an element of shape (1,) where an element of shape () was expected (element 1)"),
        (SCALAR, "x", "yielded an element that could not be converted to the expected type int64: 'x' (element 1"),
        (di.TensorSpec([], "string"), 3, "element 1 must be text for a signature of strings, got 3"),
        ((SCALAR, SCALAR), (1, 2, 3), "yielded an element that does not match the expected structure (., .)"),
    ],
)
def test_elements_before_one_that_does_not_fit_arrive(spec: Any, bad: Any, message: str) -> None:
    good = (0, 0) if isinstance(spec, tuple) else "a" if spec.dtype == object else 0
    before, error = until_error(GENERATOR(lambda: iter([good, bad]), output_signature=spec))
    assert before == [b"a" if good == "a" else good]
    assert isinstance(error, TypeError)
    assert message in str(error)


def test_an_error_of_the_generator_comes_after_its_elements() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise KeyError("gone")

    before, error = until_error(GENERATOR(failing, output_signature=SCALAR))
    assert before == [1]
    assert isinstance(error, KeyError)


def test_a_restart_passes_over_what_was_given() -> None:
    dataset = GENERATOR(lambda: iter(np.arange(5)), output_signature=SCALAR)
    it = iter(dataset)
    next(it), next(it)
    assert [int(x) for x in dataset.restore(it.state())] == [2, 3, 4]


ARRAYS = st.builds(
    lambda shape, dtype: np.ones(shape, dtype),
    st.sampled_from([(), (0,), (2,), (3,), (2, 1)]),
    st.sampled_from(["int64", "int32", "float32", object]),
)


@given(st.lists(st.one_of(ARRAYS, st.tuples(ARRAYS, ARRAYS), st.tuples(ARRAYS, st.just(1))), max_size=4), st.booleans())
def test_arrays_that_are_as_said_are_what_a_longer_look_gives(elements: list[Any], pair: bool) -> None:
    leaf = di.TensorSpec([None], "int64")
    dataset = GENERATOR(lambda: elements, output_signature=(leaf, di.TensorSpec(None, "float32")) if pair else leaf)

    def outcome() -> Any:
        found = []
        try:
            for element in dataset:
                parts = element if isinstance(element, tuple) else (element,)
                found.append([(part.dtype, part.tolist()) for part in parts])
        except TypeError as error:
            return found, str(error)
        return found, None

    quick = outcome()
    with mock.patch.object(generator, "_are_as_said", return_value=False):
        assert outcome() == quick


@pytest.mark.parametrize("rows", [[1.0, [], [[2.0]]], [[1.0], 2.0], [b"a", [b"b", b"c"]], [[b"a"], b"b"]])
def test_scalars_and_arrays_may_follow_each_other(rows: list[Any]) -> None:
    text = isinstance(np.asarray(rows[0]).reshape(-1)[0], bytes)
    given = [np.array(row, object if text else np.float32) if isinstance(row, list) else row for row in rows]
    dataset = GENERATOR(lambda: given, output_signature=di.TensorSpec(None, object if text else "float32"))
    assert [plain(row) for row in dataset] == rows
    assert [plain(row) for row in dataset.take(2).repeat(2)] == rows[:2] * 2


def test_blocks_of_large_elements_stay_small() -> None:
    rows = [np.zeros(1 << 16, np.float64)] * 20  # half a megabyte each
    blocks = list(GENERATOR(lambda: rows, output_signature=di.TensorSpec([None], "float64")).iter_blocks())
    assert sum(map(len, blocks)) == 20
    assert max(map(len, blocks)) <= 3


def test_the_first_element_does_not_wait_for_later_ones() -> None:
    given = []

    def slow() -> Iterator[int]:
        for number in range(10):
            given.append(number)
            sleep(0.01)
            yield number

    with iter(GENERATOR(slow, output_signature=SCALAR)) as iterator:
        assert next(iterator) == 0
    assert given == [0]


class Paused:
    """Numbers, before some of which time passes: in which the thread waits, or other programs have its core."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, pauses: dict[int, int]) -> None:
        self.now, self.waits, self.pauses = 0.0, 0, pauses
        monkeypatch.setattr(generator, "perf_counter", lambda: self.now)
        monkeypatch.setattr(generator, "thread_use", lambda: CoreUse(0.0, self.waits))

    def __call__(self) -> Iterator[int]:
        for number in range(6000):
            if number in self.pauses:
                self.now, self.waits = self.now + 0.2, self.waits + self.pauses[number]
            yield number

    def sizes(self) -> list[int]:
        """Of the blocks."""
        return [len(block) for block in GENERATOR(self, output_signature=SCALAR).iter_blocks()]


def test_a_generator_that_loses_its_core_is_still_asked_for_many_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = Paused(monkeypatch, dict.fromkeys(range(0, 3000, 300), 0)).sizes()
    assert sum(sizes) == 6000
    assert sizes.count(1) <= 2


def test_elements_come_together_again_some_time_after_one_that_was_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = Paused(monkeypatch, {1000: 1, 1030: 1, 1040: 1, 2000: 1}).sizes()
    assert sum(sizes) == 6000
    alone = [row for row, size in zip(accumulate(sizes, initial=0), sizes, strict=False) if size == 1]
    assert alone[0] == 0  # nobody knows yet how quick they are
    assert [row for row in alone if 1016 <= row < 1900] == [*range(1016, 1041 + generator._ALONE)]
    assert sum(row > 2000 for row in alone) == 2 * generator._ALONE
    assert sizes[-2] > 256


def test_how_many_may_come_together_stays_a_small_number() -> None:
    pull = generator._Pull(0)
    pulled: Any = generator._pulled(lambda: iter(range(300)), 1, pull, [], generator._Alarm([]))
    for number, (elements, _) in enumerate(pulled):
        assert elements == [number][: 300 - number]
        assert pulled.gi_frame.f_locals["room"] == 1
        pull.next(number)


@given(st.lists(st.one_of(st.integers(0, 9), st.lists(st.integers(0, 9), max_size=3)), max_size=40))
def test_what_comes_in_strides_is_what_comes_one_by_one(rows: list[Any]) -> None:
    arrays = [np.asarray(row, np.int64) if isinstance(row, list) else np.int64(row) for row in rows]

    def some() -> Iterator[Any]:
        yield from arrays
        raise ValueError("enough")

    dataset = GENERATOR(some, output_signature=di.TensorSpec(None, "int64"))
    for stride in (1, generator._MOST_STRIDE):
        with mock.patch.object(generator, "_MOST_STRIDE", stride):
            before, error = until_error(dataset)
        assert before == [plain(array) for array in arrays]
        assert str(error) == "enough"


class Elsewhere:
    """Answers that come when the loop gives them; what waits for them cannot be seen from outside."""

    def __init__(self) -> None:
        self.answers = 0

    def ask(self) -> int:
        until = monotonic() + 0.3
        while not self.answers:
            getattr(time, "sle" + "ep")(0.001)
            if monotonic() > until:
                raise TimeoutError("nobody answers")
        self.answers -= 1
        return 1


def test_a_generator_that_waited_for_the_loop_says_the_cure_and_is_asked_one_by_one_from_then_on() -> None:
    world: list[Any] = []
    held = {"a": [{"b": [{"c": [{"d": world}]}]}]}

    def states() -> Iterator[int]:
        state = 0
        for _ in range(20):
            yield state
            state += held["a"][0]["b"][0]["c"][0]["d"][0].ask()

    dataset = GENERATOR(states, output_signature=SCALAR)

    def steps() -> list[int]:
        world[:] = [Elsewhere()]
        found = []
        for state in dataset:
            found.append(int(state))
            world[0].answers += 1
        return found

    with pytest.raises(TimeoutError, match="nobody answers") as caught:
        steps()
    notes = "\n".join(caught.value.__notes__)
    assert "while the loop had not got the last" in notes
    assert "Options.run_ahead = 0" in notes
    assert steps() == list(range(20))


@pytest.mark.parametrize(
    "value, dtype, wrong",
    [
        (np.int64(1 << 40), "int32", "the integer 1099511627776 does not fit into int32"),
        (np.int64(-1), "uint8", "the integer -1 does not fit into uint8"),
        (np.uint64(1 << 63), "int64", "the integer 9223372036854775808 does not fit into int64"),
        (np.array([1, 300]), "uint8", "the integer 300 does not fit into uint8"),
        ([np.int64(300)], "uint8", "the integer 300 does not fit into uint8"),
        (np.float64(1e10), "int32", "the number 10000000000.0 does not fit into int32"),
        ([np.float64(1e10)], "int32", "the number 10000000000.0 does not fit into int32"),
        (np.array([np.nan, 1]), "int64", "the number nan does not fit into int64"),
    ],
)
def test_no_number_goes_to_the_other_end_of_its_dtype(value: Any, dtype: str, wrong: str) -> None:
    signature = di.TensorSpec(np.shape(value), dtype)
    dataset = di.data.Dataset.from_generator(lambda: iter([value]), output_signature=signature)
    with pytest.raises(TypeError, match=rf"element 0; {wrong}, which is stated; state a wider dtype"):
        dataset.to_list()


@pytest.mark.parametrize(
    "value, dtype, wrong",
    [
        ([np.int64(1), 0.5], "int64", "float64 in a list becomes no int64"),
        ([np.float64(2), np.float64(3)], "uint8", "float64 in a list becomes no uint8"),
        ([np.array([1, 2]), [0.5, 1]], "int32", "float64 in a list becomes no int32"),
        ([np.int64(1), 2], "bool", "int64 in a list becomes no bool"),
    ],
)
def test_lists_lose_no_fractions(value: Any, dtype: str, wrong: str) -> None:
    dataset = GENERATOR(lambda: [value], output_signature=di.TensorSpec(np.shape(value), dtype))
    with pytest.raises(TypeError, match=f"{wrong}; state "):
        dataset.to_list()


@pytest.mark.parametrize("dtype", ["bool", "int64", "float32"])
def test_lists_of_empty_arrays_become_any_dtype(dtype: str) -> None:
    found = GENERATOR(lambda: [[np.zeros(0)]], output_signature=di.TensorSpec([1, 0], dtype)).get_single_element()
    assert (found.dtype, found.shape) == (dtype, (1, 0))


def test_no_number_of_a_ragged_tensor_does() -> None:
    spec = di.RaggedTensorSpec([None, None], "int32", 1)
    for value in ([[1 << 40], []], di.RaggedTensor.from_list([[1 << 40], []])):
        dataset = di.data.Dataset.from_generator(lambda: iter([value]), output_signature=spec)  # noqa: B023
        with pytest.raises(TypeError, match="the integer 1099511627776 does not fit into int32"):
            dataset.to_list()


class NotAgain:
    """An iterator of the user's own."""

    def __init__(self, stop: int) -> None:
        self.numbers = iter(range(stop))

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        return next(self.numbers)


@pytest.mark.parametrize(
    "make", [lambda: iter(range(60)), lambda: (i for i in range(60)), lambda: map(int, range(60)), lambda: NotAgain(60)]
)
@pytest.mark.parametrize(
    "then",
    [
        lambda ds: ds,
        lambda ds: ds.map(lambda x: x + 0),
        lambda ds: ds.filter(lambda x: x >= 0),
        lambda ds: ds.batch(1).unbatch(),
    ],
)
def test_a_pass_that_is_left_loses_nothing_of_an_iterator_that_the_program_holds(
    make: Callable[[], Iterator[int]], then: Callable[[di.data.Dataset], di.data.Dataset]
) -> None:
    iterator, taken = make(), []
    dataset = then(di.data.Dataset.from_generator(lambda: iterator, output_signature=di.TensorSpec((), np.int64)))
    for count in (5, 1, 8, 3):
        for number, element in enumerate(dataset, 1):
            taken.append(int(element))
            if number == count:
                break
        taken.append(next(iterator))
    assert taken == list(range(len(taken)))


def numbers(count: int) -> Iterator[int]:
    yield from range(count)


@pytest.mark.parametrize(
    "make", [numbers, lambda n: iter(range(n)), lambda n: iter(list(range(n))), lambda n: map(int, range(n))]
)
@pytest.mark.parametrize("same", [True, False], ids=["the same dataset", "another one"])
def test_a_restart_from_an_iterator_that_was_read_already_goes_on_or_says_so(
    make: Callable[[int], Iterator[int]], same: bool
) -> None:
    shared = make(10)

    def dataset() -> di.data.Dataset:
        return di.data.Dataset.from_generator(lambda: shared, output_signature=di.TensorSpec([], "int64"))

    first = dataset()
    with iter(first) as elements:
        assert [int(next(elements)) for _ in range(3)] == [0, 1, 2]
        state = elements.state()
        with first.restore(state) if same else dataset().restore(state) as others:
            assert [int(next(others)) for _ in range(2)] == [3, 4]
    with pytest.raises(FailedPreconditionError, match=r"cannot continue at element 3: .* behind element 4"):
        list(first.restore(state) if same else dataset().restore(state))


def test_a_pass_of_another_dataset_over_an_iterator_that_has_ended_is_told() -> None:
    shared = iter(range(3))

    def dataset() -> di.data.Dataset:
        return di.data.Dataset.from_generator(lambda: shared, output_signature=di.TensorSpec([], "int64"))

    assert dataset().to_list() == [0, 1, 2]
    with pytest.warns(InputWarning, match="gave the iterator of an earlier pass again, which had ended"):
        assert dataset().to_list() == []


@given(st.lists(st.one_of(st.text(max_size=3), st.binary(max_size=3)), max_size=9), st.booleans())
def test_texts_of_many_elements_are_those_of_each(texts: list[Any], unknown: bool) -> None:
    signature = (di.TensorSpec(None if unknown else [], "string"), SCALAR)
    made = GENERATOR(lambda: zip(texts, range(len(texts)), strict=True), output_signature=signature)
    fast = made.to_list()
    with mock.patch.object(generator, "_as_said", return_value=None):
        assert made.to_list() == fast
    assert [text for text, _ in fast] == [text.encode() if isinstance(text, str) else text for text in texts]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numbers_that_are_not_finite_are_looked_at_together(dtype: str) -> None:
    values = [1.5, np.inf, -np.inf, np.nan] * 3
    made = GENERATOR(lambda: values, output_signature=di.TensorSpec([], dtype))
    with mock.patch.object(generator.Generator, "_leaves", side_effect=AssertionError("looked at alone")):
        assert np.array_equal(made.to_list(), np.array(values, dtype), equal_nan=True)


def test_texts_that_are_no_utf8_are_told_one_by_one() -> None:
    made = GENERATOR(lambda: ["a", "\ud800"], output_signature=di.TensorSpec([], "string"))
    with iter(made) as iterator:
        assert next(iterator) == b"a"
        with pytest.raises(UnicodeEncodeError):
            next(iterator)
