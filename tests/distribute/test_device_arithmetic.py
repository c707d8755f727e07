# SPDX-License-Identifier: Apache-2.0
"""The same program gives the same numbers on all backends, and what is on devices stays there."""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import distinput as di

BACKENDS = ("jax", "torch")


def labels(backend: str, count: int) -> list[str]:
    return [f"{'JAX' if backend == 'jax' else 'CPU'}:{i}" for i in range(count)]


def strategy_of(backend: str, count: int, **settings: Any) -> Any:
    if backend != "threads":
        pytest.importorskip(backend)
    return di.distribute.MirroredStrategy(labels(backend, count), backend=backend, **settings)


def belongs(backend: str, value: Any) -> bool:
    """Whether a value is an array of the backend's framework."""
    module = import_module(backend)
    return isinstance(value, module.Array if backend == "jax" else module.Tensor)


def device_of(backend: str, value: Any) -> Any:
    return next(iter(value.devices())) if backend == "jax" else value.device


def program(strategy: Any, rows: int, batch: int) -> Iterator[Any]:
    """What a training loop computes of uneven batches: sums, means, gathered rows, nests, and values of all replicas."""
    dataset = di.data.Dataset.range(rows).map(
        lambda x: {"x": (x * x).astype(np.float32), "y": x.astype(np.int32), "even": x % 2 == 0}
    )

    def step(element: Any) -> Any:
        context = di.distribute.get_replica_context()
        x, y = element["x"], element["y"]
        total = x.sum()
        both = context.all_reduce("SUM", {"total": total, "count": y.sum()})
        mean = context.all_reduce("MEAN", y.sum())
        return {
            "x": x * 2,
            "y": y,
            "total": total,
            "both": both["total"],
            "count": both["count"],
            "mean": mean,
            "all": context.all_gather(y, axis=0),
        }

    for element in strategy.experimental_distribute_dataset(dataset.batch(batch)):
        made = strategy.run(step, args=(element,))
        for op in ("SUM", "MEAN"):
            yield strategy.reduce(op, made["x"], axis=0)
            yield strategy.reduce(op, made["y"], axis=(0,))
            yield strategy.reduce(op, {"total": made["total"], "mean": made["mean"]}, axis=None)
            yield strategy.reduce(op, (made["both"], [made["count"]]), axis=None)[0]
        yield strategy.gather({"x": made["x"], "y": made["y"]}, axis=0)
        yield strategy.gather(element["even"], axis=-1)
        yield strategy.gather(made["all"], axis=0)
        yield [strategy.reduce("SUM", made["total"], axis=None, deterministic=True)]


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in leaves(value[key])]
    return list(value) if isinstance(value, list) else [value]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("count, rows, batch", [(1, 3, 2), (2, 5, 4), (3, 7, 4)])
