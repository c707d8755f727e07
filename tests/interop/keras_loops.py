# SPDX-License-Identifier: Apache-2.0
"""What Keras makes of datasets, on the backend that KERAS_BACKEND names; prints it as one line of JSON.

Run as `python -m tests.interop.keras_loops` by test_keras.py, since a process has one backend.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np

import distinput as di
from distinput.interop.keras import Sequence

Dataset = di.data.Dataset
ROWS, SIZE, RATE = 50, 16, 0.01
X = np.random.default_rng(5).normal(size=(ROWS, 3)).astype(np.float32)
Y = (X @ np.array([[1.0], [-2.0], [0.5]], np.float32) + 0.25).astype(np.float32)
KERNEL, BIAS = np.array([[0.5], [0.5], [-1.0]], np.float32), np.array([0.1], np.float32)


class Recorded(Sequence):
    """Remembers the batches that Keras got."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.batches: list[Any] = []

    def __getitem__(self, index: int) -> Any:
        batch = super().__getitem__(index)
        self.batches.append([np.array(part) for part in batch])
        return batch


def model(weights: bool = True, **named: Any) -> Any:
    """A linear model; without `weights` Keras has to look at a batch to build it."""
    dense = keras.layers.Dense(1)
    made = keras.Sequential([keras.Input((3,)), dense] if weights else [dense])
    if weights:
        made.set_weights([KERNEL, BIAS])
    made.compile(optimizer=keras.optimizers.SGD(RATE), loss="mse", **named)
    return made


def rows_of(batches: Any) -> list[int]:
    """The rows of the data that batches are made of."""
    number = {row.tobytes(): i for i, row in enumerate(X)}
    return [number[row.tobytes()] for x, *_ in batches for row in x]


