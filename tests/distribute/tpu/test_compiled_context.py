# SPDX-License-Identifier: Apache-2.0
"""What the code of a replica may do while it is compiled, and what comes of it."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from tests.distribute.tpu.programs import REPLICAS, context, parts_of, plain, same

VALUES = parts_of([2] * REPLICAS)
SUM, MEAN = di.distribute.ReduceOp.SUM, di.distribute.ReduceOp.MEAN


@pytest.fixture(scope="module")
def strategies() -> tuple[Any, Any, Any]:
    mirrored = di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(REPLICAS)])
    return di.distribute.TPUStrategy(), di.distribute.TPUStrategy(compile=False), mirrored


def reduced(x: Any) -> Any:
    return context().all_reduce("SUM", {"a": x, "b": [x.sum(), x.mean(0)]}), context().all_reduce(MEAN, x)


def gathered(x: Any) -> Any:
    return context().all_gather(x, 0), context().all_gather({"y": x}, axis=-1)


def merged_sum(x: Any) -> Any:
    def merge(strategy: Any, values: Any, factor: Any) -> Any:
        assert di.distribute.in_cross_replica_context()
        assert context() is None
        return strategy.reduce(SUM, values, axis=None) * factor

    return context().merge_call(merge, args=(x, 3))


def merged_rows(x: Any) -> Any:
    return context().merge_call(lambda strategy, values: strategy.reduce("MEAN", values, axis=0), args=(x,))


def merged_gather(x: Any) -> Any:
    return context().merge_call(lambda strategy, values: strategy.gather(values, axis=0), args=(x,))


def merged_parts(x: Any) -> Any:
    def merge(strategy: Any, values: Any) -> Any:
        parts = strategy.experimental_local_results(values)
        return di.distribute.PerReplica(parts[1:] + parts[:1])  # each gets the part of the next one

    return context().merge_call(merge, args=(x,))


def merged_as_given(x: Any) -> Any:
    return context().merge_call(lambda strategy, *, values: {"v": values, "k": 5}, kwargs={"values": x})


@pytest.mark.parametrize(
    "function",
    [reduced, gathered, merged_sum, merged_rows, merged_gather, merged_parts, merged_as_given],
    ids=lambda f: f.__name__,
)
def test_replicas_meet(strategies: Any, function: Callable[..., Any]) -> None:
    compiled, eager, mirrored = strategies
    expected = plain(mirrored, mirrored.run(function, (VALUES,)))
    same(plain(compiled, compiled.run(function, (VALUES,))), expected)
    same(plain(eager, eager.run(function, (VALUES,))), expected)


def made(strategy: Any) -> Any:
    """Variables of every kind."""
    with strategy.scope():
        return {
            f"{when} {how}": di.Variable(np.ones(3, np.float32), synchronization=when, aggregation=how, name=how)
            for when, how in [
                ("ON_WRITE", "SUM"),
                ("ON_WRITE", "MEAN"),
                ("ON_WRITE", "ONLY_FIRST_REPLICA"),
                ("ON_WRITE", "NONE"),
                ("ON_READ", "SUM"),
                ("ON_READ", "MEAN"),
                ("ON_READ", "ONLY_FIRST_REPLICA"),
            ]
        }


def copies(strategy: Any, variables: Any) -> Any:
    return {
        name: [np.asarray(copy) for copy in strategy.experimental_local_results(variable)]
        for name, variable in variables.items()
    }


@pytest.mark.parametrize("write", ["assign", "assign_add", "assign_sub"])
def test_variables_of_every_kind(strategies: Any, write: str) -> None:
    def step(variables: Any, x: Any) -> Any:
        for variable in variables.values():
            getattr(variable, write)(x.mean(0))
        return {name: variable.read_value() + 1 for name, variable in variables.items()}

    found = []
    for strategy in strategies:
        variables = made(strategy)
        results = [plain(strategy, strategy.run(step, (variables, VALUES))) for _ in range(2)]
        read = {name: variable.numpy() for name, variable in variables.items()}
        found.append((results, copies(strategy, variables), read))
    same(found[0], found[2])
    same(found[1], found[2])


def test_a_mean_of_integers_is_a_float(strategies: Any) -> None:
    compiled, _, _ = strategies
    total = compiled.run(lambda: context().all_reduce("MEAN", context().replica_id_in_sync_group))
    assert total.values[0].dtype == np.float32
    assert float(total.values[5]) == 3.5


def test_variables_in_a_merge_function(strategies: Any) -> None:
    def step(variables: Any, x: Any) -> Any:
        def merge(strategy: Any, values: Any) -> Any:
            variables["ON_WRITE SUM"].assign_add(strategy.reduce(SUM, values, axis=0))
            variables["ON_WRITE NONE"].assign(di.distribute.PerReplica([p[0] for p in values.values]))
            strategy.extended.update(variables["ON_WRITE MEAN"], lambda v, d: v.assign_sub(d[1]), args=(values,))
            return variables["ON_READ SUM"].read_value() + variables["ON_WRITE NONE"].read_value()

        variables["ON_READ SUM"].assign_add(x.sum(0))
        return context().merge_call(merge, args=(x,)), variables["ON_WRITE MEAN"].read_value()

    found = []
    for strategy in strategies:
        variables = made(strategy)
        results = plain(strategy, strategy.run(step, (variables, VALUES)))
        found.append((results, copies(strategy, variables)))
    same(found[0], found[2])
    same(found[1], found[2])


def test_a_variable_is_created_once_inside_of_run(strategies: Any) -> None:
    for strategy in strategies:

        class Model:
            v: Any = None

            def step(self, x: Any) -> Any:
                if self.v is None:
                    self.v = di.Variable(lambda: np.ones(3, np.float32), aggregation="SUM")
                self.v.assign_add(x.sum(0))
                return self.v.read_value()

        model = Model()
        for _ in range(2):
            strategy.run(model.step, (VALUES,))
        total = 1 + 2 * np.sum([part.sum(0) for part in VALUES.values], axis=0)
        np.testing.assert_allclose(model.v.numpy(), total, rtol=1e-5)


def test_a_variable_from_outside_is_read_anew_by_each_run(strategies: Any) -> None:
    rate = di.Variable(2.0)

    def step(x: Any) -> Any:
        return x * rate.read_value()

    compiled = di.distribute.TPUStrategy()
    for value in (2.0, 3.0):
        rate.assign(value)
        np.testing.assert_allclose(compiled.run(step, (VALUES,)).values[4], VALUES.values[4] * value)
    assert compiled.run_counts.programs == 1
    with pytest.raises(RuntimeError, match="was created outside of the strategy's scope"):
        compiled.run(lambda: rate.assign(1.0))
    assert rate.numpy() == 3.0


def test_gradients_and_loops_see_variables() -> None:
    strategy = di.distribute.TPUStrategy()
    with strategy.scope():
        w = di.Variable(np.ones(3, np.float32), aggregation="MEAN")

    def step(x: Any) -> Any:
        gradient = jax.grad(lambda scale: (x @ (w.read_value() * scale)).sum())(2.0)
        last, _ = jax.lax.scan(lambda carry, row: (carry + row @ w.read_value(), None), 0.0, x)
        w.assign_sub(x.sum(0))
        return gradient, last

    found = strategy.run(step, (VALUES,))
    for i, part in enumerate(VALUES.values):
        np.testing.assert_allclose(found[0].values[i], part.sum(), rtol=1e-5)
        np.testing.assert_allclose(found[1].values[i], part.sum(), rtol=1e-5)
    with pytest.raises(RuntimeError, match="cannot be written inside a function that JAX traces itself"):
        strategy.run(lambda x: jax.grad(lambda s: w.assign(w.read_value() * s).read_value().sum())(2.0), (VALUES,))


def test_a_program_cannot_change_the_shape_of_a_variable() -> None:
    strategy = di.distribute.TPUStrategy()
    with strategy.scope():
        v = di.Variable(np.ones(3, np.float32), shape=di.TensorShape([None]))
    with pytest.raises(InvalidArgumentError, match="cannot change the shape of a variable"):
        strategy.run(lambda: v.assign(jnp.ones(4)))
    assert v.numpy().shape == (3,)


def test_a_variable_of_another_shape_takes_another_program() -> None:
    strategy = di.distribute.TPUStrategy()
    with strategy.scope():
        v = di.Variable(np.ones(3, np.float32), shape=di.TensorShape([None]))
    for size in (3, 1, 4):
        v.assign(np.full(size, 2, np.float32))
        found = strategy.run(lambda: (v.read_value() + jnp.ones(1)).sum())
        assert float(found.values[7]) == 3 * size
    assert strategy.run_counts.programs == 3


def test_wrong_calls_are_refused(strategies: Any) -> None:
    compiled, _, _ = strategies
    for wrong, error, text in [
        (lambda x: context().all_reduce("MAX", x), ValueError, "not a valid ReduceOp"),
        (lambda x: context().all_reduce("SUM", x > 0), InvalidArgumentError, "needs numbers, got bool"),
        (lambda x: context().all_gather(x.sum(), 0), InvalidArgumentError, "Can't concatenate scalars"),
        (lambda x: context().all_gather(x, 2), InvalidArgumentError, "got axis 2"),
        (lambda x: compiled.reduce("SUM", x, None), RuntimeError, "cross-replica context"),
        (lambda x: compiled.run(lambda: 1), RuntimeError, "cross-replica context"),
    ]:
        with pytest.raises(error, match=text):
            compiled.run(wrong, (VALUES,))
    with pytest.raises(RuntimeError, match="row_mask: the arguments of run must have rows"):
        compiled.run(lambda: context().row_mask)
