# SPDX-License-Identifier: Apache-2.0
"""An error of an iteration says in its notes which op it was, on which line that op was made, and what was being read."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import distinput as di
from tests.ops.iterating import until_error

Dataset = di.data.Dataset
RANGE = Dataset.range
NUMBER = di.TensorSpec([], "int64")


def line() -> int:
    """The line that calls this."""
    return sys._getframe(1).f_lineno


def notes(dataset: di.data.Dataset) -> list[str]:
    _, error = until_error(dataset)
    return list(error.__notes__)


def test_the_element_and_the_line_of_the_op_at_fault() -> None:
    made = line() + 1
    dataset = RANGE(5).map(lambda x: 6 // int(2 - x), output_signature=NUMBER).batch(2)
    on, at = notes(dataset)
    assert on == "on element np.int64(2)"
    assert at.startswith("in map(")
    assert at.endswith(f"made at {__file__}:{made}")


def test_only_the_op_at_fault_is_named() -> None:
    dataset = RANGE(3).map(lambda x: np.zeros(int(x))).batch(3).prefetch(1).take(5)
    assert [note.split("(")[0] for note in notes(dataset)] == ["in batch"]


@pytest.mark.parametrize(
    "op, made",
    [
        ("filter", lambda f: RANGE(3).filter(f)),
        ("take_while", lambda f: RANGE(3).take_while(f)),
        ("scan", lambda f: RANGE(3).scan(np.int64(0), lambda s, x: f(x))),
        ("group_by_window", lambda f: RANGE(3).group_by_window(f, lambda key, rows: rows, window_size=2)),
        ("bucket_by_sequence_length", lambda f: RANGE(3).batch(1).bucket_by_sequence_length(f, [2], [1, 1])),
    ],
)
def test_every_op_that_calls_a_function_names_the_element(op: str, made: Callable[..., di.data.Dataset]) -> None:
    def fail(x: int) -> int:
        raise KeyError(int(np.max(x)))

    on, at = notes(made(fail))
    assert on in ("on element np.int64(0)", "on element array([0])")
    assert at.startswith(f"in {op}(")
    assert __file__ in at


@pytest.mark.parametrize("skipped, record", [(0, 3), (2, 3)])
def test_a_function_outside_of_the_steps_is_told_its_element_and_record(
    tmp_path: Path, skipped: int, record: int
) -> None:
    (tmp_path / "n.txt").write_text("".join(f"{n}\n" for n in range(9)))
    lines = di.data.TextLineDataset(str(tmp_path / "n.txt"))
    numbers = lines.skip(skipped).map(int, output_signature=di.TensorSpec([], "int32"))

    def fail(total: int, x: int) -> int:
        return total + 1 // int(x - record)

    with pytest.raises(ZeroDivisionError) as caught:
        numbers.reduce(np.int64(0), fail)
    function = "test_a_function_outside_of_the_steps_is_told_its_element_and_record.<locals>.fail"
    assert caught.value.__notes__ == [
        "on element np.int32(3)",
        f"in reduce(reduce_func={function})",
        f"record {record} of {tmp_path}/n.txt",
    ]


def test_an_error_of_a_step_is_not_that_of_reduce() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        RANGE(3).map(lambda x: 1 // int(x), output_signature=NUMBER).reduce(np.int64(0), lambda total, x: total + x)
    assert [note.split("(")[0] for note in caught.value.__notes__] == ["on element np.int64", "in map"]


def test_the_key_of_a_window_and_the_element_of_a_file(tmp_path: Path) -> None:
    windows = RANGE(9).group_by_window(lambda x: x % 3, lambda key, rows: rows.batch(2 - int(key)), window_size=2)
    assert notes(windows)[0] == "on the window of key 2"
    with pytest.raises(ZeroDivisionError) as caught:
        RANGE(3).save(str(tmp_path / "saved"), shard_func=lambda x: 1 // int(1 - x))
    assert caught.value.__notes__ == ["on element np.int64(1)"]


def test_a_long_element_is_cut_short() -> None:
    dataset = RANGE(1).map(lambda x: np.arange(900)).map(lambda x: int("x"), output_signature=NUMBER)
    assert len(notes(dataset)[0]) < 230


def test_the_file_that_was_being_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1\n2\nthree\n")
    made = notes(di.data.TextLineDataset(str(path)).map(int, output_signature=NUMBER))
    assert made[0] == "on element b'three'"
    assert made[-1] == f"record 2 of {path}"


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with di.io.TFRecordWriter(str(path)) as writer:
        writer.write(b"one")
        writer.write(b"two")
    content = bytearray(path.read_bytes())
    content[-6] ^= 1
    path.write_bytes(content)
    before, error = until_error(di.data.TFRecordDataset(str(path)))
    assert before == [b"one"]
    assert str(path) in str(error)
    assert any(note.startswith("in tfrecord") for note in error.__notes__)
