# SPDX-License-Identifier: Apache-2.0
"""Laws: a compiled run, an uncompiled one and MirroredStrategy on NumPy give the same numbers, whatever the rows."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from tests.depth import cases, crossed
from tests.distribute.tpu import programs
from tests.distribute.tpu.programs import ALL, PADDED, REPLICAS, context, parts_of, plain, same

FULL = [4] * REPLICAS
FEW = cases(4, REPLICAS)
"""Replicas of the laws: XLA compiles what runs uncompiled for each."""
ROWS = [[4] * FEW, [*[4] * (FEW - 2), 3, 1], [*[4] * (FEW // 2 - 1), 2, *[0] * (FEW // 2)], [3] * FEW]


def strategies_of(count: int) -> tuple[Any, Any, Any]:
    """A compiled run, an uncompiled one, and NumPy's."""
    devices = jax.devices()[:count]
    compiled = di.distribute.TPUStrategy(devices=devices)
    assert compiled.num_replicas_in_sync == count
    eager = di.distribute.TPUStrategy(devices=devices, compile=False)
    return compiled, eager, di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(count)])


strategies = pytest.fixture(scope="module")(lambda: strategies_of(REPLICAS))
few = pytest.fixture(scope="module")(lambda: strategies_of(FEW))


@pytest.mark.parametrize(
    "function, rows", crossed(ALL, ROWS, together=1), ids=lambda given: getattr(given, "__name__", str(given))
)
@pytest.mark.filterwarnings("ignore:Mean of empty slice:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
def test_a_compiled_run_gives_what_numpy_gives(few: Any, function: Callable[..., Any], rows: list[int]) -> None:
    compiled, eager, mirrored = few
    for values in (parts_of(ROWS[0]), parts_of(rows)):  # after a full step there is a program that may be used again
        expected = plain(mirrored, mirrored.run(function, (values,)))
        same(plain(compiled, compiled.run(function, (values,))), expected)
    same(plain(eager, eager.run(function, (values,))), expected)


@settings(max_examples=cases(10, 300))
@given(st.sampled_from(ALL), st.lists(st.integers(1, 5), min_size=FEW, max_size=FEW), st.booleans())
def test_any_numbers_of_rows_give_what_numpy_gives(
    few: Any, function: Callable[..., Any], rows: list[int], whole: bool
) -> None:
    compiled, _, mirrored = few
    values = parts_of(rows, np.int32 if whole and function is not programs.masked_mean else np.float32)
    same(plain(compiled, compiled.run(function, (values,))), plain(mirrored, mirrored.run(function, (values,))))


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_only_what_is_proved_runs_with_added_rows(function: Callable[..., Any]) -> None:
    strategy = di.distribute.TPUStrategy(devices=jax.devices()[:FEW])
    strategy.run(function, (parts_of(ROWS[0]),))
    strategy.run(function, (parts_of([*[4] * (FEW - 2), 3, 2]),))
    counts = strategy.run_counts
    padded = function in PADDED
    assert (counts.programs, counts.compiled, counts.padded, counts.uncompiled) == (1, 1 + padded, padded, 1 - padded)


def test_rows_of_a_padded_result_are_reduced_and_gathered_without_the_added_ones(strategies: Any) -> None:
    compiled, _, mirrored = strategies
    values = parts_of([4, 4, 4, 4, 4, 3, 0, 0])
    compiled.run(programs.each_row, (parts_of(FULL),))
    before = compiled.run_counts.padded
    mine, theirs = compiled.run(programs.each_row, (values,)), mirrored.run(programs.each_row, (values,))
    assert compiled.run_counts.padded == before + 1
    assert mine.row_counts == theirs.row_counts == (4, 4, 4, 4, 4, 3, 0, 0)
    for op in ("SUM", "MEAN"):
        same(np.asarray(compiled.reduce(op, mine, axis=0)), mirrored.reduce(op, theirs, axis=0))
    same(np.asarray(compiled.gather(mine, axis=0)), mirrored.gather(theirs, axis=0))


class Compilations:
    """How often XLA compiled a program while it was listened to."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, event: str, duration: float, **_: Any) -> None:
        self.count += event == "/jax/core/compile/backend_compile_duration"


def test_an_epoch_with_an_uneven_end_compiles_one_program() -> None:
    strategy = di.distribute.TPUStrategy()
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(1000, 5)).astype(np.float32), rng.integers(0, 3, 1000).astype(np.int32)
    steps = strategy.experimental_distribute_dataset(di.data.Dataset.from_tensor_slices((x, y)).batch(128))
    with strategy.scope():
        w = di.Variable(np.zeros((5, 3), np.float32), aggregation="SUM")
        seen = di.Variable(0.0, synchronization="ON_READ", aggregation="SUM")

    def step(batch: Any) -> Any:
        x, y = batch
        mask = context().row_mask

        def loss(w: Any) -> Any:
            losses = -jnp.take_along_axis(jax.nn.log_softmax(x @ w), y[:, None], 1)[:, 0]
            return jnp.sum(losses * mask) / 128

        value, gradient = jax.value_and_grad(loss)(w.read_value())
        w.assign_sub(0.5 * gradient)
        seen.assign_add(mask.sum().astype(jnp.float32))
        return value

    compilations = Compilations()
    jax.monitoring.register_event_duration_secs_listener(compilations)
    losses = []
    for i, batch in enumerate(steps):
        losses.append(strategy.reduce("SUM", strategy.run(step, (batch,)), axis=None))
        if i == 0:
            after_first = compilations.count
    counts = strategy.run_counts
    assert (counts.programs, counts.compiled, counts.padded, counts.uncompiled) == (1, 8, 1, 0)
    assert float(seen.numpy()) == 1000
    expected, total = np.zeros((5, 3), np.float32), []
    for a in range(0, 1000, 128):  # the same in NumPy
        batch, labels = x[a : a + 128], y[a : a + 128]
        logits = batch @ expected
        p = np.exp(logits - logits.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        total.append(-np.log(p[np.arange(len(p)), labels]).sum() / 128)
        p[np.arange(len(p)), labels] -= 1
        expected = expected - 0.5 * batch.T @ p / 128
    np.testing.assert_allclose([float(loss) for loss in losses], total, rtol=1e-4)
    np.testing.assert_allclose(w.numpy(), expected, rtol=1e-3, atol=1e-5)
    assert after_first >= 1


def test_new_lambdas_of_the_same_code_use_one_program() -> None:
    strategy = di.distribute.TPUStrategy()
    for _ in range(3):
        for factor in (2, 3):
            found = strategy.run(lambda x, factor=factor: x * factor, (parts_of(FULL),))
            assert float(found.values[0][0, 0]) == factor * float(parts_of(FULL).values[0][0, 0])
    assert strategy.run_counts.programs == 2


def test_a_python_number_is_part_of_the_program_and_an_array_is_not() -> None:
    strategy = di.distribute.TPUStrategy()
    ones = di.distribute.PerReplica([np.float32(1)] * REPLICAS)
    for factor in (1, 2, True, 2.0, np.float32(3), np.float32(4)):
        found = strategy.run(lambda x, k: x * k, (ones, factor))
        assert float(found.values[3]) == float(factor)
    assert strategy.run_counts.programs == 5


def test_a_warning_says_that_a_number_compiles_again_and_again() -> None:
    strategy = di.distribute.TPUStrategy(devices=jax.devices()[:1])
    runs = [lambda i=i: strategy.run(lambda k: jnp.float32(k), (i,)) for i in range(17)]
    for run in runs[:15]:
        run()
    with pytest.warns(UserWarning, match=r"compiled 16 times.*give them as arrays, such as np.float32"):
        runs[15]()
    runs[16]()


def test_an_error_while_tracing_leaves_variables_as_they_were() -> None:
    strategy = di.distribute.TPUStrategy()
    with strategy.scope():
        v = di.Variable(1.0, aggregation="MEAN")

    def step(x: Any) -> Any:
        v.assign_add(jnp.float32(1))
        raise OSError("disk")

    with pytest.raises(OSError, match="disk") as caught:
        strategy.run(step, (parts_of(FULL),))
    assert "in run(step), traced once for all 8 replicas" in caught.value.__notes__
    assert v.numpy() == 1.0
    strategy.run(lambda: v.assign_add(jnp.float32(1)))
    assert v.numpy() == 2.0


_FAILING = """
import jax, numpy as np, distinput as di
strategy = di.distribute.TPUStrategy()
with strategy.scope():
    v = di.Variable(1.0, aggregation="MEAN")

def fail(x):
    raise OSError("disk")

def step(x):
    v.assign_add(jax.pure_callback(fail, jax.ShapeDtypeStruct((), np.float32), x))

try:
    strategy.run(step, (di.distribute.PerReplica([np.float32(1)] * 8),))
except Exception as error:
    print("disk" in str(error), v.numpy())
"""


def test_a_program_that_fails_in_a_callback_leaves_variables_as_they_were() -> None:
    found = subprocess.run([sys.executable, "-c", _FAILING], capture_output=True, text=True, timeout=300, check=False)
    assert found.stdout.split() == ["True", "1.0"], found.stderr


def test_a_function_that_looks_at_values_is_told_to_run_uncompiled() -> None:
    def step(x: Any) -> Any:
        return x.sum() if x.sum() > 0 else x.sum() - 1

    strategy = di.distribute.TPUStrategy()
    with pytest.raises(TypeError, match=r"run: step cannot be compiled.*compile=False"):
        strategy.run(step, (parts_of(FULL),))
    uncompiled = di.distribute.TPUStrategy(compile=False)
    mirrored = di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(REPLICAS)])
    same(
        plain(uncompiled, uncompiled.run(step, (parts_of(FULL),))),
        plain(mirrored, mirrored.run(step, (parts_of(FULL),))),
    )


def test_sizes_are_forgotten_with_their_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distinput.distribute.tpu.engine._PROGRAMS", 2)
    strategy = di.distribute.TPUStrategy(devices=jax.devices()[:1])
    rows = di.distribute.PerReplica([np.zeros(2, np.float32)])
    for number in range(6):
        strategy.run(lambda x, number=number: x + number, args=(rows,))
    runner = strategy._engine.runner
    assert (len(runner._programs), len(runner._sizes), strategy.run_counts.programs) == (2, 2, 6)
