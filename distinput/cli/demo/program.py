# SPDX-License-Identifier: Apache-2.0
"""The demo's program, with the parts that your own would have: files, pipelines, a model, training, and a worker of several."""

import gzip
import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import distinput as di
from distinput.names.lazy import dataclass

# ----------------------------------------------------------------------------
# The UCI hand-written digits, shipped with the package; digits/README.md says where they come from.
# ----------------------------------------------------------------------------


Array = np.ndarray[Any, np.dtype[Any]]


class Digits(NamedTuple):
    """Some of the images, column by column; an image's id is its place in the dataset."""

    id: Array  # [n] int64
    image: Array  # [n, 64] uint8, from 0 to 16
    label: Array  # [n] uint8, from 0 to 9

    def where(self, wanted: Array) -> "Digits":
        """The images for which `wanted`, [n] of bool, is true."""
        return Digits(*[column[wanted] for column in self])


def load_digits() -> Digits:
    """All 1,797 images.

    >>> digits = load_digits()
    >>> digits.image.shape, digits.label[:5]
    ((1797, 64), array([0, 1, 2, 3, 4], dtype=uint8))
    """
    with (
        resources.files("distinput.cli.demo").joinpath("digits/digits.csv.gz").open("rb") as packed,
        gzip.open(packed) as lines,
    ):
        table = np.loadtxt(lines, delimiter=",", dtype=np.uint8)
    return Digits(np.arange(len(table)), table[:, :64], table[:, 64])


# ----------------------------------------------------------------------------
# Step 1 of the demo: the data as sharded files, in two formats.
# ----------------------------------------------------------------------------


FORMATS = ("tfrecord", "parquet")
SPLITS = {"train": 4, "test": 2}
"""The number of files of each part of the data."""


def paths_of(directory: Path, split: str, file_format: str) -> list[Path]:
    """The files of one part of the data in one format."""
    count = SPLITS[split]
    return [directory / f"digits-{split}-{i:05}-of-{count:05}.{file_format}" for i in range(count)]


def write_files(directory: Path) -> tuple[dict[str, Digits], bool]:
    """Write all files, unless all of them exist.

    Returns:
      The contents of each part of the data, and whether anything was written.
    """
    digits = load_digits()
    is_test = digits.id % 5 == 0
    parts = {"train": digits.where(~is_test), "test": digits.where(is_test)}
    wanted = [(s, f) for s in SPLITS for f in FORMATS]
    if all(path.exists() for split, file_format in wanted for path in paths_of(directory, split, file_format)):
        return parts, False
    for split, file_format in wanted:
        part, write = parts[split], {"tfrecord": _write_tfrecord, "parquet": _write_parquet}[file_format]
        paths = paths_of(directory, split, file_format)
        for i, path in enumerate(paths):
            write(path, part.where(part.id % 7 % len(paths) == i))  # files of different lengths, as real ones are
    return parts, True


def _write_tfrecord(path: Path, digits: Digits) -> None:
    with di.io.TFRecordWriter(path) as writer:
        for number, image, label in zip(*digits, strict=True):
            writer.write(di.io.encode_example({"id": number, "image": image, "label": label}))


def _write_parquet(path: Path, digits: Digits) -> None:
    di.io.write_parquet(str(path), digits._asdict())


# ----------------------------------------------------------------------------
# Step 2 of the demo: the input pipelines, from files to batches. Your own program would have such a part.
# ----------------------------------------------------------------------------


FEATURES = {
    "id": di.io.FixedLenFeature([], "int64"),
    "image": di.io.FixedLenFeature([64], "int64"),
    "label": di.io.FixedLenFeature([], "int64"),
}


def records(directory: Path, split: str, file_format: str) -> di.data.Dataset:
    """Dicts of id, image [64] and label, read from the files of one format."""
    paths = paths_of(directory, split, file_format)
    if file_format == "parquet":
        return di.data.ParquetDataset(paths, columns=["id", "image", "label"])
    return di.data.TFRecordDataset(paths).parse_example(FEATURES)


def scaled(record: dict[str, Any]) -> dict[str, Any]:
    """Pixels from 0 to 1. Called for many records at once: `image` is [n, 64]."""
    return {**record, "image": record["image"].astype(np.float32) / 16}


def training_batches(directory: Path, batch_size: int) -> di.data.Dataset:
    """Global batches of the training data, in a new order in every epoch."""
    return records(directory, "train", "tfrecord").map_rows(scaled).shuffle(1000, seed=7).batch(batch_size)


def evaluation_batches(directory: Path, file_format: str, batch_size: int, split: str = "test") -> di.data.Dataset:
    """Global batches in the order of the files; the last one may be short."""
    return records(directory, split, file_format).map_rows(scaled).batch(batch_size)


