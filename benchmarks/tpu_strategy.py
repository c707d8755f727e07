# SPDX-License-Identifier: Apache-2.0
"""What does a compiled step of TPUStrategy cost beyond JAX alone, and how many programs does an epoch take?"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.checksum import in_order
from benchmarks.harness import SEED, Case, Contender, Work, scaled

QUESTION = "8 virtual CPU devices of JAX: a training step of a small MLP, and an epoch with an uneven end"
NOTES = """
JAX alone is `jax.jit` over arrays with a `NamedSharding`: the loss of the whole batch, differentiated, with donated weights.
Losses are rounded before they are compared, because the two add in different orders.
"""
DEVICES, ROWS, WIDTH, HIDDEN, CLASSES, RATE = 8, 1024, 256, 512, 10, np.float32(0.1)
FLAG = "--xla_force_host_platform_device_count"


def prepare(folder: Path, scale: float) -> None:
    """Nothing is read."""


def cases(folder: Path, scale: float) -> list[Case]:
    """Steps with a batch that lies on the devices, and whole epochs of batches from the host."""
    steps = scaled(30, scale, 2)
    rows = ROWS * scaled(12, scale, 2) + 300  # the last step has 38 rows for most replicas, and 34 for the last one
    batches = -(-rows // ROWS)
    return [
        Case(
            "MLP step",
            {"step": steps},
            [
                Contender("distinput", "ours", lambda: _ours(steps)),
                Contender("jax.jit with NamedSharding", "limit", lambda: _plain(steps), ("jax",), reach=1 / 1.1),
                Contender(
                    "distinput, compile=False",
                    "peer",
                    lambda: _ours(scaled(3, scale, 1), compile=False, of=steps),
                    ("jax",),
                ),
            ],
        ),
        Case(
            "epoch with an uneven end",
            {"step": batches},
            [
                Contender("distinput", "ours", lambda: _epoch(rows), most={"programs": 1.0}),
                Contender("jax.jit, padded by hand", "limit", lambda: _padded_by_hand(rows), ("jax",)),
            ],
        ),
    ]


def _jax() -> Any:
    if FLAG not in os.environ.get("XLA_FLAGS", ""):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FLAG}={DEVICES}".strip()
    import jax

    assert len(jax.devices()) == DEVICES
    return jax


def _data(rows: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(SEED)
    return rng.normal(size=(rows, WIDTH)).astype(np.float32), rng.integers(0, CLASSES, rows).astype(np.int32)


def _weights() -> tuple[Any, Any]:
    rng = np.random.default_rng(SEED + 1)
    return (
        (rng.normal(size=(WIDTH, HIDDEN)) * 0.05).astype(np.float32),
        (rng.normal(size=(HIDDEN, CLASSES)) * 0.05).astype(np.float32),
    )


def _losses(jax: Any, weights: Any, x: Any, y: Any) -> Any:
    """The loss of each row, `[n]`."""
    scores = jax.nn.log_softmax(jax.numpy.tanh(x @ weights[0]) @ weights[1])
    return -jax.numpy.take_along_axis(scores, y[:, None], 1)[:, 0]


def _work(jax: Any, once: Callable[[], list[Any]], share: float = 1.0, facts: Any = dict) -> Work:
    def run() -> Any:
        made = once()
        jax.block_until_ready(made)
        return made

    def check() -> str:
        return in_order(np.round([float(loss) for loss in run()], 2))

    return Work(run, check if share == 1.0 else None, facts, share)


def _ours(steps: int, *, compile: bool = True, of: int | None = None) -> Work:
    jax = _jax()
    import distinput as di

    strategy = di.distribute.TPUStrategy(compile=compile)
    x, y = [di.distribute.PerReplica(np.split(part, DEVICES)) for part in _data(ROWS)]
    batch = strategy.run(lambda *given: [part + 0 for part in given], (x, y))
    with strategy.scope():
        weights = [di.Variable(part, aggregation="MEAN") for part in _weights()]

    def step(x: Any, y: Any) -> Any:
        now = [weight.read_value() for weight in weights]
        loss, gradients = jax.value_and_grad(lambda w: _losses(jax, w, x, y).mean())(now)
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.assign_sub(RATE * gradient)
        return loss

    def once() -> list[Any]:
        for weight, first in zip(weights, _weights(), strict=True):
            weight.assign(first)
        return [strategy.reduce("MEAN", strategy.run(step, batch), axis=None) for _ in range(steps)]

    return _work(jax, once, 1.0 if of is None else steps / of)


def _plain(steps: int) -> Work:
    jax = _jax()
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("replica",))
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("replica"))
    everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    x, y = [jax.device_put(part, rows) for part in _data(ROWS)]

    def step(weights: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(lambda w: _losses(jax, w, x, y).mean())(weights)
        return [w - RATE * g for w, g in zip(weights, gradients, strict=True)], loss

    compiled = jax.jit(step, donate_argnums=0, out_shardings=everywhere)

    def once() -> list[Any]:
        weights = [jax.device_put(part.copy(), everywhere) for part in _weights()]
        losses = []
        for _ in range(steps):
            weights, loss = compiled(weights, x, y)
            losses.append(loss)
        return losses

    return _work(jax, once)


def _epoch(rows: int) -> Work:
    jax = _jax()
    import distinput as di

    strategy = di.distribute.TPUStrategy()
    dataset = di.data.Dataset.from_tensor_slices(_data(rows)).batch(ROWS)
    distributed = strategy.experimental_distribute_dataset(dataset)
    with strategy.scope():
        weights = [di.Variable(part, aggregation="SUM") for part in _weights()]

    def step(batch: Any) -> Any:
        context: Any = di.distribute.get_replica_context()
        mask = context.row_mask

        def loss(w: Any) -> Any:
            return (_losses(jax, w, *batch) * mask).sum() / ROWS

        value, gradients = jax.value_and_grad(loss)([weight.read_value() for weight in weights])
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.assign_sub(RATE * gradient)
        return value

    def once() -> list[Any]:
        for weight, first in zip(weights, _weights(), strict=True):
            weight.assign(first)
        return [strategy.reduce("SUM", strategy.run(step, (batch,)), axis=None) for batch in distributed]

    def facts() -> dict[str, float]:
        counts = strategy.run_counts
        assert counts.uncompiled == 0
        return {"programs": float(counts.programs)}

    return _work(jax, once, facts=facts)


def _padded_by_hand(rows: int) -> Work:
    jax = _jax()
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("replica",))
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("replica"))
    everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    x, y = _data(rows)

    def step(weights: Any, x: Any, y: Any, mask: Any) -> Any:
        def loss(w: Any) -> Any:
            return (_losses(jax, w, x, y) * mask).sum() / ROWS

        value, gradients = jax.value_and_grad(loss)(weights)
        return [w - RATE * g for w, g in zip(weights, gradients, strict=True)], value

    compiled = jax.jit(step, donate_argnums=0, out_shardings=everywhere)

    def batches() -> Iterator[Any]:
        for begin in range(0, rows, ROWS):
            there = min(ROWS, rows - begin)
            parts = [x[begin : begin + ROWS], y[begin : begin + ROWS]]
            padded = [np.concatenate([p, np.zeros((ROWS - there, *p.shape[1:]), p.dtype)]) for p in parts]
            yield [jax.device_put(part, split) for part in (*padded, np.arange(ROWS) < there)]

    def once() -> list[Any]:
        weights = [jax.device_put(part.copy(), everywhere) for part in _weights()]
        losses = []
        for batch in batches():
            weights, loss = compiled(weights, *batch)
            losses.append(loss)
        return losses

    return _work(jax, once)
