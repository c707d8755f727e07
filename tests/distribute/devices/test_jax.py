# SPDX-License-Identifier: Apache-2.0
"""Replicas on JAX devices: the laws of devices, what strategies give to functions, and memory that JAX looks at later."""

import ctypes
import threading
from collections import deque
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.distribute.devices.threads import ThreadDevices
from distinput.testing import check_devices
from distinput.testing.devices import LAWS
from distinput.values.buffers import empty
from tests.depth import crossed
from tests.patience import threads_since

jax = pytest.importorskip("jax")
jnp = jax.numpy
from distinput.distribute.devices.jax import JaxDevices, can_hold  # noqa: E402 - needs JAX


def devices(count: int = 2) -> JaxDevices:
    return JaxDevices([f"JAX:{i}" for i in range(count)])


def mirrored(count: int = 2, **settings: Any) -> Any:
    return di.distribute.MirroredStrategy([f"JAX:{i}" for i in range(count)], backend="jax", **settings)


def test_jax_devices_keep_all_laws() -> None:
    with jax.enable_x64(True):
        assert check_devices(JaxDevices) == tuple(LAWS)


def slow(x: Any) -> Any:
    """As many passes over an array as make it certain that it is read after the call."""
    for _ in range(6):
        x = jnp.sin(x) ** 2 + jnp.cos(x) ** 2 + x
    return x.sum(1)


def test_what_is_computed_later_sees_no_later_batch() -> None:
    """As arrays of JAX, and as NumPy arrays given straight to a jitted function."""
    leave_out = set(LAWS) - {"recycled buffers"}
    for devices in (JaxDevices, ThreadDevices):
        assert check_devices(devices, counts=[2], leave_out=leave_out, compute=jax.jit(slow)) == ("recycled buffers",)


class RefersToNothing(ThreadDevices):
    """Gives JAX the memory of an array without saying whom it belongs to."""

    def put(self, value: Any, device: int, *, owned: bool) -> Any:
        if value.base is None:
            return value
        memory = (ctypes.c_char * value.nbytes).from_address(value.__array_interface__["data"][0])
        return np.ndarray(value.shape, value.dtype, memory)


def test_a_jitted_function_reads_numpy_later() -> None:
    """So the law can fail: this is why buffers are used again by reference counts alone, and never in turn."""
    with pytest.raises(AssertionError, match=r"recycled buffers: batch .* its memory was used again for a later batch"):
        check_devices(RefersToNothing, counts=[2], leave_out=set(LAWS) - {"recycled buffers"}, compute=jax.jit(slow))


def test_settings_of_a_thread_hold_for_all_replicas_and_for_steps_made_ahead() -> None:
    strategy = mirrored(3)
    with jax.enable_x64(True), jax.default_matmul_precision("float32"):
        steps = iter(strategy.experimental_distribute_dataset(di.data.Dataset.range(12).batch(6)))
    assert [part.dtype for part in next(steps).values] == [np.int32] * 3  # it is left before the first step is made
    with jax.enable_x64(True), jax.default_matmul_precision("float32"):
        steps = iter(strategy.experimental_distribute_dataset(di.data.Dataset.range(12).batch(6)))
        assert [part.dtype for part in next(steps).values] == [np.int64] * 3
        found = strategy.run(lambda: (jnp.arange(2).dtype.name, jax.config.jax_default_matmul_precision))
        assert strategy.experimental_local_results(found) == (("int64", "float32"),) * 3
    assert strategy.experimental_local_results(strategy.run(lambda: jnp.arange(2).dtype.name)) == ("int32",) * 3


@pytest.mark.parametrize("begin", [0, 4, 8])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.float64])
def test_large_parts_are_copied_by_us_if_jax_would_have_to(begin: int, dtype: Any) -> None:
    rows = empty((ROWS + 1, WIDTH * 2), np.dtype(dtype)).reshape(-1)[begin:][: ROWS * WIDTH * 2].reshape(ROWS, -1)
    rows[:] = np.arange(ROWS)[:, None]
    there = devices(2)
    parts = np.split(rows, 2)
    (made,) = there.put_all([parts])
    for i, (part, array) in enumerate(zip(parts, [*made, there.put(parts[0], 0, owned=True)], strict=False)):
        np.testing.assert_array_equal(np.asarray(array), part)
        assert array.unsafe_buffer_pointer() % 64 == 0
        shared = array.unsafe_buffer_pointer() == part.ctypes.data
        assert shared == (begin == 0 and dtype == np.float32), i