def answers() -> Iterator[tuple[str, Any]]:
    """What came of it, by name."""
    yield "backend", keras.backend.backend()
    data = Dataset.from_tensor_slices((X, Y)).batch(SIZE)
    predicted = X @ KERNEL + BIAS
    yield "expected", [float(((predicted - Y) ** 2).mean()), float(np.abs(predicted - Y).mean())]
    judged = model(metrics=["mae"], weighted_metrics=[keras.metrics.MeanSquaredError(name="weighted")])
    for tail in ("partial", "pad"):
        found = judged.evaluate(Sequence(data, tail=tail), verbose=0, return_dict=True)
        yield f"evaluated {tail}", [found["loss"], found["mae"], found["weighted"]]
    made = judged.predict(Sequence(data), verbose=0)
    yield "predicted", [list(made.shape), float(np.abs(made - predicted).max())]
    named = Dataset.from_tensor_slices(X).batch(SIZE)
    yield "predicted of x alone", float(np.abs(judged.predict(Sequence(named), verbose=0) - predicted).max())

    shuffled = Recorded(Dataset.from_tensor_slices((X, Y)).shuffle(ROWS, seed=3).batch(SIZE))
    unbuilt = model(weights=False)
    history = unbuilt.fit(shuffled, validation_data=Sequence(data), epochs=3, verbose=0).history
    yield "losses", [history["loss"][0] > history["loss"][2], len(history["val_loss"])]
    steps = -(-ROWS // SIZE)
    taken = shuffled.batches[1:]  # the first one was looked at, to build the model
    yield "looked at", rows_of(shuffled.batches[:1]) == rows_of(taken[:1])
    yield "epochs", [rows_of(taken[i * steps : i * steps + steps]) for i in range(len(taken) // steps)]
    following = Recorded(Dataset.from_tensor_slices((X, Y)).shuffle(ROWS, seed=3).batch(SIZE))
    following.set_epoch(2)
    unbuilt.fit(following, verbose=0)
    yield "epoch 2", rows_of(following.batches)

    trained, recorded = model(), Recorded(data, tail="pad")
    trained.fit(recorded, epochs=2, verbose=0)
    kernel, bias = KERNEL.astype(np.float64), BIAS.astype(np.float64)
    for x, y, weights in recorded.batches[-2 * steps :]:  # without one that was only looked at
        slope = 2 * (x @ kernel + bias - y) * weights[:, None] / len(x)
        kernel, bias = kernel - RATE * x.T @ slope, bias - RATE * slope.sum(axis=0)
    yield "trained", max(float(np.abs(a - b).max()) for a, b in zip(trained.get_weights(), (kernel, bias), strict=True))
    yield "shapes", sorted({x.shape[0] for x, *_ in recorded.batches})
    yield "weights", [float(weights.sum()) for *_, weights in recorded.batches]

    endless = Recorded(data.repeat())
    trained.fit(endless, steps_per_epoch=3, epochs=2, verbose=0)
    yield "endless", rows_of(endless.batches)
    yield from parts_of_passes(data)
    yield "divided", divided(data)
    half = np.full(20, 0.5, np.float32)
    weighted = Sequence(Dataset.from_tensor_slices((X[:20], Y[:20], half)).batch(SIZE), tail="pad")
    yield "weighted", [weights.tolist() for *_, weights in weighted]
    outputs = {"a": half, "b": np.ones(20, np.float32)}
    of_each = Sequence(
        Dataset.from_tensor_slices((X[:20], {"a": Y[:20], "b": Y[:20]}, outputs)).batch(SIZE), tail="pad"
    )
    yield "weighted outputs", [{key: float(part.sum()) for key, part in weights.items()} for *_, weights in of_each]
    yield "dropped", [rows_of(Sequence(data, tail="drop")), len(Sequence(data, tail="drop"))]
    yield "full", [rows_of(Sequence(counted(SIZE * 2), tail="error")), len(Sequence(counted(SIZE * 2), tail="error"))]
    yield "refused", {name: refusal(make) for name, make in REFUSED.items()}


def parts_of_passes(data: Any) -> Iterator[tuple[str, Any]]:
    """Epochs that end before the pass does."""

    class Stop(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.model.stop_training = batch == 2

    found, fitted = [], model()  # one model, so that its step is compiled once
    for seed in range(5):  # Keras shuffles the indices
        keras.utils.set_random_seed(seed)
        shuffled = Recorded(Dataset.from_tensor_slices((X, Y)).shuffle(ROWS, seed=3).batch(SIZE))
        fitted.fit(shuffled, callbacks=[Stop()], verbose=0)
        taken = len(shuffled.batches)
        fitted.fit(shuffled, verbose=0)
        found.append(sorted(rows_of(shuffled.batches[taken:][-4:])))  # one more was looked at
    yield "after a stop", found
    found = []
    for seed in range(5):
        keras.utils.set_random_seed(seed)
        some = Recorded(data)
        fitted.fit(some, steps_per_epoch=3, epochs=4, verbose=0)
        found.append(rows_of(some.batches))
    yield "three of four steps", found


def divided(data: Any) -> Any:
    """What is evaluated over all devices, if the backend has several."""
    if keras.backend.backend() != "jax":
        return None
    keras.distribution.set_distribution(keras.distribution.DataParallel())
    try:
        judged = model(weighted_metrics=[keras.metrics.MeanSquaredError(name="weighted")])
        found = judged.evaluate(Sequence(data, tail="pad"), verbose=0, return_dict=True)
        judged.fit(Sequence(data, tail="pad"), verbose=0)
        return [len(keras.distribution.list_devices()), found["weighted"]]
    finally:
        keras.distribution.set_distribution(None)


def counted(rows: int) -> Any:
    """Batches whose number is stated, and whose sizes are seen when they are read."""
    kept = Dataset.from_tensor_slices((X[:rows], Y[:rows])).filter(lambda x, y: True).batch(SIZE)
    return kept.apply(di.data.experimental.assert_cardinality(-(-rows // SIZE)))


REFUSED: dict[str, Callable[[], Any]] = {
    "list": lambda: Sequence([1, 2]),
    "four": lambda: Sequence(Dataset.from_tensor_slices((X, X, X, X)).batch(SIZE)),
    "tail": lambda: Sequence(Dataset.from_tensor_slices((X, Y)).batch(SIZE), tail="none"),
    "short": lambda: Sequence(Dataset.from_tensor_slices((X, Y)).batch(SIZE), tail="error"),
    "hidden": lambda: list(Sequence(counted(ROWS), tail="error")),
    "unknown": lambda: Sequence(
        Dataset.from_generator(lambda: iter([[1]]), output_signature=di.TensorSpec((1,), "int64"))
    ),
    "targets": lambda: Sequence(Dataset.from_tensor_slices(X).batch(SIZE), tail="pad"),
    "size": lambda: Sequence(Dataset.from_tensor_slices((X, Y)).batch(SIZE).map(lambda x, y: (x + 1, y)), tail="pad"),
    "other size": lambda: Sequence(Dataset.from_tensor_slices((X, Y)).batch(SIZE), tail="pad", batch_size=2),
    "no size": lambda: Sequence(Dataset.from_tensor_slices((X, Y)).batch(SIZE), tail="pad", batch_size=0),
    "text": lambda: Sequence(Dataset.from_tensor_slices((X, ["a"] * ROWS)).batch(SIZE)),
    "ragged": lambda: Sequence(Dataset.range(4).map(lambda n: np.ones(n)).ragged_batch(2)),
    "scalars": lambda: Sequence(Dataset.range(4)),
    "len": lambda: len(Sequence(Dataset.range(4).batch(2).repeat())),
}


def refusal(make: Callable[[], Any]) -> str:
    """The error that a call raises."""
    try:
        make()
    except Exception as error:  # noqa: BLE001 - it is the answer
        return f"{type(error).__name__}: {error}"
    return "nothing"


if __name__ == "__main__":
    print(json.dumps(dict(answers())))
