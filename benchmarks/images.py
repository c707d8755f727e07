# SPDX-License-Identifier: Apache-2.0
"""What does it cost to decode images in a pipeline, and to put into batches what a function gives for each?"""

import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import SEED, Case, Contender, Mapped, Work, delivering, scaled

QUESTION = "JPEG images of 500 x 375 pixels, decoded on 2 threads; batches of arrays that a function gives"
THREADS = 2
HEIGHT, WIDTH = 375, 500
SIDE = 224


def prepare(folder: Path, scale: float) -> None:
    """JPEG files of smooth colors with some noise, about 40 kB each, one after the other in one file."""
    import simplejpeg

    random = np.random.default_rng(SEED)
    images = []
    for _ in range(16):
        waves = np.add.outer(
            np.sin(np.arange(HEIGHT) / random.uniform(5, 50)), np.cos(np.arange(WIDTH) / random.uniform(5, 50))
        )
        pixels = 128 + 50 * waves[..., None] * random.uniform(0.2, 1, 3) + random.normal(0, 8, (HEIGHT, WIDTH, 3))
        images.append(simplejpeg.encode_jpeg(pixels.clip(0, 255).astype(np.uint8), quality=85))
    np.savez(folder / "images.npz", *[np.frombuffer(image, np.uint8) for image in images])


def cases(folder: Path, scale: float) -> list[Case]:
    """JPEG files in memory, so that nothing but decoding and handing over is measured; and arrays without a decoder."""
    made = scaled(1024, scale, 130)
    return [
        _decoding(folder, scale),
        _batching("float32[224, 224, 3], batch(64)", made, np.float32, 64),
        _batching("uint8[224, 224, 3], batch(64)", made, np.uint8, 64),
    ]


def _decoding(folder: Path, scale: float) -> Case:
    count = scaled(800, scale, 32)
    with np.load(folder / "images.npz") as saved:
        files = [saved[name].tobytes() for name in saved.files]
    files = [files[number % len(files)] for number in range(count)]

    def ours() -> Work:
        import distinput as di

        made = di.data.Dataset.from_tensor_slices(np.array(files, object)).map(
            di.io.decode_jpeg, num_parallel_calls=THREADS
        )
        return delivering(lambda: made)

    def bare() -> Work:
        import simplejpeg

        def batches() -> Iterator[Any]:
            with ThreadPoolExecutor(THREADS) as pool:
                waiting = []
                for file in files:
                    waiting.append(pool.submit(simplejpeg.decode_jpeg, file, "RGB"))
                    if len(waiting) == 4 * THREADS:
                        yield waiting.pop(0).result()
                for each in waiting:
                    yield each.result()

        return delivering(batches)

    def pillow() -> Work:
        from PIL import Image

        def decode(file: bytes) -> Any:
            return np.asarray(Image.open(io.BytesIO(file)))

        def batches() -> Iterator[Any]:
            with ThreadPoolExecutor(THREADS) as pool:
                yield from pool.map(decode, files)

        return Work(lambda: [None for _ in batches()])  # its version of libjpeg may round in another way

    def tensorflow() -> Work:
        import tensorflow as tf

        made = tf.data.Dataset.from_tensor_slices(files)
        made = made.map(tf.io.decode_jpeg, num_parallel_calls=THREADS).prefetch(tf.data.AUTOTUNE)
        return Work(lambda: [None for _ in made])

    return Case(
        "decode_jpeg on 2 threads",
        {"image": count, "byte": sum(map(len, files))},
        [
            Contender("distinput", "ours", ours),
            Contender("simplejpeg on 2 threads", "limit", bare, ("simplejpeg",), 0.9),
            Contender("Pillow on 2 threads", "peer", pillow, ("PIL",)),
            Contender("tf.data", "peer", tensorflow, ("tensorflow",)),
        ],
    )


def _batching(name: str, count: int, kind: type, size: int) -> Case:
    """What is measured is the way of an array from a function into its batch, so the function does little more than make it."""

    def image(number: Any) -> Any:
        return np.full((SIDE, SIDE, 3), number % 251, kind)

    def ours() -> Work:
        import distinput as di

        made = di.data.Dataset.range(count).map(image).batch(size)
        return delivering(lambda: made)

    def loop() -> Work:
        """Every array copied once, into one of two arrays by turns: a loop holds a batch while the next one is made."""
        rooms: Any = np.empty((2, size, SIDE, SIDE, 3), kind)

        def batches() -> Iterator[Any]:
            for turn, first in enumerate(range(0, count, size)):
                numbers = range(first, min(first + size, count))
                room = rooms[turn % 2]
                for place, number in enumerate(numbers):
                    room[place] = image(number)
                yield room[: len(numbers)]

        return delivering(batches)

    def stacked() -> Work:
        """As most programs do it."""

        def batches() -> Iterator[Any]:
            for first in range(0, count, size):
                yield np.stack([image(number) for number in range(first, min(first + size, count))])

        return delivering(batches)

    def tensorflow() -> Work:
        import tensorflow as tf

        def called(number: Any) -> Any:
            return tf.ensure_shape(tf.numpy_function(image, [number], kind), (SIDE, SIDE, 3))

        made = tf.data.Dataset.range(count).map(called).batch(size)
        return delivering(lambda: made)

    def torch() -> Work:
        from torch.utils.data import DataLoader

        loader: Any = DataLoader(Mapped(image, count), size)
        return delivering(lambda: loader)

    def grain() -> Work:
        import grain.python as grain

        made = grain.MapDataset.range(count).map(image).batch(size)
        return delivering(lambda: made)

    return Case(
        name,
        {"image": count, "byte": count * SIDE * SIDE * 3 * np.dtype(kind).itemsize},
        [
            Contender("distinput", "ours", ours),
            Contender("a loop into two arrays by turns", "limit", loop, reach=0.8),
            Contender("np.stack in a loop", "peer", stacked, (), 1.0),
            Contender("tf.data", "peer", tensorflow, ("tensorflow",), 1.0),
            Contender("DataLoader", "peer", torch, ("torch",), 1.0),
            Contender("grain", "peer", grain, ("grain",), 1.0),
        ],
    )
