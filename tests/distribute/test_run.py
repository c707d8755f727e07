# SPDX-License-Identifier: Apache-2.0
import contextvars
import copy
import gc
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Collection
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.distribute import (
    CentralStorageStrategy,
    MirroredStrategy,
    MultiWorkerMirroredStrategy,
    OneDeviceStrategy,
    PerReplica,
    ReductionToOneDevice,
    get_replica_context,
    get_strategy,
)
from distinput.distribute.core.contexts import ReplicaContext
from distinput.distribute.core.strategy import Strategy
from distinput.errors import AbortedError, InvalidArgumentError
from tests.patience import threads_since


def mirrored(replicas: int) -> MirroredStrategy:
    return MirroredStrategy([f"CPU:{i}" for i in range(replicas)])


def context() -> ReplicaContext:
    found = get_replica_context()
    assert found is not None
    return found


def me() -> int:
    return context().replica_id_in_sync_group


def test_replicas_run_at_the_same_time() -> None:
    barrier = threading.Barrier(4, timeout=60)
    strategy = mirrored(4)
    for _ in range(3):
        assert sorted(strategy.run(barrier.wait).values) == [0, 1, 2, 3]


@given(st.integers(1, 6), st.integers(0, 4))
def test_every_replica_runs_once_and_meets_the_others(replicas: int, meetings: int) -> None:
    strategy = mirrored(replicas)

    def step() -> list[int]:
        return [int(context().all_reduce("SUM", me() + k)) for k in range(meetings)] + [me()]

    want = [sum(range(k, replicas + k)) for k in range(meetings)]
    results = strategy.experimental_local_results(strategy.run(step))
    assert [list(result) for result in results] == [[*want, i] for i in range(replicas)]


def test_arguments_are_selected_in_any_nest() -> None:
    strategy = mirrored(2)
    value = PerReplica([1, 2])
    out = strategy.run(lambda a, b=None: a["x"][0] * 10 + b, args=({"x": [value]},), kwargs={"b": value})
    assert out.values == (11, 22)


def assert_ended(begun: Collection[threading.Thread]) -> None:
    """These threads end; nobody waits for those of a strategy that is dropped."""
    until = time.monotonic() + 30
    while any(thread.is_alive() for thread in begun) and time.monotonic() < until:
        time.sleep(0.001)
    assert not [thread for thread in begun if thread.is_alive()]


def test_nothing_is_left_behind() -> None:
    gc.collect()
    before = threading.enumerate()
    strategy = mirrored(4)
    strategy.run(lambda: context().merge_call(lambda s: s.run(lambda: 1)))
    begun = threads_since(before, "distinput-replica")
    assert len(begun) == 6  # three for the run, three for the run inside the merge function
    del strategy
    assert_ended(begun)


def test_nothing_is_left_behind_after_a_failure() -> None:
    gc.collect()
    before = threading.enumerate()
    strategy = mirrored(4)

    def step() -> None:
        if me() == 3:
            raise KeyError("boom")
        context().merge_call(lambda s: None)

    with pytest.raises(KeyError):
        strategy.run(step)
    begun = threads_since(before, "distinput-replica")
    del strategy
    gc.collect()
    assert_ended(begun)


def test_threads_are_used_again() -> None:
    strategy = mirrored(3)
    names = [strategy.run(threading.get_ident).values for _ in range(5)]
    assert len(set(names)) == 1
    assert len(set(names[0])) == 3