def test_a_program_gives_the_numbers_of_threads(backend: str, count: int, rows: int, batch: int) -> None:
    strategy = strategy_of(backend, count)
    expected = [leaf for value in program(strategy_of("threads", count), rows, batch) for leaf in leaves(value)]
    found = [leaf for value in program(strategy, rows, batch) for leaf in leaves(value)]
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert belongs(backend, a)
        got = np.asarray(a)
        assert got.shape == np.shape(b)
        wide = np.asarray(b).dtype
        assert got.dtype in (wide, f"{wide.kind}4" if backend == "jax" else wide)  # JAX has 32 bits
        np.testing.assert_allclose(got, b, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_means_of_large_integers_do_not_wrap_in_torch(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    rows = np.array([2**62, 2**62 + 2**61, 3], dtype) * np.array(1 + (dtype == "uint64"), dtype)
    value = di.distribute.PerReplica([torch.from_numpy(part) for part in (rows[:1], rows[1:])])
    strategy = strategy_of("torch", 2)
    each = di.distribute.PerReplica([torch.from_numpy(part) for part in (rows[:1], rows[1:2])])
    for how in ({}, {"deterministic": True}):
        assert strategy.reduce("MEAN", value, axis=0, **how) == sum(rows.tolist()) / 3
        assert strategy.reduce("MEAN", each, axis=None, **how).tolist() == [sum(rows[:2].tolist()) / 2]


@pytest.mark.parametrize("backend", BACKENDS)
def test_results_lie_on_the_first_device_and_each_replicas_own(backend: str) -> None:
    strategy = strategy_of(backend, 3)
    devices = strategy._replicas.devices.devices

    def step(x: Any) -> Any:
        context = di.distribute.get_replica_context()
        return context.all_reduce("SUM", x.sum()), context.all_gather(x, axis=0), x

    (element,) = strategy.experimental_distribute_dataset(di.data.Dataset.range(3).batch(3))
    for value, many in zip(strategy.run(step, args=(element,)), (True, True, False), strict=True):
        assert [device_of(backend, part) for part in value.values] == list(devices)
        if many:
            continue
        for made in (strategy.reduce("MEAN", value, axis=0), strategy.gather(value, axis=0)):
            assert device_of(backend, made) == devices[0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_replica_may_write_to_what_all_of_them_got(backend: str) -> None:
    strategy = strategy_of(backend, 3)

    def step() -> Any:
        context = di.distribute.get_replica_context()
        mine = context.all_reduce("SUM", np.ones(2, np.float32))
        mine += context.replica_id_in_sync_group
        return mine

    found = strategy.run(step)
    assert [part.tolist() for part in found.values] == [[3, 3], [4, 4], [5, 5]]


@pytest.mark.parametrize("backend", BACKENDS)
def test_text_stays_on_the_host(backend: str) -> None:
    strategy = strategy_of(backend, 2)
    words = di.data.Dataset.from_tensor_slices([b"a", b"bb", b"c"]).batch(3)
    (element,) = strategy.experimental_distribute_dataset(words)
    assert strategy.gather(element, axis=0).tolist() == [b"a", b"bb", b"c"]
    with pytest.raises(di.errors.InvalidArgumentError, match="SUM needs numbers, got strings"):
        strategy.reduce("SUM", element, axis=0)
    mixed = di.distribute.PerReplica([element.values[0], strategy._replicas.devices.put(np.zeros(1), 1, owned=True)])
    with pytest.raises(di.errors.InvalidArgumentError, match=r"strings|same dtype"):
        strategy.reduce("SUM", mixed, axis=0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_numbers_of_python_are_on_the_host_until_replicas_share_them(backend: str) -> None:
    strategy = strategy_of(backend, 2)
    given = di.distribute.PerReplica([1.0, 2.0])
    assert isinstance(strategy.reduce("SUM", given, axis=None), np.float64)
    found = strategy.run(lambda x: di.distribute.get_replica_context().all_reduce("SUM", x), args=(given,))
    assert all(belongs(backend, part) and float(part) == 3 for part in found.values)


@pytest.mark.parametrize("backend", BACKENDS)
def test_masked_rows_are_left_out(backend: str) -> None:
    strategy, host = strategy_of(backend, 2), strategy_of("threads", 2)
    options = di.distribute.InputOptions(tail="pad")
    dataset = di.data.Dataset.range(5).map(np.float32).batch(4)

    def numbers(strategy: Any) -> Iterator[Any]:
        for element, mask in strategy.experimental_distribute_dataset(dataset, options):
            yield strategy.reduce("MEAN", element, axis=0, mask=mask)
            yield strategy.gather(element, axis=0, mask=mask)

    for found, expected in zip(numbers(strategy), numbers(host), strict=True):
        assert belongs(backend, found)
        assert found.tolist() == expected.tolist()
    one = di.distribute.OneDeviceStrategy(labels(backend, 1)[0], backend=backend)
    put = one._replicas.devices.put
    rows, mask = put(np.arange(3.0), 0, owned=True), put(np.array([True, False, True]), 0, owned=True)
    assert one.reduce("SUM", rows, axis=None, mask=mask).tolist() == [0, 2]


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_mask_of_a_replica_is_on_its_device(backend: str) -> None:
    strategy = strategy_of(backend, 2)
    (element,) = strategy.experimental_distribute_dataset(di.data.Dataset.range(3).batch(3))
    masks = strategy.run(lambda x: di.distribute.get_replica_context().row_mask, args=(element,)).values
    assert [device_of(backend, mask) for mask in masks] == list(strategy._replicas.devices.devices)
    assert [mask.tolist() for mask in masks] == [[True, True], [True]]


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_array_that_all_replicas_share_may_only_be_zero_in_a_sum(backend: str) -> None:
    strategy = strategy_of(backend, 2)
    put = strategy._replicas.devices.put
    zero, one = put(np.zeros(2, np.float32), 0, owned=True), put(np.ones(2, np.float32), 0, owned=True)
    assert strategy.reduce("SUM", zero, axis=None) is zero
    assert strategy.reduce("MEAN", one, axis=None) is one
    with pytest.raises(ValueError, match="cannot be reduced with the given reduce op SUM"):
        strategy.reduce("SUM", one, axis=None)


OPS: list[Callable[[], Any]] = [
    lambda: di.distribute.ReductionToOneDevice(accumulation_fn=sum),
    di.distribute.HierarchicalCopyAllReduce,
    lambda: di.distribute.NcclAllReduce(num_packs=2),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("make", OPS)
def test_cross_device_ops_add_on_the_devices(backend: str, make: Callable[[], Any]) -> None:
    values = [np.float32([0.1, 1e8, i]) for i in range(3)]
    numbers = [np.int32(i) for i in range(3)]

    def step(x: Any, n: Any) -> Any:
        context = di.distribute.get_replica_context()
        return context.all_reduce("SUM", {"x": x, "n": n}), context.all_reduce("MEAN", n)

    def results(strategy: Any) -> Iterator[Any]:
        put = strategy._replicas.devices.put
        x, n = (
            di.distribute.PerReplica([put(value, i, owned=True) for i, value in enumerate(each)])
            for each in (values, numbers)
        )
        for op in ("SUM", "MEAN"):
            yield strategy.reduce(op, x, axis=None)
            yield strategy.reduce(op, x, axis=0)
            yield strategy.reduce(op, n, axis=None)
        both, mean = strategy.run(step, args=(x, n))
        yield from (value for part in (both["x"], both["n"], mean) for value in part.values)

    host = results(strategy_of("threads", 3, cross_device_ops=make()))
    for found, expected in zip(results(strategy_of(backend, 3, cross_device_ops=make())), host, strict=True):
        assert belongs(backend, found)
        got = np.asarray(found)
        np.testing.assert_array_equal(got.astype(np.float32), np.asarray(expected, np.float32))


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_replica_with_cross_device_ops_gets_a_copy(backend: str) -> None:
    strategy = strategy_of(backend, 1, cross_device_ops=di.distribute.NcclAllReduce())
    part = strategy._replicas.devices.put(np.arange(2.0), 0, owned=True)
    made = strategy.reduce("SUM", di.distribute.PerReplica([part]), axis=None)
    assert made is not part
    assert made.tolist() == [0, 1]


# ---- what passes between the host and the devices


class Counted:
    """How often values went to the host, or came from it."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.back: list[str] = []


def count_torch(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Counts what a CPU tensor would not notice: every method that gives values to Python or NumPy, or takes them."""
    torch = import_module("torch")
    counted = Counted()
    for name in ("numpy", "cpu", "item", "tolist", "__array__", "__float__", "__int__", "__bool__", "__dlpack__"):
        original = getattr(torch.Tensor, name)

        def spy(self: Any, *args: Any, original: Any = original, name: str = name, **named: Any) -> Any:
            counted.out.append(name)
            return original(self, *args, **named)

        monkeypatch.setattr(torch.Tensor, name, spy)
    for name in ("from_numpy", "tensor", "as_tensor", "from_dlpack"):
        original = getattr(torch, name)

        def made(*args: Any, original: Any = original, name: str = name, **named: Any) -> Any:
            counted.back.append(name)
            return original(*args, **named)

        monkeypatch.setattr(torch, name, made)
    return counted


def count_jax(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Counts arrays given to NumPy, which looks at memory on a CPU without asking JAX, and arrays put from the host."""
    jax = import_module("jax")
    counted = Counted()

    def spied(function: Any, name: str) -> Any:
        def spy(*args: Any, **named: Any) -> Any:
            flat = [x for arg in args for x in (arg if isinstance(arg, list | tuple) else [arg])]
            if any(isinstance(x, jax.Array) for x in flat):
                counted.out.append(name)
            return function(*args, **named)

        return spy

    for name in ("array", "asarray", "asanyarray", "ascontiguousarray", "concatenate", "copy", "stack"):
        monkeypatch.setattr(np, name, spied(getattr(np, name), f"numpy.{name}"))
    monkeypatch.setattr(jax, "device_get", spied(jax.device_get, "device_get"))
    put = jax.device_put

    def put_spy(x: Any, *args: Any, **named: Any) -> Any:
        # A count, by which a mean divides, is no payload.
        if any(np.ndim(leaf) for leaf in jax.tree.leaves(x) if isinstance(leaf, np.ndarray)):
            counted.back.append("device_put")
        return put(x, *args, **named)

    monkeypatch.setattr(jax, "device_put", put_spy)
    return counted


COUNTERS: dict[str, Callable[[pytest.MonkeyPatch], Counted]] = {"jax": count_jax, "torch": count_torch}


def training(strategy: Any, element: Any) -> None:
    """All arithmetic of a strategy, on values that are on devices."""

    def step(x: Any) -> Any:
        context = di.distribute.get_replica_context()
        nest = context.all_reduce("MEAN", {"a": x.sum(), "b": (x[:1],)})
        return x * 2, nest["a"], context.all_gather(x, axis=0), context.all_reduce("SUM", x.sum())

    rows, scalar, _, _ = strategy.run(step, args=(element,))
    for op in ("SUM", "MEAN"):
        strategy.reduce(op, rows, axis=0)
        strategy.reduce(op, scalar, axis=None)
        strategy.reduce(op, {"s": scalar}, axis=None)
        strategy.reduce(op, element, axis=0)
    strategy.gather({"r": rows, "e": element}, axis=0)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("count", [1, 3])
def test_nothing_passes_between_host_and_devices(backend: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    strategy = strategy_of(backend, count)
    (element,) = strategy.experimental_distribute_dataset(di.data.Dataset.range(7).map(np.float32).batch(7))
    training(strategy, element)  # what is compiled, or made at first, is not counted
    counted = COUNTERS[backend](monkeypatch)
    training(strategy, element)
    assert (counted.out, counted.back) == ([], [])


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_counter_counts(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    strategy = strategy_of(backend, 2)
    (element,) = strategy.experimental_distribute_dataset(di.data.Dataset.range(4).map(np.float32).batch(4))
    counted = COUNTERS[backend](monkeypatch)
    strategy.reduce("SUM", element, axis=0, deterministic=True)  # which says that it uses the host
    assert counted.out
    strategy._replicas.devices.put(np.zeros(3), 0, owned=True)
    assert counted.back
