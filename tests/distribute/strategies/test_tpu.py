# SPDX-License-Identifier: Apache-2.0
import copy
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("jax", reason="jax is an extra")

import distinput as di
from distinput.distribute.tpu.mesh import ReplicaMesh
from distinput.testing.ports import free_ports
from tests.distribute.tpu.programs import REPLICAS, parts_of


def test_facts() -> None:
    strategy = di.distribute.TPUStrategy(steps_per_run=5)
    assert strategy.num_replicas_in_sync == REPLICAS
    assert strategy.extended.worker_devices == tuple([f"CPU:{i}" for i in range(REPLICAS)])
    assert strategy.steps_per_run == strategy.extended.steps_per_run == 5
    assert strategy.cluster_resolver is None
    assert strategy.extended.experimental_require_static_shapes
    assert type(strategy).__name__ == "TPUStrategy"


def test_the_older_name_takes_the_older_arguments() -> None:
    mesh = ReplicaMesh.of(cores_per_replica=2)
    strategy = di.distribute.experimental.TPUStrategy(None, device_assignment=mesh)
    assert strategy.num_replicas_in_sync == 4
    assert isinstance(strategy, di.distribute.TPUStrategy)
    assert di.distribute.experimental.TPUStrategy(steps_per_run=2).extended.steps_per_run == 2


def test_devices_may_be_chosen() -> None:
    strategy = di.distribute.TPUStrategy(devices=jax.devices()[3:5])
    found = strategy.run(lambda x: x + 1, (di.distribute.PerReplica([1, 2]),))
    assert [part.devices() for part in found.values] == [{jax.devices()[3]}, {jax.devices()[4]}]
    with pytest.raises(ValueError, match="either experimental_device_assignment or devices"):
        di.distribute.TPUStrategy(None, ReplicaMesh.of(), devices=jax.devices())


def test_hosts_cores_and_chips() -> None:
    extended = di.distribute.TPUStrategy(None, ReplicaMesh.of(cores_per_replica=2)).extended
    assert (extended.num_hosts, extended.num_replicas_per_host) == (1, 4)
    assert isinstance(extended.tpu_hardware_feature, di.tpu.experimental.HardwareFeature)
    with extended.experimental_logical_device(1):
        pass
    with pytest.raises(ValueError, match=r"`logical_device_id` not in range \(was 2, but there are only 2"):
        extended.experimental_logical_device(2).__enter__()


def test_one_replica_gets_plain_values() -> None:
    strategy = di.distribute.TPUStrategy(devices=jax.devices()[2:3])
    dataset = strategy.experimental_distribute_dataset(di.data.Dataset.range(5).batch(4))
    found = [strategy.run(lambda x: (x.sum(), x), (batch,)) for batch in dataset]
    assert [(total.item(), rows.tolist()) for total, rows in found] == [(6, [0, 1, 2, 3]), (4, [4])]


def test_what_comes_back() -> None:
    strategy = di.distribute.TPUStrategy()
    outer, text = np.arange(3), "text"
    found = strategy.run(
        lambda x, o: {"x": x, "o": o, "n": 5, "t": text, "none": None, "new": np.ones(2)}, (parts_of([1] * 8), outer)
    )
    assert found["o"] is outer
    assert (found["t"], found["none"]) == ("text", None)
    assert (type(found["n"]), found["n"].values) == (di.distribute.PerReplica, (5,) * REPLICAS)
    assert isinstance(found["x"], di.distribute.PerReplica)
    assert isinstance(found["new"], di.distribute.PerReplica)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("synchronization", ["ON_READ", "ON_WRITE"])
def test_what_a_write_returns_is_the_copy_of_each_replica(synchronization: str, compiled: bool) -> None:
    strategy = di.distribute.TPUStrategy(compile=compiled, devices=jax.devices()[:2])
    with strategy.scope():
        v = di.Variable(0.0, synchronization=synchronization)

    def step() -> Any:
        number = jnp.float32(10) * (di.distribute.get_replica_context().replica_id_in_sync_group + 1)
        return {"loss": v.assign(number), "twice": (v.assign(number), v)}

    found = strategy.run(step)
    assert [float(part) for part in strategy.experimental_local_results(found["loss"])] == [10, 20]
    assert strategy.reduce("MEAN", found["twice"][0], axis=None) == 15
    assert strategy.reduce("SUM", found["loss"], axis=None) == 30
    assert found["twice"][1] is v


