# SPDX-License-Identifier: Apache-2.0
"""What does it cost to decode images in a pipeline, beside the decoder alone?"""

import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled

QUESTION = "JPEG images of 500 x 375 pixels, decoded on 2 threads"
THREADS = 2
HEIGHT, WIDTH = 375, 500


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
    """Images in memory, so that nothing but decoding and handing over is measured."""
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

    return [
        Case(
            "decode_jpeg on 2 threads",
            {"image": count, "byte": sum(map(len, files))},
            [
                Contender("distinput", "ours", ours),
                Contender("simplejpeg on 2 threads", "limit", bare, ("simplejpeg",), 0.9),
                Contender("Pillow on 2 threads", "peer", pillow, ("PIL",)),
                Contender("tf.data", "peer", tensorflow, ("tensorflow",)),
            ],
        )
    ]
