# SPDX-License-Identifier: Apache-2.0
"""Preprocess on input workers: dear functions run on other processes, here or on other machines, in exact order.

    python examples/input_workers.py                          with two input workers of its own
    python examples/input_workers.py tcp://10.0.0.5:8786      with those of a cluster

A cluster is started with `distinput cluster start --address 10.0.0.5:8786 --input-workers 4 --tls` on one machine, and
`distinput input-worker tls://10.0.0.5:8786 --workers 8` on each of the others; any Dask cluster will do.
"""

import sys
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import distinput as di

IMAGES, BATCH = 96, 8


def features(image: dict[str, np.ndarray]) -> dict[str, Any]:
    """What is dear: the spectrum of an image of [256, 256] pixels, as [16] numbers. It runs at the input workers."""
    pixels = np.random.default_rng(int(image["id"])).normal(size=(256, 256)) * image["scale"]  # in place of a file
    spectrum = np.abs(np.fft.fft2(pixels))
    return {"id": image["id"], "features": spectrum.reshape(16, -1).mean(axis=1).astype(np.float32)}


def images(service: Any) -> di.data.Dataset:
    """Batches of features. What stands above `on_workers`, and the shuffle, which looks at many elements, runs here."""
    named = {"id": np.arange(IMAGES), "scale": np.linspace(1, 2, IMAGES)}
    return di.data.Dataset.from_tensor_slices(named).shuffle(32, seed=1).map(features).on_workers(service).batch(BATCH)


def main(service: Any) -> None:
    """Take some batches, stop, and go on from the state, as a job does that is started again."""
    dataset, seen = images(service), []
    with iter(dataset) as batches:
        for _ in range(5):
            seen += next(batches)["id"].tolist()
        state = batches.state()
    for batch in dataset.restore(state):  # with any number of workers, or none: then without `on_workers`
        seen += batch["id"].tolist()
    print(dataset.explain())
    print(dataset.stats().bottleneck)
    print(f"{len(seen)} images, {len(set(seen))} of them different, the first ones {seen[:4]}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            main(client)
