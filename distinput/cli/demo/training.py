# SPDX-License-Identifier: Apache-2.0
"""Step 3 of the demo: training and evaluating on the replicas of a strategy."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import distinput as di
from distinput.cli.demo.softmax import Softmax

__all__ = ["Pass", "evaluate", "ids_of", "mirrored", "train_epoch"]


@dataclass
class Pass:
    """The results of one pass over a dataset.

    Args:
      ids: the ids of the records, in the order in which they were delivered.
      sizes: the numbers of rows of the replicas, step by step.
      loss: the sum over the records.
      correct: the number of records whose class was predicted.
      seconds: the duration.
    """

    ids: list[int] = field(default_factory=list)
    sizes: list[list[int]] = field(default_factory=list)
    loss: float = 0.0
    correct: int = 0
    seconds: float = 0.0

    @property
    def mean_loss(self) -> float:
        """The mean loss of a record."""
        return self.loss / max(1, len(self.ids))

    @property
    def accuracy(self) -> float:
        """The fraction of records whose class was predicted."""
        return self.correct / max(1, len(self.ids))

    def unevenness(self) -> tuple[int, int]:
        """How many steps gave some replica more rows than another, and how many replica batches had no row at all."""
        uneven = sum(len(set(sizes)) > 1 for sizes in self.sizes)
        return uneven, sum(sizes.count(0) for sizes in self.sizes)

    def add(self, strategy: di.distribute.Strategy, batch: Any, scores: Any) -> None:
        """Add one step: its records and their scores."""
        parts = ids_of(strategy, batch)
        self.sizes.append([len(part) for part in parts])
        self.ids += [number for part in parts for number in part]
        self.loss += float(strategy.reduce("SUM", scores["loss"], axis=0))
        self.correct += int(strategy.reduce("SUM", scores["correct"], axis=0))


def ids_of(strategy: di.distribute.Strategy, batch: Any) -> list[list[int]]:
    """The ids of the records that each replica got."""
    return [part.tolist() for part in strategy.experimental_local_results(batch["id"])]


def train_epoch(
    strategy: di.distribute.Strategy,
    model: Softmax,
    batches: di.distribute.DistributedDataset,
    on_step: Callable[[Pass], object] | None = None,
) -> Pass:
    """Make one pass over the training data; the model learns from each global batch.

    Args:
      strategy: the strategy whose replicas share the work.
      model: the model, shared by all replicas, which only read it.
      batches: the training data, distributed.
      on_step: called after every step.
    """

    def replica_step(images: Any, labels: Any) -> Any:
        return {"scores": model.scores(images, labels), "gradients": model.gradients(images, labels)}

    done = Pass()
    began = perf_counter()
    for batch in batches:
        results = strategy.run(replica_step, args=(batch["image"], batch["label"]))
        done.add(strategy, batch, results["scores"])
        # The sums of all replicas over the true number of rows: right for uneven and for empty replicas too.
        gradients = strategy.reduce("SUM", results["gradients"], axis=None)
        rows = sum(done.sizes[-1])
        model.update({name: gradient / rows for name, gradient in gradients.items()})
        if on_step is not None:
            on_step(done)
    done.seconds = perf_counter() - began
    return done


def evaluate(strategy: di.distribute.Strategy, model: Softmax, dataset: di.data.Dataset) -> Pass:
    """The loss and accuracy of the model; counts are summed over replicas, so their number does not matter."""
    done = Pass()
    began = perf_counter()
    for batch in strategy.experimental_distribute_dataset(dataset):
        done.add(strategy, batch, strategy.run(model.scores, args=(batch["image"], batch["label"])))
    done.seconds = perf_counter() - began
    return done


def mirrored(replicas: int) -> di.distribute.MirroredStrategy:
    """Replicas in this process, each on a thread of its own."""
    return di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])
