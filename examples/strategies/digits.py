# SPDX-License-Identifier: Apache-2.0
"""What the examples learn: hand-written digits, and a logistic regression for ten classes."""

from typing import Any

import numpy as np

import distinput as di
from distinput.cli.demo.program import load_digits

MEAN = di.VariableAggregation.MEAN
BATCH, EPOCHS, RATE = 64, 10, 0.5
STEPS = 23
"""The global batches of an epoch: 22 of 64 rows and one of 29; no row is dropped, whatever the strategy is."""


def datasets() -> tuple[di.data.Dataset, di.data.Dataset]:
    """All epochs of the training data, and the test data: (images [n, 64], labels [n]); every fifth digit is for the test."""
    digits = load_digits()
    images, labels = digits.image.astype(np.float32) / 16, digits.label.astype(np.int32)
    test = digits.id % 5 == 0
    train = di.data.Dataset.from_tensor_slices((images[~test], labels[~test]))
    held_back = di.data.Dataset.from_tensor_slices((images[test], labels[test]))
    return train.shuffle(len(train), seed=1).batch(BATCH).repeat(EPOCHS), held_back.batch(BATCH)


class Model:
    """The probabilities of the classes are softmax(images @ weights + bias).

    Args:
      xp: the functions to compute with, `numpy` or `jax.numpy`.
    """

    def __init__(self, xp: Any = np) -> None:
        self.xp = xp
        # Replicas that write at the same time write the mean of what they write; here all of them write the same.
        self.weights = di.Variable(np.zeros((64, 10), np.float32), name="weights", aggregation=MEAN)
        self.bias = di.Variable(np.zeros(10, np.float32), name="bias", aggregation=MEAN)

    def probabilities(self, images: Any) -> Any:
        """[n, 64] -> [n, 10]."""
        logits = images @ self.weights.value() + self.bias.value()
        exponents = self.xp.exp(logits - logits.max(axis=1, keepdims=True))
        return exponents / exponents.sum(axis=1, keepdims=True)

    def gradients(self, images: Any, labels: Any) -> dict[str, Any]:
        """The gradient of the loss, summed over the rows, and the number of rows: sums of replicas can be added."""
        expected = self.xp.eye(10, dtype=np.float32)[labels]
        errors = self.probabilities(images) - expected
        return {"weights": images.T @ errors, "bias": errors.sum(axis=0), "rows": expected.sum()}

    def update(self, sums: dict[str, Any]) -> None:
        """One step of gradient descent on the mean over the rows."""
        self.weights.assign_sub(RATE * sums["weights"] / sums["rows"])
        self.bias.assign_sub(RATE * sums["bias"] / sums["rows"])

    def train_step(self, images: Any, labels: Any) -> Any:
        """Learn from the rows of all replicas; the loss of each row of this one, [n]."""
        context = di.distribute.get_replica_context()
        losses = -self.xp.log((self.probabilities(images) * self.xp.eye(10, dtype=np.float32)[labels]).sum(axis=1))
        self.update(context.all_reduce("SUM", self.gradients(images, labels)))
        return losses

    def test_step(self, images: Any, labels: Any) -> Any:
        """1.0 for each row whose class was predicted, else 0.0, [n]."""
        return (self.probabilities(images).argmax(axis=1) == labels).astype(np.float32)


def accuracy(strategy: di.distribute.Strategy, model: Model, test: di.data.Dataset) -> float:
    """The part of the test digits whose class is predicted."""
    right, rows = 0.0, 0.0
    for images, labels in strategy.experimental_distribute_dataset(test):
        found = strategy.run(model.test_step, args=(images, labels))
        right += float(strategy.reduce("SUM", found, axis=0))
        rows += float(strategy.reduce("SUM", strategy.run(lambda x: x * 0 + 1, args=(found,)), axis=0))
    return right / rows
