# SPDX-License-Identifier: Apache-2.0
"""What does it cost to cut batches of 1000 rows into batches of 96?"""

from collections.abc import Callable, Iterator
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.checksum import in_order
from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled

QUESTION = "rebatch(96) of batches of 1000 rows of 256 float32, of 20 columns, and with a column of strings"
NOTES = """
Bare NumPy cuts views, copies what crosses a border, and does nothing else. For each block, and for each batch that crosses a
border, distinput also makes a state that leads back to its rows, checks whether rows can be stacked, takes times for
`stats()`, and notes what an error would say. With 20 columns, most of the time of every contender goes into a tuple of 20
views for each batch.

Memory bounds copies that the consumer owns. Even `memcpy` alone, into one small buffer that stays in the cache, misses the
target beside tf.data, which hands out views as well. `numpy, cut and copied` adds the cutting. Batches that a generator
yields and still holds are copied, because it may fill them again; with `copy=False` they are not. Grain never copies what
its source gives.
"""
GIVEN, WANTED, WIDTH, COLUMNS = 1000, 96, 256, 20

Given = Callable[[int], Any]


def prepare(folder: Path, scale: float) -> None:
    """Nothing is read."""


def batches(count: int) -> Any:
    """The batches given, [count, 1000, 256]."""
    return np.random.default_rng(SEED).standard_normal((count, GIVEN, WIDTH), np.float32)


def joined(source: Any, arrays: list[Any]) -> Any:
    """A dataset whose elements are these very arrays, each in memory of its own."""
    parts = [source.from_tensors(array) for array in arrays]
    while len(parts) > 1:
        parts = [reduce(lambda a, b: a.concatenate(b), parts[i : i + 2]) for i in range(0, len(parts), 2)]
    return parts[0]