def test_without_64_bits_a_value_becomes_narrower() -> None:
    there = devices().put(np.array([1, -(2**31)]), 1, owned=True)
    assert there.dtype == np.int32
    assert there.tolist() == [1, -(2**31)]


@pytest.mark.parametrize("array", [np.array([0, 2**31]), np.array([-(2**31) - 1]), np.uint64(2**32)])
def test_an_integer_that_does_not_fit_is_an_error(array: Any) -> None:
    for put in (lambda: devices().put(array, 0, owned=True), lambda: devices().put_all([[array, array]])):
        with pytest.raises(
            di.errors.InvalidArgumentError, match=r"holds -?\d+, which u?int32 cannot hold; call jax.*astype"
        ):
            put()


def test_text_stays_on_the_host() -> None:
    words = np.array([b"a", b"bc"], object)
    assert devices().put(words, 0, owned=True) is words
    assert devices().put_all([[b"a", b"b"], [np.float32(1), np.float32(2)]])[0] == [b"a", b"b"]
    assert [can_hold(value) for value in (b"a", "a", None, words, 1, np.bool_(True), np.zeros(2))] == [False] * 4 + [
        True
    ] * 3


def test_bfloat16_is_a_number() -> None:
    array = np.ones(3, jnp.bfloat16)
    assert devices().put(array, 1, owned=True).dtype == jnp.bfloat16


@given(st.integers(1, 4), st.lists(st.sampled_from(["rows", "scalar", "text"]), min_size=1, max_size=4), st.booleans())
def test_all_at_once_is_the_same_as_one_by_one(count: int, kinds: list[str], even: bool) -> None:
    there = devices(count)
    make = {
        "rows": lambda i: np.full((4 if even else i, 3), i, np.float32),
        "scalar": np.int32,
        "text": lambda i: np.array([str(i).encode()], object),
    }
    leaves = [[make[kind](i) for i in range(count)] for kind in kinds]
    for parts, put in zip(leaves, there.put_all(leaves), strict=True):
        for i, (part, made) in enumerate(zip(parts, put, strict=True)):
            alone = there.put(part, i, owned=True)
            assert type(made) is type(alone)
            np.testing.assert_array_equal(np.asarray(made), np.asarray(part))
            if isinstance(made, jax.Array):
                assert made.devices() == {there.devices[i]}


