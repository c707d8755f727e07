# SPDX-License-Identifier: Apache-2.0
"""Two processes with two JAX devices each: every process reads its part, and steps are arrays over all devices."""

import json
import subprocess
import sys
import tempfile
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
        processes: list[subprocess.Popen[bytes]] = [
            start(
                [sys.executable, "-m", "tests.engines.tpu_input", address, str(rank), str(size)], flags, output, "jax"
            )
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


def test_every_process_reads_its_part() -> None:
    first, second = found(2)
    assert (first["place"], second["place"]) == ([0, 2], [1, 2])
    assert first["devices"] == second["devices"] == 2
    assert first["local"] == [[0, 1, 4, 5], [8, 9, 12, 13]]  # as TensorFlow deals the pieces of a batch
    assert second["local"] == [[2, 3, 6, 7], [10, 11, 14, 15]]
    for one in (first, second):
        assert one["global shape"] == [8]
        assert one["sums"] == [sum(range(8)), sum(range(8, 16))]
        assert one["reduced"] == [2 * sum(range(8)), 2 * sum(range(8, 16))]
        assert one["restored"] == one["local"][1:]
        assert "every step must have the same shape on all of them" in one["refused"]
    assert [a + b for a, b in zip(first["rows"], second["rows"], strict=True)] == [8, 2]
    assert (first["dealt"], second["dealt"]) == ([[[2, 0, 4]], [4]], [[[2, 1, 4]], [4]])
