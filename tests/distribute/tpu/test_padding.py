# SPDX-License-Identifier: Apache-2.0
"""What is proved about added rows. That nothing else is: `test_runner.py`, by comparison with NumPy."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import distinput as di
from distinput.distribute.tpu.arguments import RunArguments
from distinput.distribute.tpu.row_padding import padded_results
from tests.depth import cases, sampled
from tests.distribute.tpu.programs import context

STRATEGY = di.distribute.TPUStrategy(devices=jax.devices()[:2])
MIRRORED = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
ROWS, FEWER = 6, 4
W = np.arange(15, dtype=np.float32).reshape(5, 3) / 10
TABLE = np.arange(20, dtype=np.float32).reshape(10, 2)


def mask() -> Any:
    return context().row_mask


def classifier_loss(x: Any, y: Any) -> Any:
    def loss(w: Any) -> Any:
        hidden = jax.nn.relu(x @ w)
        losses = -jnp.take_along_axis(jax.nn.log_softmax(hidden), y[:, None], 1)[:, 0]
        return jnp.sum(losses * mask()) / 100

    return jax.value_and_grad(loss)(jnp.asarray(W))


def mean_where(x: Any, y: Any) -> Any:
    return jnp.mean(x, axis=0, where=mask()[:, None])


def one_hot_loss(x: Any, y: Any) -> Any:
    losses = -(jax.nn.log_softmax(x @ W) * jax.nn.one_hot(y, 3)).sum(-1)
    return jnp.where(mask(), losses, 0).sum(), jnp.where(mask(), (x @ W).argmax(-1) == y, False).sum()


def embedding(x: Any, y: Any) -> Any:
    return jax.grad(lambda t: (t[y] * mask()[:, None]).sum())(jnp.asarray(TABLE)), jnp.asarray(TABLE)[y]


def convolution(x: Any, y: Any) -> Any:
    image = x[:, :4].reshape(-1, 2, 2, 1)

    def loss(kernel: Any) -> Any:
        made = jax.lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        pooled = jax.lax.reduce_window(made, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return (jnp.tanh(made).sum((1, 2, 3)) * mask()).sum() + (jax.nn.relu(pooled[:, 0, 0, 0]) * mask()).sum()

    return loss(jnp.ones((2, 2, 1, 2)))


def predictions(x: Any, y: Any) -> Any:
    return {"class": jnp.argmax(x @ W, axis=-1), "sorted": jnp.sort(x, axis=1), "probability": jax.nn.softmax(x)}


def loop_over_weights(x: Any, y: Any) -> Any:
    total = (x * mask()[:, None]).sum(0)
    return jax.lax.fori_loop(0, 3, lambda i, t: t * 2 + i, total), jax.lax.scan(lambda c, w: (c + w, c), 0.0, total)


def any_row(x: Any, y: Any) -> Any:
    return jnp.any((y > 7) & mask())


PROVED = [classifier_loss, mean_where, one_hot_loss, embedding, predictions, loop_over_weights, any_row]


def mean_of_all(x: Any, y: Any) -> Any:
    return x.mean()


def mean_of_masked(x: Any, y: Any) -> Any:
    return (x.sum(1) * mask()).mean()


def forgotten_in_a_gradient(x: Any, y: Any) -> Any:
    return jax.grad(lambda w: jnp.tanh(x @ w).sum())(jnp.asarray(W))


def batch_normalization(x: Any, y: Any) -> Any:
    return (x - x.mean(0)) / (x.std(0) + 1)


def dropout(x: Any, y: Any) -> Any:
    return jnp.where(jax.random.bernoulli(jax.random.key(0), 0.5, x.shape), x, 0)


def attention_between_rows(x: Any, y: Any) -> Any:
    return jax.nn.softmax(x @ x.T) @ x


def first_row(x: Any, y: Any) -> Any:
    return x[0]


def last_rows(x: Any, y: Any) -> Any:
    return x[-2:]


def shuffled(x: Any, y: Any) -> Any:
    return x[jnp.argsort(x[:, 0])]


def largest(x: Any, y: Any) -> Any:
    return x.max()


def loop_over_rows(x: Any, y: Any) -> Any:
    return jax.lax.scan(lambda c, row: (c + row.sum(), None), 0.0, x)[0]


def other_program_for_few_rows(x: Any, y: Any) -> Any:
    return (x * mask()[:, None]).sum() * (2 if x.shape[0] > 5 else 3)


def counted_in_python(x: Any, y: Any) -> Any:
    return (x * mask()[:, None]).sum() + len(x)


def other_mask(x: Any, y: Any) -> Any:
    return (x * (jnp.arange(x.shape[0]) < 3)[:, None]).sum(), (x * jnp.flip(mask())[:, None]).sum()


def opposite_mask(x: Any, y: Any) -> Any:
    return (x * ~mask()[:, None]).sum()


def mask_of_other_rows(x: Any, y: Any) -> Any:
    return (x * mask()[:, None]).sum(), jnp.where(mask()[:, None], 1.0, x).sum()


def cumulated(x: Any, y: Any) -> Any:
    return jnp.cumsum(x[:, 0][::-1])


def flat(x: Any, y: Any) -> Any:
    return x.reshape(-1)


def as_columns(x: Any, y: Any) -> Any:
    return x.T


def outer(x: Any, y: Any) -> Any:
    return x[:, :1] * y[None, :]


def reached_by_all_reduce(x: Any, y: Any) -> Any:
    return context().all_reduce("SUM", x)


NOT_PROVED = [
    mean_of_all, mean_of_masked, forgotten_in_a_gradient, batch_normalization, dropout, attention_between_rows, first_row,
    last_rows, shuffled, largest, loop_over_rows, other_program_for_few_rows, counted_in_python, other_mask, opposite_mask,
    mask_of_other_rows, cumulated, flat, as_columns, outer, reached_by_all_reduce,
]  # fmt: skip


def values(rows: list[int]) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    x = [rng.normal(size=(n, 5)).astype(np.float32) for n in rows]
    y = [rng.integers(0, 3, n).astype(np.int32) for n in rows]
    return di.distribute.PerReplica(x), di.distribute.PerReplica(y)


def proof(function: Callable[..., Any], rows: int = FEWER) -> Any:
    arguments = RunArguments.of(values([rows, rows]), {}, STRATEGY._engine.mesh)
    return padded_results(STRATEGY, STRATEGY._engine.mesh, function, arguments, ROWS, rows, None)


@pytest.mark.parametrize("function", [*PROVED, convolution], ids=lambda f: f.__name__)
def test_a_proof(function: Callable[..., Any]) -> None:
    assert proof(function) is not None


@pytest.mark.parametrize("function", NOT_PROVED, ids=lambda f: f.__name__)
def test_no_proof(function: Callable[..., Any]) -> None:
    assert proof(function) is None


@pytest.mark.parametrize(
    "function", [classifier_loss, mean_where, one_hot_loss, embedding, any_row], ids=lambda f: f.__name__
)
def test_a_proof_for_a_replica_without_data(function: Callable[..., Any]) -> None:
    assert proof(function, 0) is not None


def other_value_without_rows(x: Any, y: Any) -> Any:
    return (x * mask()[:, None]).sum() if len(x) else jnp.float32(1)


def largest_of_masked(x: Any, y: Any) -> Any:
    return jnp.where(mask(), x.sum(1), -1).max(initial=-1)


@pytest.mark.parametrize(
    "function", [other_value_without_rows, largest_of_masked, *NOT_PROVED], ids=lambda f: f.__name__
)
def test_no_proof_for_a_replica_without_data(function: Callable[..., Any]) -> None:
    assert proof(function, 0) is None


def test_a_number_of_rows_may_not_be_returned() -> None:
    assert proof(lambda x, y: (x + 1, len(x))) is None
    assert proof(lambda x, y: (x + 1, 7, "text")) is not None


def test_rows_are_cut_and_totals_are_not() -> None:
    assert proof(lambda x, y: (x + 1, (x * mask()[:, None]).sum(0), jnp.zeros(ROWS))) == (True, False, False)


@pytest.mark.parametrize(
    "function", sampled([*PROVED, convolution, *NOT_PROVED[:3]], NOT_PROVED[3:13]), ids=lambda f: f.__name__
)
def test_with_or_without_a_proof_the_numbers_are_those_of_each_replica_alone(function: Callable[..., Any]) -> None:
    devices = jax.devices()[: cases(1, 2)]
    compiled = di.distribute.TPUStrategy(devices=devices)
    eager = di.distribute.TPUStrategy(devices=devices, compile=False)
    compiled.run(function, values([ROWS, ROWS][-len(devices) :]))
    given = values([ROWS, FEWER][-len(devices) :])
    found, expected = [
        [jax.tree.map(np.asarray, part) for part in strategy.experimental_local_results(strategy.run(function, given))]
        for strategy in (compiled, eager)
    ]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), found, expected)