@pytest.mark.parametrize("compiled", [True, False])
def test_copies_that_a_merge_function_returns_are_those_copies(compiled: bool) -> None:
    strategy = di.distribute.TPUStrategy(compile=compiled, devices=jax.devices()[:2])
    context = di.distribute.get_replica_context
    with strategy.scope():
        v, w = di.Variable(0.0), di.Variable(1.0)

    def step() -> Any:
        v.assign(jnp.float32(10) * (context().replica_id_in_sync_group + 1))
        copies = context().merge_call(lambda strategy: strategy.experimental_local_results(v))
        added = context().merge_call(lambda strategy: strategy.extended.update(w, lambda part: part.assign_add(1.0)))
        return copies, added, context().merge_call(lambda strategy: w)

    copies, added, whole = strategy.run(step)
    assert [float(part) for part in copies] == [10, 20]
    assert [float(part) for part in strategy.experimental_local_results(added)] == [2, 2]
    assert whole is w


def test_numbers_are_of_each_replica_with_and_without_a_program() -> None:
    for strategy in (di.distribute.TPUStrategy(), di.distribute.TPUStrategy(compile=False)):
        found = strategy.run(lambda x: (len(x), {"rows": x.shape[0]}, "name"), (parts_of([2] * 8),))
        assert strategy.reduce("SUM", found[:2], axis=None) == (2 * REPLICAS, {"rows": 2 * REPLICAS})
        assert found[2] == "name"


def test_arguments_may_be_overwritten_after_the_run() -> None:
    strategy = di.distribute.TPUStrategy()
    slow = lambda x, y: jnp.sort(jnp.sin(x) * y, axis=0).sum()  # noqa: E731
    for _ in range(5):
        parts, shared = [np.ones((4096, 16), np.float32) for _ in range(REPLICAS)], np.ones(16, np.float32)
        found = strategy.run(slow, (di.distribute.PerReplica(parts), shared))
        for part in (*parts, shared):
            part[:] = 1e6
        np.testing.assert_allclose([float(x) for x in found.values], np.sin(1) * 4096 * 16, rtol=1e-4)


def test_a_result_is_an_argument_again() -> None:
    strategy = di.distribute.TPUStrategy()
    value = parts_of([3] * REPLICAS)
    for _ in range(3):
        value = strategy.run(lambda x: x * 2, (value,))
    np.testing.assert_allclose(value.values[5], parts_of([3] * REPLICAS).values[5] * 8)
    assert strategy.run_counts.programs == 1


def test_steps_without_data_for_some_replicas() -> None:
    """Batches of scalars: the last step has no element for some replicas, whose results do not count."""
    strategy = di.distribute.TPUStrategy()
    steps = strategy.distribute_datasets_from_function(lambda context: di.data.Dataset.range(11).map(lambda x: x + 1))
    totals = [strategy.reduce("SUM", strategy.run(lambda x: x * 10, (step,)), axis=None) for step in steps]
    mirrored = di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(REPLICAS)])
    steps = mirrored.distribute_datasets_from_function(lambda context: di.data.Dataset.range(11).map(lambda x: x + 1))
    assert [int(total) for total in totals] == [
        int(mirrored.reduce("SUM", mirrored.run(lambda x: x * 10, (step,)), axis=None)) for step in steps
    ]


def test_padded_input_and_its_mask() -> None:
    strategy = di.distribute.TPUStrategy()
    options = di.distribute.InputOptions(tail="pad")
    steps = strategy.experimental_distribute_dataset(di.data.Dataset.range(20).batch(16), options)
    losses = [(strategy.run(lambda x: x * x, (x,)), mask) for x, mask in steps]
    assert [strategy.gather(loss, 0, mask=mask).tolist() for loss, mask in losses] == [
        [i * i for i in range(16)],
        [256, 289, 324, 361],
    ]
    assert strategy.reduce("MEAN", losses[1][0], 0, mask=losses[1][1]) == np.mean([256, 289, 324, 361])
    assert strategy.run_counts == type(strategy.run_counts)(programs=1, compiled=2)


