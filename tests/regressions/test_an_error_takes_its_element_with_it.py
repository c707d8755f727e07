# SPDX-License-Identifier: Apache-2.0
"""`ignore_errors` drops the element of its own input that failed, and `next` goes on behind an error."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.plan.families import SameElements

D = di.data.Dataset
INT = di.TensorSpec([], "int64")


def failing(*bad: int) -> Any:
    def function(x: Any) -> Any:
        if int(x) in bad:
            raise ValueError(f"bad {x}")
        return x

    return function


def mapped(n: int, *bad: int, **how: Any) -> Any:
    return D.range(n).map(failing(*bad), output_signature=INT, **how)


def test_a_zip_drops_the_pair() -> None:
    assert D.zip((mapped(5, 1), D.range(5))).ignore_errors().to_list() == [(0, 0), (2, 2), (3, 3), (4, 4)]


def test_enumerate_keeps_its_numbers() -> None:
    assert mapped(4, 1).enumerate().ignore_errors().to_list() == [(0, 0), (2, 2), (3, 3)]


def test_a_batch_is_lost_and_not_formed_anew() -> None:
    assert mapped(6, 1).batch(2).ignore_errors().to_list() == [[2, 3], [4, 5]]


def test_a_batch_of_something_else_begins_behind_the_error() -> None:
    ds = mapped(6, 0).filter(lambda x: True).batch(2).ignore_errors()
    assert ds.to_list() == [[1, 2], [3, 4], [5]]


def test_a_loop_with_try_goes_on() -> None:
    it, found = iter(mapped(5, 1, 3)), []
    while True:
        try:
            found.append(int(next(it)))
        except StopIteration:
            break
        except ValueError as error:
            found.append(str(error))
    assert found == [0, "bad 1", 2, "bad 3", 4]


def test_a_state_after_an_error_leads_behind_it() -> None:
    ds = mapped(6, 1, 4).batch(2)
    it = iter(ds)
    with pytest.raises(ValueError, match="bad 1"):
        next(it)
    states = [it.state()]
    assert next(it).tolist() == [2, 3]
    states.append(it.state())
    for state, before in zip(states, ([[2, 3]], []), strict=True):
        restored = ds.restore(json.loads(json.dumps(state)))
        assert [next(restored).tolist() for _ in before] == before
        with pytest.raises(ValueError, match="bad 4"):
            next(restored)
        assert next(restored, None) is None


def test_an_interrupt_loses_no_element() -> None:
    interrupt: list[BaseException] = []

    def function(x: Any) -> Any:
        if x == 1 and interrupt:
            raise interrupt.pop()
        return x

    it = iter(D.range(3).map(function, output_signature=INT))
    interrupt.append(KeyboardInterrupt())
    found: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        found += it
    assert [*found, *it] == [0, 1, 2]


@pytest.mark.parametrize("how", [{}, {"num_parallel_calls": 2}, {"num_parallel_calls": di.data.AUTOTUNE}])
def test_functions_on_threads_keep_order_and_threads(how: dict[str, Any]) -> None:
    ds = mapped(200, *range(0, 200, 7), **how).ignore_errors()
    assert ds.to_list() == [x for x in range(200) if x % 7]
    assert ds.stats()["2:ignore_errors"]["dropped"] == 29
    assert how.get("num_parallel_calls") != 2 or ds.stats()["1:map"]["workers"] == 2


def test_worker_processes_are_kept() -> None:
    ds = D.range(20).map(_thirds, output_signature=INT, num_parallel_calls=2, processes=True).ignore_errors()
    assert ds.to_list() == [x for x in range(20) if x % 3]
    assert ds.stats()["1:map"]["workers"] == 2
    assert ds.stats()["2:ignore_errors"]["last_error"] == "ValueError: 18"


def _thirds(x: Any) -> Any:
    if x % 3 == 0:
        raise ValueError(str(x))
    return x


def test_rows_made_together_fail_alone() -> None:
    def rows(x: Any) -> Any:
        if (x % 5 == 0).any():
            raise ValueError("five")
        return x

    ds = D.range(1, 23).map_rows(rows, output_signature=INT)
    assert ds.ignore_errors().to_list() == [x for x in range(1, 23) if x % 5]


def test_records_that_cannot_be_parsed_are_left_out() -> None:
    sound = di.io.encode_example({"x": [7]})
    ds = D.from_tensor_slices([sound, b"junk", sound, b"", sound])
    parsed = ds.parse_example({"x": di.io.FixedLenFeature([], "int64")}).ignore_errors()
    assert parsed.to_list() == [{"x": 7}, {"x": 7}, {"x": 7}]
    assert parsed.stats()["2:ignore_errors"]["dropped"] == 2
    batched = ds.batch(2).parse_example({"x": di.io.FixedLenFeature([], "int64")}).ignore_errors()
    assert batched.to_list() == [{"x": [7]}]


@pytest.mark.parametrize("shuffle", [lambda ds: ds.shuffle(3, seed=1), lambda ds: ds.global_shuffle(seed=1)])
def test_a_shuffle_loses_the_failing_elements_alone(shuffle: Any) -> None:
    assert sorted(shuffle(mapped(9, 2, 5)).ignore_errors().to_list()) == [0, 1, 3, 4, 6, 7, 8]
    assert sorted(shuffle(mapped(9, 2, 5).take(4)).ignore_errors().to_list()) in ([0, 1, 3, 4], [0, 1, 3])
    it, found = iter(shuffle(mapped(9, 2, 5))), []
    errors = 0
    while True:
        try:
            found.append(int(next(it)))
        except StopIteration:
            break
        except ValueError:
            errors += 1
    assert (sorted(found), errors) == ([0, 1, 3, 4, 6, 7, 8], 2)


def test_a_damaged_file_costs_its_own_rest(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in "abc"]
    for path in paths:
        with di.io.TFRecordWriter(path) as writer:
            for number in range(3):
                writer.write(f"{path[-1]}{number}".encode())
    damaged = bytearray(Path(paths[1]).read_bytes())
    damaged[30] ^= 255
    Path(paths[1]).write_bytes(bytes(damaged))
    names = [paths[0], str(tmp_path / "missing"), *paths[1:]]
    ds = di.data.TFRecordDataset(names).ignore_errors()
    assert ds.to_list() == [b"a0", b"a1", b"a2", b"b0", b"c0", b"c1", b"c2"]
    assert list(ds.stats().values())[-1]["dropped"] == 2


def test_a_generator_that_raised_gives_nothing_more() -> None:
    def elements() -> Any:
        yield 0
        yield "text"
        yield 2
        raise ValueError("over")

    assert D.from_generator(elements, output_signature=INT).ignore_errors().to_list() == [0, 2]


def test_an_op_that_does_not_say_so_ends_the_elements() -> None:
    class Plain(SameElements):  # an op of somebody else, of which nothing is known
        def start(self, epoch: int) -> Any:
            return self.input.start(epoch)

        def stream(self, state: Any, run: Any) -> Any:
            yield from self.input.open(state, run)

    ds = D(Plain(mapped(4, 1).node)).ignore_errors()
    it = iter(ds)
    assert next(it) == 0
    for _ in range(2):
        with pytest.raises(ValueError, match="bad 1") as raised:
            next(it)
        assert any("no element can follow: plain does not go on" in note for note in raised.value.__notes__)


def test_other_shapes_cost_their_batch() -> None:
    ds = D.range(7).map(lambda x: np.ones(1 + int(x == 3)), output_signature=di.TensorSpec([None], "float64"))
    assert [len(batch) for batch in ds.batch(2).ignore_errors()] == [2, 2, 1]
    assert [len(batch) for batch in ds.padded_batch(2, [1]).ignore_errors()] == [2, 2, 1]


@pytest.mark.parametrize("calls", [None, 2])
def test_a_result_that_does_not_fit_the_signature_is_lost_alone(calls: int | None) -> None:
    for other in (np.float64(7), np.zeros(2), (1, 2), b"text"):

        def function(x: Any, other: Any = other) -> Any:
            return other if x in (3, 4) else x

        ds = D.range(8).map(function, num_parallel_calls=calls, output_signature=INT).ignore_errors()
        assert ds.to_list() == [0, 1, 2, 5, 6, 7]
