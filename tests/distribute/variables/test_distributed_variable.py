# SPDX-License-Identifier: Apache-2.0
"""Variables with a copy for each replica."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import distinput as di
from tests.distribute.workers import on_workers

AGGREGATIONS = list(di.VariableAggregation)
NONE, SUM, MEAN, FIRST = AGGREGATIONS
ON_READ = di.VariableSynchronization.ON_READ


def mirrored(replicas: int = 2) -> Any:
    return di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])


def made(strategy: Any, *args: Any, **named: Any) -> Any:
    with strategy.scope():
        return di.Variable(*args, **named)


def replica() -> int:
    return di.distribute.get_replica_context().replica_id_in_sync_group


def copies(v: Any) -> list[Any]:
    return [part.numpy().tolist() for part in v.values]


def test_it_is_shown_as_tensorflow_shows_it() -> None:
    assert repr(made(mirrored(), "a", name="w")) == (
        "MirroredVariable:{\n  0: <tf.Variable 'w:0' shape=() dtype=string, numpy=b'a'>,\n"
        "  1: <tf.Variable 'w/replica_1:0' shape=() dtype=string, numpy=b'a'>\n}"
    )


def test_another_strategy_may_not_use_it() -> None:
    v, other = made(mirrored(), 1.0), mirrored(3)
    with (
        other.scope(),
        pytest.raises(RuntimeError, match=r"Mixing different tf.distribute.Strategy objects: variable V"),
    ):
        v.assign(2.0)
    with pytest.raises(RuntimeError, match=r"Mixing different tf.distribute.Strategy objects: variable Variable:0"):
        other.run(lambda: v + 1)
    assert v.numpy() == 1


def test_run_passes_it_whole_and_each_replica_sees_its_copy() -> None:
    strategy = mirrored()
    v = made(strategy, 0.0)

    def step(x: Any) -> Any:
        assert x is v
        x.assign(float(replica() + 1))
        return x.value(), x + 10, x.read_value()

    first, second, third = strategy.run(step, args=(v,))
    assert [first.values, second.values, third.values] == [(1, 2), (11, 12), (1, 2)]


def test_a_write_in_run_returns_the_copy_of_the_replica() -> None:
    strategy = mirrored()
    v = made(strategy, 1.0)
    result = strategy.run(lambda: v.assign_add(1.0))
    assert strategy.reduce("SUM", result, axis=None) == 4
    assert strategy.run(lambda: v.assign(1.0, read_value=False)) is None


def test_copies_with_equal_values_are_separate_results() -> None:
    strategy = mirrored()
    v = made(strategy, [1.0, 2.0])
    assert strategy.reduce("SUM", strategy.run(lambda: v.value()), axis=None).tolist() == [2, 4]
    v.assign([3.0, 4.0])
    assert strategy.reduce("SUM", strategy.run(lambda: v.value()), axis=None).tolist() == [6, 8]


def test_a_distributed_value_gives_each_copy_its_own() -> None:
    v = made(mirrored(), 1.0)
    v.assign(di.distribute.PerReplica([5.0, 6.0]))
    v.assign_add(di.distribute.Mirrored([np.float32(1), np.float32(1)]))
    assert copies(v) == [6, 7]


def test_another_variable_is_its_value() -> None:
    strategy = mirrored()
    v, w = made(strategy, 1.0, aggregation=SUM), made(strategy, 2.0)
    v.assign(w)
    assert copies(v) == [2, 2]
    strategy.run(lambda: w.assign_add(float(replica())))
    strategy.run(lambda: v.assign(w))  # 2 + 3
    assert copies(v) == [5, 5]


@pytest.mark.parametrize("aggregation, want", [(NONE, [1, 2, 3]), (SUM, [6] * 3), (MEAN, [2] * 3), (FIRST, [1] * 3)])
def test_numbers_that_differ(aggregation: Any, want: list[float]) -> None:
    strategy = mirrored(3)
    v = made(strategy, 0.0, aggregation=aggregation)
    strategy.run(lambda: v.assign_add(float(replica() + 1)))
    assert copies(v) == want


def test_a_number_that_is_the_same_on_all_replicas_cannot_be_summed() -> None:
    strategy = mirrored()
    v = made(strategy, 1.0, aggregation=SUM)
    with pytest.raises(
        ValueError, match=r"A non-DistributedValues value 4.0 cannot be reduced with the given reduce op"
    ):
        strategy.run(lambda: v.assign(4.0))
    strategy.run(lambda: v.assign(0))
    assert copies(v) == [0, 0]


def test_replicas_must_write_the_same_variable_at_one_place() -> None:
    strategy = mirrored()
    v = made(strategy, 1.0, aggregation=SUM)

    def step() -> None:
        if replica():
            v.assign(np.float32(1))

    with pytest.raises(RuntimeError, match="different number of"):
        strategy.run(step)


def slices(number: float) -> di.IndexedSlices:
    return di.IndexedSlices(np.full(1, number, np.float32), np.array([replica()]))


@pytest.mark.parametrize(
    "aggregation, want",
    [
        (NONE, [[1, 0, 0], [0, 2, 0]]),
        (SUM, [[1, 2, 0]] * 2),
        (MEAN, [[0.5, 1, 0]] * 2),
        (FIRST, [[1, 0, 0]] * 2),
    ],
)
def test_rows_of_replicas_are_aggregated(aggregation: Any, want: Any) -> None:
    strategy = mirrored()
    v = made(strategy, [0.0, 0.0, 0.0], aggregation=aggregation)
    strategy.run(lambda: v.scatter_add(slices(replica() + 1)))
    assert copies(v) == want
    strategy.run(lambda: v.scatter_sub(slices(replica() + 1)))
    assert copies(v) == [[0, 0, 0]] * 2


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("method", ["scatter_max", "scatter_min", "scatter_update", "scatter_nd_update"])
def test_rows_that_cannot_be_aggregated(aggregation: Any, method: str) -> None:
    strategy = mirrored()
    v = made(strategy, [0.0, 0.0, 0.0], aggregation=aggregation)

    def write() -> None:
        if "_nd_" in method:
            getattr(v, method)([[0]], np.full(1, -1, np.float32))
        else:
            getattr(v, method)(di.IndexedSlices(np.full(1, -1, np.float32), [0]))

    if aggregation in (SUM, MEAN):
        with pytest.raises(NotImplementedError, match="with NONE or `ONLY_FIRST_REPLICA` aggregation, got"):
            write()
        with pytest.raises(NotImplementedError, match="with NONE or `ONLY_FIRST_REPLICA` aggregation, got"):
            strategy.run(write)
    else:
        write()
        strategy.run(write)
        assert copies(v) == [[0 if method == "scatter_max" else -1, 0, 0]] * 2


def test_variables_that_are_synchronized_on_read_have_no_scatter() -> None:
    strategy = mirrored()
    v = made(strategy, [0.0], synchronization=ON_READ, aggregation=SUM)
    with pytest.raises(NotImplementedError, match="ON_READ"):
        v.scatter_add(di.IndexedSlices([1.0], [0]))
    with pytest.raises(NotImplementedError, match="ON_READ"):
        strategy.run(lambda: v.scatter_add(di.IndexedSlices([1.0], [0])))


def test_reduce_of_variables() -> None:
    strategy = mirrored()
    v, w = made(strategy, 1.0), made(strategy, 1.0, synchronization=ON_READ, aggregation=SUM)
    strategy.run(lambda: w.assign(float(replica() + 1)))
    assert strategy.reduce("MEAN", v, axis=None) == 1
    with pytest.raises(AssertionError, match="has equal copies"):
        strategy.reduce("SUM", v, axis=None)
    assert strategy.reduce("MEAN", {"w": w, "v": v}, axis=None) == {"w": 1.5, "v": 1}
    assert strategy.reduce("SUM", made(strategy, [1.0, 2.0]), axis=0) == 6
    assert strategy.gather(made(strategy, [1.0, 2.0]), axis=0).tolist() == [1, 2, 1, 2]


def test_collectives_of_replicas_take_the_copies() -> None:
    strategy = mirrored()
    v = made(strategy, [1.0])
    v.assign(di.distribute.PerReplica([[1.0], [2.0]]))
    total = strategy.run(lambda: di.distribute.get_replica_context().all_reduce("SUM", {"v": v})["v"])
    assert [x.tolist() for x in total.values] == [[3], [3]]
    rows = strategy.run(lambda: di.distribute.get_replica_context().all_gather(v, axis=0))
    assert rows.values[1].tolist() == [1, 2]
    merged = strategy.run(lambda: di.distribute.get_replica_context().merge_call(lambda strategy, x: x, args=(v,)))
    assert merged is v


def test_local_results_are_the_copies() -> None:
    strategy = mirrored()
    v = made(strategy, 1.0)
    assert strategy.experimental_local_results(v) is v.values
    assert [strategy.extended.value_container(part) is v for part in v.values] == [True, True]
    assert strategy.extended.value_container(5) == 5


def test_a_deep_copy_has_copies_of_its_own() -> None:
    strategy = mirrored()
    v = made(strategy, [1.0], name="w", aggregation=MEAN)
    v.assign(di.distribute.PerReplica([[1.0], [2.0]]))
    other = copy.deepcopy({"v": v})["v"]
    v.assign([5.0])
    assert (type(other), other.name, other.aggregation, copies(other)) == (type(v), "w:0", MEAN, [[1], [2]])
    part = copy.deepcopy(other.values[1])
    other.assign([6.0])
    assert part.numpy().tolist() == [2]


def test_it_cannot_be_pickled() -> None:
    with pytest.raises(TypeError, match=r"cannot be pickled.*v.numpy"):
        pickle.dumps(made(mirrored(), 1.0))


def test_a_saved_sum_is_divided_again() -> None:
    strategy = mirrored()
    v = made(strategy, 0.0, synchronization=ON_READ, aggregation=SUM)
    strategy.run(lambda: v.assign(float(replica() + 1)))
    saved = v._saved()
    assert saved == 3
    v._restored(saved)
    assert copies(v) == [1.5, 1.5]
    w = made(strategy, 4.0)
    w._restored(w._saved())
    assert copies(w) == [4, 4]


def test_shares_of_a_sum_are_rounded_to_the_dtype() -> None:
    v = made(mirrored(), 0, synchronization=ON_READ, aggregation=SUM)
    v.assign(5.0)
    assert copies(v) == [2, 2]


@pytest.mark.parametrize("synchronization", ["ON_WRITE", "ON_READ"])
def test_update_reaches_each_copy(synchronization: str) -> None:
    strategy = mirrored()
    v = made(strategy, 1.0, synchronization=synchronization, aggregation=SUM)
    seen: list[Any] = []

    def change(part: Any, x: Any, y: Any) -> Any:
        seen.append((part.name, float(v)))
        v.assign_add(y)
        return part.assign_add(x)

    args = (di.distribute.PerReplica([1.0, 2.0]), 10.0)
    result = strategy.extended.update(v, change, args=args)
    assert seen == [("Variable:0", 1), ("Variable/replica_1:0", 1)]
    assert copies(v) == [12, 13]
    assert isinstance(result, di.distribute.Mirrored)
    assert strategy.extended.update(v, lambda part: float(part), group=False) == (12, 13)
    assert strategy.extended.update(v, lambda part: None) is None


def test_update_in_a_replica_merges_first() -> None:
    strategy = mirrored()
    v = made(strategy, 1.0)

    def step() -> None:
        strategy.extended.update(v, lambda part, x: part.assign(x), args=(np.float32(replica()),))

    strategy.run(step)
    assert copies(v) == [0, 1]


def test_update_needs_a_variable_of_the_strategy() -> None:
    strategy = mirrored()
    with pytest.raises(AssertionError, match="single value, created outside of its scope"):
        strategy.extended.update(di.Variable(1.0), lambda part: None)
    with pytest.raises(ValueError, match=r"You can not update `var` 5. It must be a Variable"):
        strategy.extended.update(5, lambda part: None)


def test_colocation_is_checked() -> None:
    strategy = mirrored()
    v = made(strategy, 1.0)
    with strategy.scope(), strategy.extended.colocate_vars_with(v):
        w = di.Variable(1.0)
    assert [part.device for part in w.values] == [part.device for part in v.values] == ["CPU:0", "CPU:1"]
    with pytest.raises(ValueError, match="must only be passed a variable created in this"):
        strategy.extended.colocate_vars_with(di.Variable(1.0)).__enter__()


def test_a_variable_of_text() -> None:
    strategy = mirrored()
    v = made(strategy, ["a", "b"])
    strategy.run(lambda: v.assign([str(replica()), "x"]))
    assert copies(v) == [[b"0", b"x"], [b"1", b"x"]]
    assert v.dtype == di.string


@pytest.mark.parametrize("value", [7, -7, 2**60 + 1, 0])
def test_a_sum_of_integers_is_shared_without_a_rest(value: int) -> None:
    v = made(mirrored(3), 0, dtype="int64", synchronization=ON_READ, aggregation=SUM)
    v.assign(value)
    assert v.numpy() == value
    assert max(copies(v)) - min(copies(v)) <= 1
    v._restored(v._saved())
    assert v.numpy() == value
    small = made(mirrored(), 0, dtype="uint8", synchronization=ON_READ, aggregation=SUM)
    small.assign(255)
    assert copies(small) == [128, 127]


def test_workers_share_a_sum_of_integers() -> None:
    def body(strategy: Any, worker: int) -> Any:
        v = made(strategy, 0, synchronization=ON_READ, aggregation=SUM)
        v.assign(7)
        return int(v), copies(v)

    assert on_workers([2, 1], body, timeout=60) == [(7, [3, 2]), (7, [2])]
