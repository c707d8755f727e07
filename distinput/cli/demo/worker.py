# SPDX-License-Identifier: Apache-2.0
"""A worker of the demo's job, written as your own would be: train on its part, save, and continue from a save."""

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import distinput as di
from distinput.cli.demo.pipelines import evaluation_batches, training_batches
from distinput.cli.demo.softmax import Softmax
from distinput.cli.demo.training import evaluate, ids_of

__all__ = ["Training", "train", "work"]


@dataclass
class Training:
    """The progress of training: all that is saved, and all that any number of workers need to continue.

    Args:
      model: the model after the last step.
      step: how many steps were taken.
      state: the state of the distributed iterator after them; None at the beginning.
    """

    model: Softmax = field(default_factory=lambda: Softmax(pixels=64, classes=10))
    step: int = 0
    state: Any = None

    def save(self, path: Path) -> None:
        """Replace the previous save. If the process is killed meanwhile, the previous save stays intact."""
        made = path.with_suffix(".new")
        made.write_text(json.dumps({"step": self.step, "state": self.state, **self.model.saved()}), encoding="utf-8")
        made.replace(path)

    @classmethod
    def load(cls, path: Path) -> "Training":
        """The last save; the beginning if there is none."""
        done = cls()
        if path.exists():
            saved = json.loads(path.read_text(encoding="utf-8"))
            done.model.load(saved)
            done.step, done.state = saved["step"], saved["state"]
        return done


def train(
    strategy: di.distribute.Strategy,
    directory: Path,
    job: dict[str, Any],
    done: Training,
    on_step: Callable[[Training, dict[str, Any]], object],
) -> None:
    """Train to the end of the last epoch. Any number of workers gets the same bits.

    Args:
      strategy: the strategy whose workers share each global batch.
      directory: the directory of the files.
      job: `epochs`, and the `batch` size.
      done: the progress to begin from; updated after every step.
      on_step: called after every step with its results.
    """
    options = di.data.Options()
    # Every worker takes its piece of each global batch, so a state is a position in the sequence of batches.
    options.experimental_distribute.auto_shard_policy = di.data.experimental.AutoShardPolicy.DATA
    dataset = training_batches(directory, job["batch"]).repeat(job["epochs"]).with_options(options)
    batches = strategy.experimental_distribute_dataset(dataset)
    model = done.model

    def replica_step(images: Any, labels: Any) -> Any:
        return {"loss": model.scores(images, labels)["loss"], **model.gradient_rows(images, labels)}

    with iter(batches) if done.state is None else batches.restore(done.state) as iterator:
        for batch in iterator:
            results = strategy.run(replica_step, args=(batch["image"], batch["label"]))
            # From exact sums over the rows of all workers, rounded once: it does not matter which worker had which row.
            means = {name: strategy.reduce("MEAN", rows, axis=0, deterministic=True) for name, rows in results.items()}
            loss = means.pop("loss")
            model.update(means)
            done.step, done.state = done.step + 1, iterator.state()
            on_step(done, {"loss": float(loss), "ids": [n for part in ids_of(strategy, batch) for n in part]})


def work(job_file: Path) -> None:
    """Run one of the workers: find the others, train, evaluate, and log every step."""
    start_time = time.time()
    job = json.loads(job_file.read_text(encoding="utf-8"))
    worker = di.distribute.cluster_resolver.resolve().rank
    saved = Path(job["saved"])
    options = di.distribute.experimental.CommunicationOptions(
        implementation=job["engine"], timeout_seconds=job["timeout"]
    )
    with job_file.with_name(f"worker-{worker}.jsonl").open("a", encoding="utf-8") as log:

        def write(**event: Any) -> None:
            log.write(json.dumps(event) + "\n")
            log.flush()

        def on_step(done: Training, gave: dict[str, Any]) -> None:
            if worker == 0:
                done.save(saved)
            write(step=done.step, **gave)
            if job["kill"] == [worker, done.step]:
                # Pause, so that the kill always comes between the same two steps.
                while True:
                    signal.pause()

        write(pid=os.getpid())
        try:
            with di.distribute.MultiWorkerMirroredStrategy(communication_options=options) as strategy:
                done = Training.load(saved)
                write(ready=time.time() - start_time, step=done.step)
                train(strategy, Path(job["directory"]), job, done, on_step)
                found = evaluate(
                    strategy,
                    done.model,
                    evaluation_batches(Path(job["directory"]), "tfrecord", job["evaluation_batch"]),
                )
                write(evaluated={"correct": found.correct, "loss": found.loss, "ids": found.ids})
        except di.errors.DistinputError as error:
            write(error=type(error).__name__, text=str(error), at=time.time())
            raise
