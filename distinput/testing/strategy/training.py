# SPDX-License-Identifier: Apache-2.0
"""A training loop learns the same numbers, however many replicas share its batches."""

from typing import Any

import numpy as np

from distinput.data.dataset import Dataset
from distinput.distribute import Variable, VariableAggregation, get_replica_context
from distinput.distribute.core.strategy import Strategy
from distinput.testing.strategy.comparing import same

__all__ = ["check_training"]

_ROWS, _BATCH, _RATE = 23, 7, 0.05


def _examples() -> tuple[Any, Any]:
    """Features, [rows, 3], and targets that are a linear function of them."""
    features = np.random.default_rng(0).normal(size=(_ROWS, 3))
    return features, features @ np.array([1.0, -2.0, 0.5]) + 0.25


def _expected(epochs: int) -> tuple[Any, list[float]]:
    """The weights and the loss of each step on one machine."""
    features, targets = _examples()
    weights, losses = np.zeros(3), []
    for _ in range(epochs):
        for first in range(0, _ROWS, _BATCH):
            x, y = features[first : first + _BATCH], targets[first : first + _BATCH]
            error = x @ weights - y
            losses.append(float((error**2).mean()))
            weights = weights - _RATE * (x.T @ error) / len(x)
    return weights, losses


def check_training(strategy: Strategy) -> None:
    """Gradient descent over global batches with a short last one: weights, losses and step count are those of one machine."""
    epochs = 2
    weights, losses = _expected(epochs)
    features, targets = _examples()
    dataset = Dataset.from_tensor_slices((features, targets)).batch(_BATCH)
    with strategy.scope():
        learned = Variable(np.zeros(3), aggregation=VariableAggregation.MEAN)
        steps = Variable(np.int64(0), aggregation=VariableAggregation.ONLY_FIRST_REPLICA)

    def step(x: Any, y: Any) -> Any:
        context = get_replica_context()
        assert context is not None
        error = x @ learned.value() - y
        sums = context.all_reduce("SUM", {"gradient": x.T @ error, "rows": (error * 0 + 1).sum()})
        learned.assign_sub(_RATE * sums["gradient"] / sums["rows"])
        steps.assign_add(1)
        return error**2

    found = []
    for _ in range(epochs):
        iterator = iter(strategy.experimental_distribute_dataset(dataset))
        while (batch := iterator.get_next_as_optional()).has_value():
            squares = strategy.run(step, args=batch.get_value())
            found.append(float(strategy.reduce("MEAN", squares, axis=0)))
    same("the loss of each step", found, losses, close=1e-5)
    same("the weights", learned.numpy(), weights, close=1e-5)
    same("the counter of steps", steps.numpy(), len(losses))