@pytest.mark.parametrize(
    "labels, why",
    [
        (["TPU:0"], "JAX has no device 'TPU:0' in this process; it has JAX:0 to JAX:7, CPU:0 to CPU:7"),
        (["CPU:8"], "JAX has no device 'CPU:8'"),
        (["JAX:x"], "JAX has no device 'JAX:x'"),
        (["CPU:1", "JAX:1"], "CPU:1 and JAX:1 are the same device"),
    ],
)
def test_devices_that_are_not_there(labels: list[str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        JaxDevices(labels)


def test_a_replica_computes_on_its_device() -> None:
    strategy = mirrored(3)
    found = strategy.run(lambda: jnp.ones(2) + 1)
    assert [next(iter(part.devices())).id for part in strategy.experimental_local_results(found)] == [0, 1, 2]


def test_every_device_is_used_if_none_is_named() -> None:
    strategy = di.distribute.MirroredStrategy(backend="jax")
    assert strategy.num_replicas_in_sync == len(jax.local_devices())
    assert strategy.extended.worker_devices == tuple([f"CPU:{i}" for i in range(len(jax.local_devices()))])
    assert di.distribute.MirroredStrategy().num_replicas_in_sync == 1


def test_devices_of_jax_are_names_too() -> None:
    strategy = di.distribute.MirroredStrategy(jax.devices()[2:4], backend="jax")
    assert strategy.extended.worker_devices == ("CPU:2", "CPU:3")
    one = di.distribute.OneDeviceStrategy(jax.devices()[5], backend="jax")
    assert one.run(lambda: jnp.ones(1)).devices() == {jax.devices()[5]}


def test_functions_get_arrays_of_jax_and_arithmetic_is_right() -> None:
    strategy = mirrored(3)
    dataset = di.data.Dataset.range(8).batch(6)
    sums = []
    for step in strategy.experimental_distribute_dataset(dataset):
        assert all(isinstance(part, jax.Array) for part in step.values)
        doubled = strategy.run(lambda x: 2 * x, args=(step,))
        sums.append(int(strategy.reduce("SUM", doubled, axis=0)))
        np.testing.assert_array_equal(strategy.gather(doubled, axis=0), 2 * np.concatenate(step.values))
    assert sums == [30, 26]


def test_what_replicas_add_together_is_on_their_device() -> None:
    strategy = mirrored(3)

    def step() -> Any:
        context = di.distribute.get_replica_context()
        mine = jnp.full(2, context.replica_id_in_sync_group, jnp.float32)
        return context.all_reduce("MEAN", mine), context.all_gather(mine, axis=0)

    means, gathered = strategy.run(step)
    for i, (mean, rows) in enumerate(zip(means.values, gathered.values, strict=True)):
        assert mean.devices() == rows.devices() == {jax.devices()[i]}
        assert mean.tolist() == [1, 1]
        assert rows.tolist() == [0, 0, 1, 1, 2, 2]


def test_arrays_in_memory_of_the_host_are_brought_to_the_devices() -> None:
    """JAX puts none on the device that it belongs to already."""
    strategy, devices = mirrored(), jax.devices()
    try:
        pinned = jax.device_put(
            np.arange(3.0), jax.sharding.SingleDeviceSharding(devices[0], memory_kind="pinned_host")
        )
    except ValueError:
        pytest.skip("devices have no memory of the host here")
    parts = pinned, jax.device_put(np.ones(3), devices[1])

    def added() -> Any:
        context = di.distribute.get_replica_context()
        return context.all_reduce("SUM", pinned), context.all_reduce("SUM", parts[context.replica_id_in_sync_group])

    same, mixed = [strategy.experimental_local_results(each) for each in strategy.run(added)]
    assert [each.tolist() for each in same] == [[0, 2, 4]] * 2
    assert [each.tolist() for each in mixed] == [[1, 2, 3]] * 2
    assert [each.device for each in same] == devices[:2]
    with strategy.scope():
        variable = di.Variable(np.ones(3, np.float32), aggregation="MEAN")
    assert variable.assign_add(pinned).numpy().tolist() == [1, 2, 3]
    strategy.run(lambda: variable.assign_sub(pinned))
    assert variable.numpy().tolist() == [1, 1, 1]


def test_host_arrays_if_steps_are_not_to_be_fetched() -> None:
    strategy = mirrored()
    options = di.distribute.InputOptions(experimental_fetch_to_device=False)
    (step,) = strategy.experimental_distribute_dataset(di.data.Dataset.range(4).batch(4), options)
    assert [type(part) for part in step.values] == [np.ndarray] * 2


ROWS, WIDTH = 128, 256  # 128 KiB in a batch: large enough for the pool of buffers


@pytest.mark.parametrize("waiting, pipeline", crossed([0, 1, 5], ["shuffled", "mapped", "copied"], together=1))
def test_a_batch_that_jax_has_not_looked_at_yet_is_not_overwritten(waiting: int, pipeline: str) -> None:
    """The consumer starts a computation on every batch, drops the batch, and looks at the results much later."""
    rows = np.repeat(np.arange(ROWS * 24, dtype=np.float32), WIDTH).reshape(-1, WIDTH)
    source = di.data.Dataset.from_tensor_slices(rows)
    dataset = {
        "shuffled": source.global_shuffle(seed=1, reshuffle_each_iteration=False).batch(ROWS),
        "mapped": source.batch(ROWS).map(lambda x: x + 0),
        "copied": source.batch(ROWS).copied(),
    }[pipeline]
    # As exact sums: every number of a row is the row's number.
    expected = [batch[:, 0].sum(dtype=np.float64) for batch in dataset]
    slow = jax.jit(lambda x: jnp.round((jnp.sin(x) ** 2 + jnp.cos(x) ** 2) * x).mean(1).sum())
    strategy, late, found = mirrored(4), deque[Any](), []
    for step in strategy.experimental_distribute_dataset(dataset):
        late.append(strategy.run(slow, args=(step,)))
        del step
        if len(late) > waiting:
            found.append(float(strategy.reduce("SUM", late.popleft(), axis=None)))
    found += [float(strategy.reduce("SUM", value, axis=None)) for value in late]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_nothing_is_left_when_devices_are_closed() -> None:
    before = threading.enumerate()
    there = devices(4)
    there.run(lambda i: i, [(i,) for i in range(4)])
    there.close()
    assert threads_since(before) == []
