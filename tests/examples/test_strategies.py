# SPDX-License-Identifier: Apache-2.0
"""The examples of `examples/strategies` learn the same, each under its strategy, as users start them."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.testing.ports import free_ports
from tests.depth import sampled
from tests.engines.processes import ENGINES, missing

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "strategies"
ACCURACY = 93.0


def started(name: str, *arguments: Any, **environment: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, EXAMPLES / f"{name}.py", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output(process: "subprocess.Popen[str]") -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


def accuracy(text: str) -> float:
    found = re.search(r"([\d.]+) % of the test digits are right", text)
    assert found is not None, text
    return float(found.group(1))


def parameters(folder: Path) -> list[Any]:
    """What the latest checkpoint holds."""
    path = di.train.latest_checkpoint(folder)
    assert path is not None
    return [di.train.load_variable(path, f"model/{name}") for name in ("weights", "bias")]


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> tuple[float, list[Any]]:
    """What one process without a strategy learns."""
    folder = tmp_path_factory.mktemp("default")
    return accuracy(output(started("default", folder))), parameters(folder)


def same(found: list[Any], expected: list[Any], tolerance: float = 1e-4) -> None:
    for given, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(given, wanted, atol=tolerance)


@pytest.mark.parametrize("name", ["one_device", "mirrored", "central_storage"])
def test_a_strategy_of_one_process_learns_what_no_strategy_does(
    name: str, learned: tuple[float, list[Any]], tmp_path: Path
) -> None:
    assert learned[0] > ACCURACY
    assert accuracy(output(started(name, tmp_path))) == learned[0]
    same(parameters(tmp_path), learned[1])


@pytest.mark.loads("jax")
@pytest.mark.parametrize("count", sampled([2], [1, 3]))
def test_compiled_replicas_learn_what_no_strategy_does(
    count: int, learned: tuple[float, list[Any]], tmp_path: Path
) -> None:
    pytest.importorskip("jax", reason="jax is an extra")
    where = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": f"--xla_force_host_platform_device_count={count}"}
    assert accuracy(output(started("tpu", tmp_path, **where))) == learned[0]
    same(parameters(tmp_path), learned[1])


@pytest.mark.loads("torch")
def test_several_workers_learn_what_one_process_does(learned: tuple[float, list[Any]], tmp_path: Path) -> None:
    if all(map(missing, ENGINES)):
        pytest.skip("no engine is installed; `make test` installs them")
    workers = [f"localhost:{port}" for port in free_ports(2)]
    processes = [
        started(
            "multi_worker",
            tmp_path / str(index),
            TF_CONFIG=json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}),
        )
        for index in range(2)
    ]
    assert [accuracy(output(process)) for process in processes] == [learned[0]] * 2
    same(parameters(tmp_path / "0"), learned[1])
    assert not (tmp_path / "1").exists(), "the first worker alone writes"


def test_asynchronous_workers_learn_as_well(learned: tuple[float, list[Any]], tmp_path: Path) -> None:
    assert accuracy(output(started("parameter_server", tmp_path))) == pytest.approx(learned[0], abs=2)
    assert parameters(tmp_path)[0].shape == (64, 10)


def test_workers_and_servers_of_a_dask_cluster_learn_as_well(learned: tuple[float, list[Any]], tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    cluster = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "distinput",
            "cluster",
            "start",
            "--workers",
            "2",
            "--ps",
            "2",
            "--address",
            "127.0.0.1:0",
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert cluster.stdout is not None
        address = re.search(r"tcp://\S+", cluster.stdout.readline())
        assert address is not None
        text = output(started("parameter_server", tmp_path, address.group()))
        assert accuracy(text) == pytest.approx(learned[0], abs=2)
    finally:
        cluster.send_signal(signal.SIGINT)
        cluster.communicate(timeout=300)


@pytest.mark.parametrize("name", ["one_device", "mirrored"])
def test_training_that_is_killed_continues_where_it_was(
    name: str, learned: tuple[float, list[Any]], tmp_path: Path
) -> None:
    first = started(name, tmp_path)
    assert first.stdout is not None
    losses = [first.stdout.readline() for _ in range(3)]
    first.kill()
    first.communicate()
    text = output(started(name, tmp_path))
    assert losses[0] not in text
    assert accuracy(text) == learned[0]
    same(parameters(tmp_path), learned[1])