def cases(folder: Path, scale: float) -> list[Case]:
    """Batches that lie side by side in memory, and batches that do not, as readers and functions give them."""
    count = scaled(128, scale, 3)
    rows = count * GIVEN
    units = {"batch": -(-rows // WANTED), "byte": 4 * rows * WIDTH}

    def ours(given: Given) -> Any:
        import distinput as di

        source = di.data.Dataset
        made = source.from_tensor_slices(given(count)) if given is batches else joined(source, given(count))
        return made.rebatch(WANTED)

    def tensorflow(given: Given) -> Work:
        import tensorflow as tf

        source = tf.data.Dataset
        made = source.from_tensor_slices(given(count)) if given is batches else joined(source, given(count))
        dataset = made.rebatch(WANTED).prefetch(tf.data.AUTOTUNE)
        return delivering(lambda: dataset)

    def grain(given: Given) -> Work:
        """Batches in a list, which it takes by their numbers."""
        from grain import MapDataset
        from grain.experimental import RebatchIterDataset

        held = list(given(count))
        dataset = RebatchIterDataset(MapDataset.source(held).to_iter_dataset(), WANTED)
        return delivering(lambda: dataset)

    def generated(*, copy: bool) -> Work:
        """Batches in a list, which a generator yields."""
        import distinput as di

        held = list(_apart(count))

        def generator() -> Iterator[Any]:
            yield from held

        spec = di.TensorSpec([None, WIDTH], "float32")
        made = di.data.Dataset.from_generator(generator, output_signature=spec, copy=copy)
        return delivering(lambda: made.rebatch(WANTED))

    def sourced() -> Work:
        import distinput as di

        made = di.data.Dataset.from_source(_apart(count))
        return delivering(lambda: made.rebatch(WANTED))

    def views(given: Given) -> Work:
        dataset = ours(given)
        return delivering(lambda: dataset)

    def owned(given: Given) -> Work:
        dataset = ours(given).copied()
        return delivering(lambda: dataset)

    def seams(given: Given) -> Work:
        return _cutting(given(count))

    made = []
    for name, given in (
        ("side by side", batches),
        ("apart", _apart),
        (f"{COLUMNS} columns", _columns),
        ("strings", _words),
    ):
        peers = [
            Contender("tf.data", "peer", lambda given=given: tensorflow(given), ("tensorflow",), 80.0),  # type: ignore[misc]
            Contender("grain", "peer", lambda given=given: grain(given), ("grain",), 6.0),  # type: ignore[misc]
        ]
        limit = Contender("numpy, views and seams", "limit", lambda given=given: seams(given))  # type: ignore[misc]
        mine = Contender("distinput", "ours", lambda given=given: views(given))  # type: ignore[misc]
        made.append(Case(f"views, {name}", units, [mine, limit, *peers]))
        if given in (batches, _apart):
            mine = Contender("distinput", "ours", lambda given=given: owned(given))  # type: ignore[misc]
            limit = Contender("memcpy", "limit", lambda: _copying(count), reach=0.75)
            cut = Contender("numpy, cut and copied", "limit", lambda given=given: _cutting(given(count), copied=True))  # type: ignore[misc]
            made.append(Case(f"owned copies, {name}", units, [mine, limit, cut, peers[0]]))
    for name, work, reach in (
        ("of a generator, copy=False", partial(generated, copy=False), 1.0),
        ("of a generator that may fill them again", partial(generated, copy=True), None),
        ("of a list as a source", sourced, 1.0),
    ):
        mine = Contender("distinput", "ours", work)
        limit = Contender("numpy, views and seams", "limit", lambda: seams(_apart))
        peer = Contender("grain", "peer", lambda: grain(_apart), ("grain",), reach)
        made.append(Case(f"batches {name}", units, [mine, limit, peer]))
    return made


def _apart(count: int) -> list[Any]:
    """As `batches`, each in memory of its own."""
    return [np.array(batch) for batch in batches(count)]


def _columns(count: int) -> list[Any]:
    """As many columns of a few numbers."""
    width = WIDTH // COLUMNS
    return [
        tuple([np.ascontiguousarray(batch[:, first : first + width]) for first in range(0, width * COLUMNS, width)])
        for batch in batches(count)
    ]


def _words(count: int) -> list[Any]:
    """Numbers and a string of 1 to 40 bytes."""
    random = np.random.default_rng(SEED)
    letters = b"abcdefghijklmnopqrstuvwxyz" * 2
    sizes = [random.integers(1, 41, GIVEN).tolist() for _ in range(count)]
    words = [np.array([letters[:size] for size in each], object) for each in sizes]
    return list(zip(_apart(count), words, strict=True))


def _cutting(given: Any, copied: bool = False) -> Work:
    """What rebatching without a copy of more than what crosses a border takes; or with one of each batch besides."""
    items = [batch if isinstance(batch, tuple) else (batch,) for batch in given]
    single = not isinstance(given[0], tuple)

    def cut() -> Iterator[Any]:
        rest: Any = None
        for columns in items:
            first = 0
            if rest is not None and len(rest[0]):
                first = WANTED - len(rest[0])
                seam = tuple([np.concatenate([a, b[:first]]) for a, b in zip(rest, columns, strict=True)])
                yield seam[0] if single else seam
            whole = (GIVEN - first) // WANTED
            end = first + whole * WANTED
            views = [column[first:end].reshape(whole, WANTED, *column.shape[1:]) for column in columns]
            yield from views[0] if single else zip(*views, strict=True)
            rest = [column[end:] for column in columns]
        if len(rest[0]):
            yield rest[0] if single else tuple(rest)

    buffer = np.empty((WANTED, WIDTH), np.float32)

    def copies() -> Iterator[Any]:
        for batch in cut():
            out = buffer[: len(batch)]
            np.copyto(out, batch)
            yield out

    made = copies if copied else cut

    def once() -> None:
        for _ in made():
            pass

    return Work(once, lambda: in_order(made()))


def _copying(count: int) -> Work:
    """Every batch copied once, to memory that is warm."""
    flat = batches(count).reshape(-1, WIDTH)
    buffer = np.empty((WANTED, WIDTH), np.float32)

    def copies() -> Iterator[Any]:
        for first in range(0, len(flat), WANTED):
            part = flat[first : first + WANTED]
            out = buffer[: len(part)]
            np.copyto(out, part)
            yield out

    def once() -> None:
        for _ in copies():
            pass

    return Work(once, lambda: in_order(copies()))
