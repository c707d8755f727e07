# SPDX-License-Identifier: Apache-2.0
"""Batches sent to every device of an engine, dropped at once, and looked at when the last one was sent.

Run as `python -m tests.engines.device_copies ENGINE`. A device may still be reading a batch when the consumer drops it, and an
engine may go on using the batch's own memory as that of its array. So no buffer may be used again before.
"""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import distinput as di

ROWS, WIDTH, BATCHES = 256, 4096, 24  # 4 MB each


def senders(engine: str) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Ways to send an array to a device, by name."""
    if engine == "jax":
        import jax

        for device in {each.platform: each for each in [*jax.devices("cpu"), *jax.devices()]}.values():
            yield f"jax {device.platform}", lambda array, device=device: jax.device_put(array, device)
        return
    import torch

    yield "torch cpu", torch.from_numpy
    if torch.cuda.is_available():
        yield "torch cuda", lambda array: torch.from_numpy(array).to("cuda")
        yield "torch cuda, not waited for", lambda array: torch.from_numpy(array).to("cuda", non_blocking=True)


def pipelines() -> Iterator[tuple[str, Any]]:
    """Datasets whose batches lie in memory that is used again."""
    rows = np.repeat(np.arange(ROWS * BATCHES, dtype=np.float32), WIDTH).reshape(-1, WIDTH)
    source = di.data.Dataset.from_tensor_slices(rows)
    shuffled = source.global_shuffle(seed=1, reshuffle_each_iteration=False)
    yield "copied", source.batch(ROWS).copied()
    yield "shuffled", shuffled.batch(ROWS)
    yield "prefetched", shuffled.batch(ROWS).prefetch(2)


def main(engine: str) -> None:
    """Say for each device and pipeline how many numbers arrived, and whether all were right."""
    for name, send in senders(engine):
        for pipeline, dataset in pipelines():
            sent = [send(batch) for batch in dataset]
            order = dataset.map(lambda batch: batch[:, 0].copy())
            right = [
                bool((np.asarray(there.cpu() if hasattr(there, "cpu") else there) == first[:, None]).all())
                for there, first in zip(sent, order, strict=True)
            ]
            print(f"{name}: {pipeline}: {sum(right)} of {len(right)} batches arrived whole")


if __name__ == "__main__":
    main(*sys.argv[1:])
