# SPDX-License-Identifier: Apache-2.0
"""Two processes with two JAX devices each: arrays over all of them, of rows that each process reads for itself."""

import json
import sys
import tempfile
from itertools import chain
from typing import Any

import pytest

from tests.engines.processes import environments, start, wait_for

pytestmark = pytest.mark.needs_engine("jax")


def found(size: int) -> list[dict[str, Any]]:
    (config, *_) = environments(1)
    address = json.loads(config["TF_CONFIG"])["cluster"]["worker"][0]
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    with tempfile.TemporaryDirectory() as folder:
        outputs = [open(f"{folder}/{rank}", "w+b") for rank in range(size)]  # noqa: SIM115 - closed below
        processes = [
            start([sys.executable, "-m", "tests.engines.jax_feed", address, str(rank), str(size)], flags, output, "jax")
            for rank, output in enumerate(outputs)
        ]
        codes = wait_for(processes, 100)
        texts = []
        for output in outputs:
            output.seek(0)
            texts.append(output.read().decode())
            output.close()
    assert codes == [0] * size, "\n".join(texts)
    return [json.loads(next(line for line in text.splitlines() if line.startswith("{"))) for text in texts]


def padded(batch: int, first: int, count: int) -> list[int]:
    """Rows of a batch of 8 of 22, as the devices hold them: the first row, then the values."""
    rows = range(8 * batch + first, 8 * batch + first + count)
    return [first, *[row if row < 22 else 0 for row in rows]]


def test_every_process_reads_the_rows_of_its_devices() -> None:
    both = found(2)
    shards = {  # for each process the first row and the number of rows that each device holds
        "flat": ([(0, 2), (2, 2)], [(4, 2), (6, 2)]),
        "both": ([(0, 4), (0, 4)], [(4, 4), (4, 4)]),
        "same": ([(0, 4), (4, 4)], [(0, 4), (4, 4)]),
        "apart": ([(0, 2), (4, 2)], [(2, 2), (6, 2)]),
    }
    for name, places in shards.items():
        for one, own in zip(both, places, strict=True):
            assert one[name] == [[padded(batch, *place) for place in own] for batch in range(3)], name
            masks = [
                [[first, *[8 * batch + first + i < 22 for i in range(n)]] for first, n in own] for batch in range(3)
            ]
            assert one[f"{name} masks"] == masks, name
            assert one[f"{name} sums"] == [sum(range(8)), sum(range(8, 16)), sum(range(16, 22))]
            rows = {8 * batch + first + i for batch in range(3) for first, n in own for i in range(n)}
            assert one[f"{name} read"] == sorted(row for row in rows if row < 22), "nothing of the others is read"
    for one in both:
        assert one["programs"] == len(shards), "one program for each mesh"
        assert one["restored"]
        assert one["mine"] == [[[0, 0, 1], [2, 2, 3]]], "a mesh of one process alone needs no other"
        assert one["different"].startswith("interop.jax.batches: the workers built different datasets")
        assert "stop 10" in one["different"]
        assert "stop 11" in one["different"]
    assert both[0]["state"] == both[1]["state"], "a position in the global batches"
    rows = [
        shard[1:]
        for batches in zip(both[0]["agreed"], both[1]["agreed"], strict=True)
        for side in batches
        for shard in side
    ]
    assert sorted(chain(*rows)) == [0, *range(0, 22, 2)], "all rows once, and one that was added"
    # TensorFlow deals the pieces of a batch to the workers in turn, and that is what a strategy's step holds.
    assert [one["to_global"] for one in both] == [
        [[[0, 0, 1], [2, 4, 5]], [[0, 8, 9], [2, 12, 13]]],
        [[[4, 2, 3], [6, 6, 7]], [[4, 10, 11], [6, 14, 15]]],
    ]
    assert [one["scalars"] for one in both] == [[[0, 0.0], [1, 2.0]], [[2, 1.0], [3, 2.0]]]