# ----------------------------------------------------------------------------
# Softmax regression in plain NumPy. Its methods accept any number of images, including none.
#
# The results for an image have the same bits whatever other images are in the batch, so they do not depend on how a batch
# is divided: products are summed pixel by pixel, in an order that a matrix product does not guarantee.
# ----------------------------------------------------------------------------


class Softmax:
    """The probabilities of the classes are softmax(image @ weights + bias).

    Args:
      pixels: the number of pixels of an image.
      classes: the number of classes.
    """

    def __init__(self, pixels: int, classes: int) -> None:
        self.parameters = {"weights": np.zeros((pixels, classes)), "bias": np.zeros(classes)}
        self._momentum = {name: np.zeros_like(value) for name, value in self.parameters.items()}

    def scores(self, images: Array, labels: Array) -> dict[str, Array]:
        """The loss of each image, [n], and whether its class was predicted, [n] of 0 and 1."""
        log_probabilities = self._log_probabilities(images)
        return {
            "loss": -log_probabilities[np.arange(len(labels)), labels],
            "correct": (log_probabilities.argmax(axis=1) == labels).astype(np.int64),
        }

    def gradients(self, images: Array, labels: Array) -> dict[str, Array]:
        """The gradient of the loss, summed over the images: sums of replicas can be added, means cannot."""
        errors = self._errors(images, labels)
        return {"weights": images.T @ errors, "bias": errors.sum(axis=0)}

    def gradient_rows(self, images: Array, labels: Array) -> dict[str, Array]:
        """The gradient of the loss of each image: [n, pixels, classes] and [n, classes]."""
        errors = self._errors(images, labels)
        return {"weights": images[:, :, np.newaxis] * errors[:, np.newaxis, :], "bias": errors}

    def update(self, gradients: dict[str, Array], rate: float = 0.5, momentum: float = 0.9) -> None:
        """One step of gradient descent with momentum."""
        for name, gradient in gradients.items():
            self._momentum[name] = momentum * self._momentum[name] + gradient
            self.parameters[name] -= rate * self._momentum[name]

    def saved(self) -> dict[str, dict[str, Any]]:
        """All that is needed to continue learning, as JSON without rounding."""
        every = {"parameters": self.parameters, "momentum": self._momentum}
        return {what: {name: array.tolist() for name, array in arrays.items()} for what, arrays in every.items()}

    def load(self, saved: Mapping[str, Mapping[str, Any]]) -> None:
        """Continue from a result of `saved`."""
        self.parameters = {name: np.array(value) for name, value in saved["parameters"].items()}
        self._momentum = {name: np.array(value) for name, value in saved["momentum"].items()}

    def _errors(self, images: Array, labels: Array) -> Array:
        errors: Array = np.exp(self._log_probabilities(images))  # [n, classes]
        errors[np.arange(len(labels)), labels] -= 1
        return errors

    def _log_probabilities(self, images: Array) -> Array:
        weights, bias = self.parameters["weights"], self.parameters["bias"]
        logits = (images[:, :, np.newaxis] * weights).sum(axis=1) + bias  # [n, pixels, classes] -> [n, classes]
        logits -= logits.max(axis=1, keepdims=True)
        log_probabilities: Array = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return log_probabilities


# ----------------------------------------------------------------------------
# Step 3 of the demo: training and evaluating on the replicas of a strategy.
# ----------------------------------------------------------------------------


@dataclass
class Pass:
    """The results of one pass over a dataset.

    Args:
      ids: the ids of the records, in the order in which they were delivered.
      sizes: the numbers of rows of the replicas, step by step.
      loss: the sum over the records.
      correct: the number of records whose class was predicted.
    """

    ids: list[int] = field(default_factory=list)
    sizes: list[list[int]] = field(default_factory=list)
    loss: float = 0.0
    correct: int = 0

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
    for batch in batches:
        results = strategy.run(replica_step, args=(batch["image"], batch["label"]))
        done.add(strategy, batch, results["scores"])
        # The sums of all replicas over the true number of rows: right for uneven and for empty replicas too.
        gradients = strategy.reduce("SUM", results["gradients"], axis=None)
        rows = sum(done.sizes[-1])
        model.update({name: gradient / rows for name, gradient in gradients.items()})
        if on_step is not None:
            on_step(done)
    return done


def evaluate(strategy: di.distribute.Strategy, model: Softmax, dataset: di.data.Dataset) -> Pass:
    """The loss and accuracy of the model; counts are summed over replicas, so their number does not matter."""
    done = Pass()
    for batch in strategy.experimental_distribute_dataset(dataset):
        done.add(strategy, batch, strategy.run(model.scores, args=(batch["image"], batch["label"])))
    return done


def mirrored(replicas: int) -> di.distribute.MirroredStrategy:
    """Replicas in this process, each on a thread of its own."""
    return di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])


# ----------------------------------------------------------------------------
# A worker of the demo's job, written as your own would be: train on its part, save, and continue from a save.
# ----------------------------------------------------------------------------


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