def test_a_copy_has_programs_of_its_own() -> None:
    strategy = di.distribute.TPUStrategy()
    strategy.run(lambda x: x, (parts_of([1] * 8),))
    other = copy.deepcopy(strategy)
    assert other.num_replicas_in_sync == REPLICAS
    assert other.run_counts.programs == 0


def test_wrong_arguments_of_run() -> None:
    strategy = di.distribute.TPUStrategy()
    with pytest.raises(ValueError, match="positional args must be a list or tuple"):
        strategy.run(lambda x: x, 5)  # type: ignore[arg-type]
    other: Any = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with other.scope(), pytest.raises(RuntimeError, match="Mixing different"):
        strategy.run(lambda: 1)


def test_a_variable_holds_numbers() -> None:
    strategy = di.distribute.TPUStrategy()
    with strategy.scope(), pytest.raises(ValueError, match="must hold numbers to be on a device"):
        di.Variable("text")


@pytest.mark.parametrize("cores", [2, 4])
def test_cores_share_the_work_of_a_replica(cores: int) -> None:
    strategy = di.distribute.TPUStrategy(experimental_device_assignment=ReplicaMesh.of(cores_per_replica=cores))
    replicas = REPLICAS // cores
    assert strategy.num_replicas_in_sync == replicas
    with strategy.scope():
        w = di.Variable(np.ones((4, 4), np.float32), aggregation="SUM")

    def step(x: Any) -> Any:
        split = strategy.experimental_split_to_logical_devices(x @ w.read_value(), [1, cores])
        w.assign_add(split.T @ x)
        return split

    x = di.distribute.PerReplica([np.full((2, 4), i + 1, np.float32) for i in range(replicas)])
    for uncompiled in (x, x):
        found = strategy.run(step, (uncompiled,))
    expected = np.ones((4, 4), np.float32)
    for _ in range(2):
        results = [part @ expected for part in x.values]
        expected = expected + sum([(part @ expected).T @ part for part in x.values])
    np.testing.assert_allclose(w.numpy(), expected, rtol=1e-5)
    for part, result in zip(found.values, results, strict=True):
        np.testing.assert_allclose(part, result, rtol=1e-5)


_ONE_OF_TWO = """
import os, sys
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax
rank = int(sys.argv[1])
jax.distributed.initialize(f"localhost:{sys.argv[2]}", 2, rank)
import numpy as np
import distinput as di

strategy = di.distribute.TPUStrategy()
with strategy.scope():
    v = di.Variable(np.float32(rank + 5), aggregation="SUM")

def step(x):
    v.assign_add(x.sum())
    return di.distribute.get_replica_context().all_reduce("SUM", x), 2 * x

parts = [np.full(3, 2 * rank + i, np.float32) for i in range(2)]
total, twice = strategy.run(step, (di.distribute.PerReplica(parts),))

def say(*words):  # on a line of its own, whatever Gloo has written
    os.write(1, ("\\nsaid: " + " ".join(map(str, words)) + "\\n").encode())

say(strategy.num_replicas_in_sync, float(v.numpy()), [float(part[0]) for part in total.values])
say(float(strategy.reduce("SUM", twice, axis=None)[0]), float(strategy.reduce("MEAN", twice, axis=0)))
try:
    strategy.run(lambda x: x.mean(), (di.distribute.PerReplica([np.ones(3), np.ones(2)]),))
except NotImplementedError as error:
    say(error)
"""


@pytest.mark.slow
@pytest.mark.loads("jax")
def test_replicas_of_two_processes() -> None:
    """All processes take the first one's initial values; what would need the values of others on the host is refused."""
    port = str(free_ports(1)[0])
    command = [sys.executable, "-c", _ONE_OF_TWO]
    running = [
        subprocess.Popen([*command, str(rank), port], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    said = [process.communicate(timeout=300) for process in running]
    for out, errors in said:
        lines = [line.removeprefix("said: ") for line in out.splitlines() if line.startswith("said: ")]
        assert lines[:2] == ["4 23.0 [6.0, 6.0]", "12.0 3.0"], errors
        assert lines[2].startswith("run: replicas of several processes run compiled programs alone")
