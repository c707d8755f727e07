# SPDX-License-Identifier: Apache-2.0
"""Pipelines with failing elements, written once for TensorFlow and for distinput.

`python tests/golden/failing_pipelines.py` records in `failing.json` what real TensorFlow (2.21) gives for them, where that is
installed: for a loop with `try` around `next`, in which "E" stands for an error, and behind `ignore_errors`. What does not
end is cut off with "...", and is not tried behind `ignore_errors`, which would never return.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RECORDED = Path(__file__).with_name("failing.json")
MOST = 16


class Engine:
    """What the pipelines use of a library.

    Args:
      tf: TensorFlow, or distinput under that name.
      folder: for files.
    """

    def __init__(self, tf: Any, folder: Path) -> None:
        self.tf, self.D, self.folder = tf, tf.data.Dataset, folder

    def function(self, function: Callable[..., Any], dtype: Any = np.int64) -> Callable[..., Any]:
        """A Python function of arrays that gives a scalar."""
        if not hasattr(self.tf, "numpy_function"):
            return function

        def call(*args: Any) -> Any:
            made = self.tf.numpy_function(function, args, dtype)
            made.set_shape([])
            return made

        return call

    def bad(self, *values: int) -> Callable[..., Any]:
        """The first component; an error for these values of it."""
        return self.function(_failing(lambda x, *_: x, values))

    def fails(self, *values: int) -> Callable[..., Any]:
        """A predicate that is true; an error for these values."""
        return self.function(_failing(lambda _: np.bool_(True), values), np.bool_)

    def range(self, n: int, *values: int) -> Any:
        """A range that was mapped, with errors for these values."""
        return self.D.range(n).map(self.bad(*values))

    def same(self, dataset: Any) -> Any:
        """The same elements from something that is no `map`."""
        return dataset.filter(self.fails())

    def sums(self, *values: int) -> Any:
        """A function for `scan`."""
        call = self.function(_failing(lambda x, s: s + x, values))
        return lambda s, x: (call(x, s), call(x, s))

    def three(self, *values: int, inner: tuple[int, ...] = ()) -> Callable[..., Any]:
        """10 x, 10 x + 1, 10 x + 2 as a dataset; an error for these values, and in it for the inner ones."""
        call = self.bad(*values)

        def make(x: Any) -> Any:
            first = 10 * call(x)
            made = self.D.range(3).map(lambda i: first + i)
            return made.map(self.bad(*inner)) if inner else made

        return make

    def generator(self, kind: str) -> Any:
        """0, 1, something else, 3."""

        def elements() -> Any:
            yield 0
            yield 1
            if kind == "raises":
                raise ValueError("x")
            yield "text" if kind == "type" else np.zeros(3, np.int64)
            yield 3

        return self.D.from_generator(elements, output_signature=self.tf.TensorSpec([], self.tf.int64))

    def records(self, name: str, hit: int | None = None, cut: int | None = None) -> str:
        """A TFRecord file of three records of two bytes, perhaps damaged."""
        path = self.folder / name
        with self.tf.io.TFRecordWriter(str(path)) as writer:
            for number in range(3):
                writer.write(f"{name[0]}{number}".encode())
        data = bytearray(path.read_bytes())[:cut]
        if hit is not None:
            data[hit] ^= 255
        path.write_bytes(bytes(data))
        return str(path)

    def numbers(self, *values: int) -> Any:
        """int64 scalars."""
        return self.D.from_tensor_slices(np.array(values, np.int64))


def _failing(function: Callable[..., Any], values: tuple[int, ...]) -> Callable[..., Any]:
    def call(x: Any, *more: Any) -> Any:
        if int(x) in values:
            raise ValueError(f"bad {int(x)}")
        return function(x, *more)

    return call


def _ones(e: Engine, *, bad: int) -> Any:
    """Vectors of one number, the one at `bad` of two."""
    return e.D.range(7).map(lambda x: np.ones(1 + int(x == bad), np.int64)) if not hasattr(e.tf, "numpy_function") else (
        e.D.range(7).map(lambda x: e.tf.ones([e.tf.where(x == bad, 2, 1)], e.tf.int64))
    )  # fmt: skip


PIPELINES: dict[str, Callable[[Engine], Any]] = {
    "map": lambda e: e.range(6, 1, 2),
    "map, last": lambda e: e.range(4, 3),
    "map, all": lambda e: e.range(3, 0, 1, 2),
    "map on threads": lambda e: e.D.range(6).map(e.bad(1, 2), num_parallel_calls=2),
    "map of map": lambda e: e.range(6, 1).map(e.bad(4)),
    "filter": lambda e: e.D.range(6).filter(e.fails(2)),
    "take_while": lambda e: e.D.range(6).take_while(e.fails(2)),
    "scan": lambda e: e.D.range(6).scan(np.int64(0), e.sums(2)),
    "scan of map": lambda e: e.range(6, 3).scan(np.int64(0), e.sums(2)),
    "batch, first of its rows": lambda e: e.range(8, 3).batch(3),
    "batch, middle of its rows": lambda e: e.range(8, 4).batch(3),
    "batch, last of its rows": lambda e: e.range(8, 5).batch(3),
    "batch, two of its rows": lambda e: e.range(8, 3, 4).batch(3),
    "batch, in the last one": lambda e: e.range(8, 7).batch(3),
    "batch, drop_remainder": lambda e: e.range(8, 6).batch(3, drop_remainder=True),
    "batch on threads": lambda e: e.range(8, 4).batch(3, num_parallel_calls=2),
    "batch of filter, first": lambda e: e.same(e.range(8, 3)).batch(3),
    "batch of filter, middle": lambda e: e.same(e.range(8, 4)).batch(3),
    "batch of filter, two": lambda e: e.same(e.range(8, 3, 4)).batch(3),
    "batch of filter, last": lambda e: e.same(e.range(8, 7)).batch(3),
    "batch of filter, drop_remainder": lambda e: e.same(e.range(8, 7)).batch(3, drop_remainder=True),
    "batch of prefetch": lambda e: e.range(8, 3).prefetch(1).batch(3),
    "batch of enumerate": lambda e: e.range(8, 3).enumerate().batch(3),
    "batch of filter and map": lambda e: e.same(e.range(8, 3)).map(lambda x: x + 0).batch(3),
    "batch of map on threads": lambda e: e.D.range(8).map(e.bad(3), num_parallel_calls=2).batch(3),
    "batch of take": lambda e: e.range(8, 3).take(6).batch(3),
    "batch of other shapes": lambda e: _ones(e, bad=3).prefetch(1).batch(2),
    "padded_batch": lambda e: e.range(8, 3).padded_batch(3),
    "padded_batch, middle": lambda e: e.range(8, 4).padded_batch(3),
    "batch and unbatch": lambda e: e.range(6, 1).batch(2).unbatch(),
    "batch and take": lambda e: e.range(9, 1).batch(2).take(2),
    "rebatch": lambda e: e.range(8, 5).batch(2).rebatch(3),
    "rebatch, first": lambda e: e.range(8, 1).batch(2).rebatch(3),
    "rebatch to a list": lambda e: e.range(8, 3).batch(2).rebatch([1, 2]),
    "zip": lambda e: e.D.zip((e.range(5, 1), e.D.range(5))),
    "zip, several": lambda e: e.D.zip((e.range(5, 1), e.range(5, 3), e.range(5, 1))),
    "zip, at the end of another": lambda e: e.D.zip((e.range(3, 1), e.D.range(1))),
    "zip, behind the end": lambda e: e.D.zip((e.D.range(1), e.range(3, 1))),
    "zip, before the end": lambda e: e.D.zip((e.range(5, 2), e.D.range(2))),
    "enumerate": lambda e: e.range(5, 1).enumerate(),
    "take": lambda e: e.range(9, 1, 2).take(3),
    "take, behind": lambda e: e.range(9, 5).take(3),
    "skip, behind": lambda e: e.range(6, 4).skip(2),
    "skip, within": lambda e: e.same(e.range(6, 1)).skip(3),
    "shard": lambda e: e.range(6, 0).shard(2, 0),
    "shard, another's": lambda e: e.range(6, 0).shard(2, 1),
    "shard of three": lambda e: e.range(9, 4).shard(3, 1),
    "shard of three, in a gap": lambda e: e.range(9, 1).shard(3, 2),
    "window": lambda e: e.range(6, 1).window(2),
    "window, overlapping": lambda e: e.range(7, 2).window(3, shift=1),
    "window, stride": lambda e: e.range(8, 2).window(2, shift=1, stride=2),
    "window, between two": lambda e: e.range(8, 2).window(2, shift=3),
    "window, drop_remainder": lambda e: e.range(7, 6).window(3, drop_remainder=True),
    "window, last": lambda e: e.range(7, 6).window(3),
    "concatenate": lambda e: e.range(3, 1).concatenate(e.range(3, 2)),
    "repeat": lambda e: e.range(3, 1).repeat(2),
    "repeat without end": lambda e: e.range(3, 1).repeat().take(6),
    "repeat of nothing else": lambda e: e.range(2, 0, 1).repeat(),
    "cache": lambda e: e.range(4, 1).cache().repeat(2),
    "prefetch": lambda e: e.range(4, 1).prefetch(2),
    "unique": lambda e: e.range(6, 1).map(lambda x: x // 2).unique(),
    "flat_map": lambda e: e.D.range(4).flat_map(e.three(1)),
    "flat_map, inner": lambda e: e.D.range(3).flat_map(e.three(inner=(11,))),
    "flat_map of map": lambda e: e.range(4, 1).flat_map(e.three()),
    "interleave": lambda e: e.D.range(4).interleave(e.three(1), cycle_length=2),
    "interleave, inner": lambda e: e.D.range(4).interleave(e.three(inner=(11,)), cycle_length=2),
    "interleave, blocks": lambda e: e.D.range(4).interleave(e.three(inner=(0, 11)), cycle_length=2, block_length=2),
    "interleave of map": lambda e: e.range(4, 1).interleave(e.three(), cycle_length=2),
    "interleave of three": lambda e: e.D.range(5).interleave(e.three(0, 2), cycle_length=3),
    "group_by_window": lambda e: e.range(8, 1).group_by_window(
        lambda x: x % 2, lambda _, group: group.batch(2), window_size=2
    ),
    "group_by_window, keys": lambda e: e.D.range(8).group_by_window(
        lambda x: e.bad(2)(x) % 2, lambda _, group: group.batch(2), window_size=2
    ),
    "group_by_window, groups": lambda e: e.D.range(8).group_by_window(
        lambda x: x % 2, lambda _, group: group.map(e.bad(3)).batch(2), window_size=2
    ),
    "group_by_window, sizes": lambda e: e.D.range(8).group_by_window(
        lambda x: x % 2, lambda _, group: group.batch(2), window_size_func=lambda key: 2 + 0 * e.bad(1)(key)
    ),
    "choose": lambda e: e.D.choose_from_datasets([e.range(4, 1), e.D.range(10, 14)], e.numbers(0, 0, 1, 0, 1, 0, 1)),
    "choose, selector": lambda e: e.D.choose_from_datasets(
        [e.D.range(4), e.D.range(10, 14)], e.numbers(0, 5, 1, 0).map(e.bad(5))
    ),
    "choose, out of range": lambda e: e.D.choose_from_datasets([e.D.range(4), e.D.range(10, 14)], e.numbers(0, 5, 1, 0)),
    "assert_cardinality": lambda e: e.range(5, 1).apply(e.tf.data.experimental.assert_cardinality(4)),
    "assert_cardinality, too many": lambda e: e.D.range(5).apply(e.tf.data.experimental.assert_cardinality(3)),
    "assert_cardinality, too few": lambda e: e.D.range(3).apply(e.tf.data.experimental.assert_cardinality(5)),
    "generator that raises": lambda e: e.generator("raises"),
    "generator of another type": lambda e: e.generator("type"),
    "generator of another shape": lambda e: e.generator("shape"),
    "ignore_errors and batch": lambda e: e.range(6, 1).ignore_errors().batch(2),
    "ignore_errors and map": lambda e: e.range(6, 1).ignore_errors().map(e.bad(2)),
    "records, damaged data": lambda e: e.tf.data.TFRecordDataset([e.records("a"), e.records("b", hit=30), e.records("c")]),
    "records, damaged length": lambda e: e.tf.data.TFRecordDataset([e.records("a"), e.records("b", hit=18), e.records("c")]),
    "records, cut short": lambda e: e.tf.data.TFRecordDataset([e.records("a"), e.records("b", cut=30), e.records("c")]),
    "records, missing": lambda e: e.tf.data.TFRecordDataset([e.records("a"), str(e.folder / "none"), e.records("c")]),
}  # fmt: skip


def listed(element: Any, engine: Engine) -> Any:
    """An element as JSON."""
    if isinstance(element, engine.D):
        return [listed(member, engine) for member in element]
    if isinstance(element, tuple):
        return [listed(member, engine) for member in element]
    value = element.numpy() if hasattr(element, "numpy") else element
    if isinstance(value, bytes):
        return value.decode()
    return np.asarray(value).tolist()


def looped(dataset: Any, engine: Engine) -> list[Any]:
    """Elements, and "E" for each error that `next` raises."""
    found: list[Any] = []
    iterator = iter(dataset)
    while len(found) < MOST:
        try:
            found.append(listed(next(iterator), engine))
        except StopIteration:
            return found
        except Exception:  # noqa: BLE001 - of any class
            found.append("E")
    return [*found, "..."]


def _record() -> None:
    import tensorflow as tf

    recorded = {}
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(tf, Path(folder))
        for name, make in PIPELINES.items():
            loop = looped(make(engine), engine)
            endless = loop[-1:] == ["..."]
            recorded[name] = {
                "loop": loop,
                "ignored": None if endless else looped(make(engine).ignore_errors(), engine),
            }
            print(name, recorded[name], file=sys.stderr)
    lines = [f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in recorded.items()]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    _record()