def test_an_idle_strategy_does_not_keep_the_program_alive() -> None:
    program = (
        "import distinput.distribute as d\n"
        "s = d.MirroredStrategy(['CPU:0', 'CPU:1'])\n"
        "print(s.run(lambda: d.get_replica_context().replica_id_in_sync_group).values)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    assert (done.stdout.strip(), done.stderr) == ("(0, 1)", "")


def test_two_threads_may_run_the_same_strategy() -> None:
    strategy = mirrored(3)
    found: list[Any] = []

    def many() -> None:
        found.extend([strategy.run(lambda: int(context().all_reduce("SUM", 1))) for _ in range(50)])

    threads = [threading.Thread(target=many) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [3] * 150


def test_a_run_inside_a_merge_function() -> None:
    strategy = mirrored(3)

    def merge(s: Strategy, x: PerReplica) -> Any:
        return s.run(lambda y: y + int(context().all_reduce("SUM", y)), args=(x,))

    assert strategy.run(lambda: context().merge_call(merge, args=(me(),))).values == (3, 4, 5)


def test_the_merge_function_runs_once_on_the_callers_thread() -> None:
    strategy = mirrored(3)
    calls: list[tuple[int, Any, Any]] = []

    def step() -> Any:
        def merge(s: Strategy, x: Any, k: Any = None) -> Any:
            calls.append((threading.get_ident(), x, k))
            assert get_strategy() is s
            assert get_replica_context() is None
            return PerReplica([10 * v for v in x.values])

        return context().merge_call(merge, args=(me(),), kwargs={"k": 7})

    assert strategy.run(step).values == (0, 10, 20)
    ((thread, x, k),) = calls
    assert (thread, x.values, k) == (threading.get_ident(), (0, 1, 2), 7)


def test_numpys_error_state_and_context_variables_reach_the_replicas() -> None:
    strategy = mirrored(3)
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="unset")
    name.set("mine")

    def step() -> tuple[str, str]:
        seen = (name.get(), np.geterr()["divide"])
        name.set("changed")
        return seen

    with np.errstate(divide="raise"):
        assert strategy.run(step) == ("mine", "raise")
    assert name.get() == "mine"


@pytest.mark.parametrize("bad", range(4))
def test_an_exception_keeps_its_type_and_names_its_replica(bad: int) -> None:
    strategy = mirrored(4)

    def step() -> None:
        if me() == bad:
            raise KeyError("boom")

    with pytest.raises(KeyError, match="boom") as caught:
        strategy.run(step)
    assert caught.value.__notes__ == [f"in replica {bad} of 4 (CPU:{bad}), run(step)"]
    assert strategy.run(me).values == (0, 1, 2, 3)


def test_the_first_failure_is_raised_and_the_others_are_named() -> None:
    strategy = mirrored(3)

    def step() -> None:
        if me() == 2:
            raise OSError("disk")
        with suppress(AbortedError):  # once replica 2 has failed, and not before
            context().merge_call(lambda s: None)
        if me() == 1:
            raise ValueError("later")

    with pytest.raises(OSError, match="disk") as caught:
        strategy.run(step)
    assert caught.value.__notes__[1:] == ["replica 1 failed too: ValueError: later"]


@pytest.mark.parametrize("bad", range(3))
def test_a_failure_releases_those_that_wait(bad: int) -> None:
    strategy = mirrored(3)
    released: list[int] = []

    def step() -> None:
        if me() == bad:
            time.sleep(0.02)
            raise KeyError("boom")
        try:
            context().merge_call(lambda s: None)
        except AbortedError:
            released.append(me())
            raise

    with pytest.raises(KeyError):
        strategy.run(step)
    assert sorted(released) == [i for i in range(3) if i != bad]


@pytest.mark.parametrize("bad", range(3))
def test_unequal_numbers_of_merge_calls(bad: int) -> None:
    strategy = mirrored(3)
    for only in (True, False):
        with pytest.raises(RuntimeError, match="made a different number of replica_context"):
            strategy.run(lambda only=only: context().merge_call(lambda s: None) if (me() == bad) == only else None)


def test_an_exception_of_the_merge_function_is_raised() -> None:
    strategy = mirrored(3)

    def merge(s: Strategy) -> None:
        raise ZeroDivisionError("merge")

    with pytest.raises(ZeroDivisionError, match="merge"):
        strategy.run(lambda: context().merge_call(merge))


def test_a_replica_that_swallows_the_release_does_not_hang() -> None:
    strategy = mirrored(2)

    def step() -> None:
        if me() == 0:
            raise KeyError("boom")
        for _ in range(3):
            with pytest.raises(AbortedError):
                context().merge_call(lambda s: None)

    with pytest.raises(KeyError):
        strategy.run(step)


def test_an_interrupt_lets_go_of_the_replicas() -> None:
    strategy = mirrored(2)

    def step() -> None:
        if me() == 0:
            raise KeyboardInterrupt
        context().merge_call(lambda s: None)

    with pytest.raises(KeyboardInterrupt):
        strategy.run(step)
    assert strategy.run(me).values == (0, 1)


def test_all_reduce_gives_everybody_a_copy_of_his_own() -> None:
    strategy = mirrored(3)

    def step() -> Any:
        total = context().all_reduce("SUM", {"a": np.full(2, me()), "b": [np.float32(1)]})
        total["a"] += me()
        return total

    out = strategy.run(step)
    assert [a.tolist() for a in out["a"].values] == [[3, 3], [4, 4], [5, 5]]
    assert out["b"][0].values == (3.0, 3.0, 3.0)


def test_all_reduce_counts_a_shared_value_once_per_replica() -> None:
    shared = np.ones(2)
    assert mirrored(3).run(lambda: context().all_reduce("SUM", shared)).values[0].tolist() == [3, 3]


def test_all_gather_takes_uneven_parts() -> None:
    strategy = mirrored(3)
    out = strategy.run(lambda: context().all_gather(np.full(me(), me()), axis=0))
    assert [part.tolist() for part in out.values] == [[1, 2, 2]] * 3


def test_what_all_reduce_refuses() -> None:
    strategy = mirrored(2)
    with pytest.raises(ValueError, match="is not a valid ReduceOp"):
        strategy.run(lambda: context().all_reduce("MAX", 1))
    with pytest.raises(InvalidArgumentError, match="must have the same size and shape"):
        strategy.run(lambda: context().all_reduce("SUM", np.ones(me() + 1)))
    with pytest.raises(AssertionError, match="same structure"):
        strategy.run(lambda: context().all_reduce("SUM", [1] * (me() + 1)))
    with pytest.raises(AssertionError, match="as many arguments"):
        strategy.run(lambda: context().merge_call(lambda s, *x: None, args=[1] * me()))


def test_one_replica_needs_no_containers() -> None:
    for strategy in (mirrored(1), OneDeviceStrategy("GPU:0"), get_strategy()):
        out = strategy.run(lambda x: (x + 1, {"n": context().num_replicas_in_sync}), args=(1,))
        assert out == (2, {"n": 1})
        assert strategy.run(lambda: context().merge_call(lambda s, x: x + 1, args=(1,))) == 2


def test_arguments_of_run() -> None:
    for strategy in (mirrored(2), get_strategy()):
        with pytest.raises(ValueError, match="positional args must be a list or tuple"):
            strategy.run(lambda x: x, args=1)  # type: ignore[arg-type]


def test_copies() -> None:
    strategy = mirrored(2)
    with pytest.raises(RuntimeError, match="deepcopy"):
        copy.copy(strategy)
    assert copy.deepcopy(strategy).run(me).values == (0, 1)
    with pytest.raises(RuntimeError, match="only one"):
        copy.deepcopy(get_strategy())


def test_a_strategy_that_is_sent_to_another_process_has_threads_of_its_own() -> None:
    strategy = mirrored(2)
    strategy.run(me)
    there = pickle.loads(pickle.dumps(strategy))
    assert there is not strategy
    assert there.run(me).values == (0, 1)
    central = CentralStorageStrategy(["CPU:0", "CPU:1"], "CPU:1")
    assert pickle.loads(pickle.dumps(central)).extended.parameter_devices == ("CPU:1",)
    ordered = MirroredStrategy(["CPU:0", "CPU:1"], ReductionToOneDevice(accumulation_fn=sum))
    for same in (pickle.loads(pickle.dumps(ordered)), copy.deepcopy(ordered)):
        assert same._reducer.ops is not ordered._reducer.ops
        assert same.reduce("SUM", PerReplica([1, 2]), axis=None) == 3
    assert pickle.loads(pickle.dumps(get_strategy())) is get_strategy()


def test_a_strategy_of_several_workers_is_not_sent() -> None:
    with MultiWorkerMirroredStrategy() as strategy, pytest.raises(RuntimeError, match="make it there"):
        pickle.dumps(strategy)


def test_devices_are_labels() -> None:
    strategy = MirroredStrategy(["/job:localhost/task:0/device:gpu:0", "GPU:1"])
    assert strategy.extended.worker_devices == ("GPU:0", "GPU:1")
    assert MirroredStrategy().num_replicas_in_sync == MirroredStrategy([]).num_replicas_in_sync == 1
    assert strategy.cluster_resolver is None
    with pytest.raises(AssertionError, match="No duplicates allowed in `devices` argument"):
        MirroredStrategy(["CPU:0", "/cpu:0"])
    with pytest.raises(ValueError, match="not the name of a device"):
        MirroredStrategy(["no such thing"])
    with pytest.raises(ValueError, match="unknown backend 'x'; known are jax, threads, torch"):
        MirroredStrategy(["CPU:0"], backend="x")


class Pair(NamedTuple):
    a: Any
    b: Any


class Proxy:
    """Stands for a value, its class included, as those of wrapt do."""

    def __init__(self, value: Any) -> None:
        object.__setattr__(self, "_value", value)

    def __getattribute__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_value"), name)

    def __len__(self) -> int:
        return len(object.__getattribute__(self, "_value"))

    def __iter__(self) -> Any:
        return iter(object.__getattribute__(self, "_value"))


def test_a_proxy_of_a_named_tuple_comes_back_as_the_named_tuple() -> None:
    made = mirrored(2).run(lambda: Proxy(Pair(me(), "text")))
    assert (type(made), made.a.values, made.b) == (Pair, (0, 1), "text")


@pytest.mark.parametrize("backend", ["threads", "jax", "torch"])
def test_an_interrupt_does_not_wait_for_replicas_that_sleep(backend: str) -> None:
    pytest.importorskip("numpy" if backend == "threads" else backend, reason="the backend is not installed")
    strategy = MirroredStrategy(["CPU:0", "CPU:1"], backend=backend)
    release, sleeping = threading.Event(), threading.Event()

    def step() -> None:
        if get_replica_context().replica_id_in_sync_group:
            sleeping.set()
            release.wait(60)
        else:
            assert sleeping.wait(60)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        strategy.run(step)
    assert not release.is_set()
    release.set()
    assert strategy.run(lambda: 1) is not None


@pytest.mark.parametrize(
    "function, plain",
    [
        (lambda x: 5, True),
        (lambda x: int(x), False),  # Python keeps one object for small integers
        (lambda x: 5 if x else 6, False),
        (lambda x: int(x) and 5, False),
    ],
    ids=["literal", "computed", "two literals", "one of two ways"],
)
def test_a_number_is_plain_only_where_the_function_is_a_literal(function: Any, plain: bool) -> None:
    strategy = MirroredStrategy(["CPU:0", "CPU:1"])
    made = strategy.run(function, args=(5,))
    assert isinstance(made, int) == plain
    assert strategy.experimental_local_results(made) == ((5,) if plain else (5, 5))
