# SPDX-License-Identifier: Apache-2.0
"""What the workers of the tests run: each program takes a strategy, the number of its worker, and plain JSON."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import distinput as di
from distinput.distribute import InputOptions
from distinput.testing import check_strategy

__all__ = ["PROGRAMS"]

Dataset = di.data.Dataset
Steps = list[list[list[int]]]


def keep(_: Any) -> bool:
    """Keeps every row, but nobody can know that beforehand."""
    return True


def with_policy(dataset: Any, policy: str) -> Any:
    """The dataset with an autoshard policy."""
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = di.data.experimental.AutoShardPolicy[policy]
    return dataset.with_options(options)


def distributed(strategy: Any, worker: int, case: dict[str, Any]) -> Any:
    """The dataset of a case, distributed.

    Args:
      strategy: whose workers share it.
      worker: this one.
      case: `kind`, and what that kind needs.
    """
    kind, n, batch = case["kind"], case["n"], case["batch"]
    if kind == "counted":
        return strategy.experimental_distribute_dataset(Dataset.range(n).batch(batch))
    if kind == "shuffled":
        return strategy.experimental_distribute_dataset(
            Dataset.range(n).shuffle(7, seed=3).map(lambda x: x * 2).batch(batch)
        )
    if kind == "filtered":
        return strategy.experimental_distribute_dataset(Dataset.range(n).filter(keep).batch(batch))
    if kind == "balanced":
        dataset = Dataset.range(n).filter(keep).batch(batch)
        return strategy.experimental_distribute_dataset(dataset, InputOptions(balanced_split=True))
    if kind == "uneven functions":

        def dataset_fn(context: Any) -> Any:
            mine = Dataset.range(n).shard(context.num_input_pipelines, context.input_pipeline_id)
            first = Dataset.range(0, n * (worker == 0)).map(lambda x: x + n)  # one worker has n rows more
            return mine.concatenate(first).batch(
                context.get_per_replica_batch_size(strategy.num_replicas_in_sync * batch)
            )

        return strategy.distribute_datasets_from_function(dataset_fn)
    if kind == "files":
        dataset = Dataset.list_files(case["files"], shuffle=False).interleave(di.data.TFRecordDataset, cycle_length=1)
        dataset = dataset.map(lambda record: np.int64(int(record))).batch(batch)
        return strategy.experimental_distribute_dataset(with_policy(dataset, "FILE"))
    raise ValueError(f"no kind of case is called {kind}")


def rows_of(strategy: Any, step: Any) -> list[list[int]]:
    """The rows of this worker's replicas."""
    return [part.tolist() for part in strategy.experimental_local_results(step)]


def deliver(strategy: Any, worker: int, cases: list[dict[str, Any]]) -> list[Steps]:
    """All steps of each case."""
    return [[rows_of(strategy, step) for step in distributed(strategy, worker, case)] for case in cases]


def begin(strategy: Any, worker: int, cases: list[dict[str, Any]]) -> list[tuple[Steps, str]]:
    """The first `at` steps of each case, and the state after them."""
    found = []
    for case in cases:
        with iter(distributed(strategy, worker, case)) as iterator:
            steps = [rows_of(strategy, next(iterator)) for _ in range(case["at"])]
            found.append((steps, json.dumps(iterator.state())))
    return found


def go_on(strategy: Any, worker: int, cases: list[dict[str, Any]]) -> list[Steps]:
    """The steps of each case after its `state`."""
    found = []
    for case in cases:
        iterator = distributed(strategy, worker, case).restore(json.loads(case["state"]))
        found.append([rows_of(strategy, step) for step in iterator])
    return found


def numbers(strategy: Any, worker: int, given: Any) -> dict[str, Any]:
    """Reductions and gatherings over all replicas, and a call that fails alone."""
    local = strategy.experimental_distribute_values_from_function(
        lambda context: np.float32(1.5) * (1 + context.replica_id_in_sync_group)
    )
    rows = strategy.experimental_distribute_values_from_function(
        lambda context: np.arange(context.replica_id_in_sync_group, dtype=np.float64) / 3
    )
    large = strategy.experimental_distribute_values_from_function(
        lambda context: np.full(50_000, 2.0**-context.replica_id_in_sync_group)
    )
    try:
        strategy.reduce("SUM", strategy.run(lambda: np.ones(2 + worker)), axis=None)
        refused = "nobody refused"
    except di.errors.InvalidArgumentError as error:
        refused = str(error)

    def inside(value: Any) -> Any:
        context = di.distribute.get_replica_context()
        return context.all_reduce("SUM", value), context.all_gather(np.reshape(value, 1), axis=0)

    total, gathered = strategy.run(inside, args=(local,))
    return {
        "sum": float(strategy.reduce("SUM", local, axis=None)),
        "mean": float(strategy.reduce("MEAN", rows, axis=0)).hex(),
        "exact": float(strategy.reduce("MEAN", rows, axis=0, deterministic=True)).hex(),
        "large": float(strategy.reduce("SUM", large, axis=None)[-1]),
        "gather": strategy.gather(rows, axis=0).tolist(),
        "refused": refused,
        "inside": [float(x) for x in strategy.experimental_local_results(total)],
        "gathered": [x.tolist() for x in strategy.experimental_local_results(gathered)],
    }


def numbered(folder: Path) -> list[str]:
    """Four text files of ten numbers each."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for i, letter in enumerate("abcd"):
        paths.append(str(folder / f"{letter}.txt"))
        Path(paths[-1]).write_text("".join(f"{10 * i + j}\n" for j in range(10)), encoding="utf-8")
    return paths


def unlike(kind: str, worker: int, folder: Path) -> Any:
    """A dataset of 40 numbers that worker 1 builds otherwise than worker 0."""
    other = worker == 1
    if kind in ("order of files", "one file fewer", "another folder", "no seed"):
        paths = numbered(folder / (f"mounted/{worker}" if kind == "another folder" else f"mine/{worker}"))
        if kind == "no seed":
            paths = Dataset.list_files(f"{folder}/mine/{worker}/*.txt")  # in the order of a shuffle
        elif other and kind != "another folder":
            paths = paths[::-1] if kind == "order of files" else paths[:2] + paths[3:]
        return di.data.TextLineDataset(paths).map(lambda line: np.int64(int(line))).batch(4)
    return {
        "batch sizes": lambda: Dataset.range(40).batch(8 if other else 4),
        "lengths": lambda: Dataset.from_tensor_slices(np.arange(30 if other else 40)).batch(4),
        "lengths behind a filter": lambda: Dataset.range(30 if other else 40).filter(keep).batch(4),
        "lengths nobody knows": lambda: Dataset.from_generator(
            lambda: iter(range(30 if other else 40)), output_signature=di.TensorSpec([], "int64")
        ).batch(4),
        "policies": lambda: with_policy(Dataset.range(40).batch(4), "DATA" if other else "OFF"),
        "seeds": lambda: Dataset.range(40).shuffle(40, seed=7 if other else 5).batch(4),
        "steps": lambda: Dataset.range(40).shuffle(40, seed=5).batch(4),
    }[kind]()


def compare(strategy: Any, worker: int, given: dict[str, Any]) -> dict[str, Any]:
    """Of each kind the rows that came, or the error."""
    found: dict[str, Any] = {}
    for kind in given["kinds"]:
        try:
            dataset = strategy.experimental_distribute_dataset(unlike(kind, worker, Path(given["folder"])))
            steps: Any = iter(dataset)
            if kind == "steps":
                for _ in range(2 + worker):
                    state = steps.state()  # of the step before the last one that this worker takes
                    next(steps)
                for _ in range(1 - worker):
                    next(steps)  # all take as many
                steps = dataset.restore(state)
            found[kind] = [rows_of(strategy, step) for step in steps]
        except di.errors.DistinputError as error:
            if given.get("raises"):
                raise
            found[kind] = f"{type(error).__name__}: {error}"
    return found


def loader(_: Any, __: int, given: dict[str, Any]) -> list[list[int]]:
    """The epochs of a DataLoader in this process."""
    from tests.engines.loader import epochs

    return epochs(**given)


# Faults -------------------------------------------------------------------------------------------------------------


def _kill(given: dict[str, Any]) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _kill_soon(given: dict[str, Any]) -> None:
    """In the middle of whatever comes next."""
    threading.Timer(given["delay"], _note_and_kill, [given]).start()


def _note_and_kill(given: dict[str, Any]) -> None:
    _note(given)
    _kill(given)


def _stop(given: dict[str, Any]) -> None:
    """Stand still, to go on after some seconds."""
    words = ["sh", "-c", f"sleep {given['seconds']}; kill -CONT {os.getpid()}"]
    with subprocess.Popen(words, start_new_session=True) as helper:
        os.kill(os.getpid(), signal.SIGSTOP)
        helper.wait()


def _raise(given: dict[str, Any]) -> None:
    raise OSError("the disk is full")


def _leave(given: dict[str, Any]) -> None:
    raise SystemExit(0)


ACTS: dict[str, Callable[[dict[str, Any]], None]] = {
    "kill": _kill,
    "kill soon": _kill_soon,
    "leave": _leave,
    "raise": _raise,
    "stop": _stop,
}


def _note(given: dict[str, Any]) -> None:
    """When it happened, for the others' time to the error."""
    Path(given["when"]).write_text(repr(time.time()), encoding="utf-8")


def loop(strategy: Any, worker: int, given: dict[str, Any]) -> int:
    """A training loop, in which one worker does something at a step, before it takes it or before it reduces.

    Args:
      strategy: whose workers take part.
      worker: this one.
      given: `victim`; its `act`, of `ACTS`, or "poison" for an element that its map refuses, or "none"; `step` and
        `place` of the act, and what it needs; `when`, the file that takes the time; `kind`, `n` and `batch` of the data.

    Returns:
      How many steps it took.
    """
    mine = given["act"] if worker == given["victim"] else None
    steps = 0

    def maybe(place: str) -> None:
        if mine in ACTS and steps == given["step"] and place == given["place"]:
            if mine != "kill soon":
                _note(given)
            ACTS[mine](given)

    def poison(x: Any) -> Any:
        if mine == "poison" and x >= given["batch"] * given["step"]:
            _note(given)
            raise ValueError("record 17 makes no sense")
        return x

    kind, batch = given["kind"], given["batch"]
    if kind == "files":
        batches = distributed(strategy, worker, given)
    elif kind == "counted":
        batches = strategy.experimental_distribute_dataset(Dataset.range(given["n"]).map(poison).batch(batch))
    else:
        batches = strategy.experimental_distribute_dataset(
            Dataset.range(given["n"]).filter(keep).map(poison).batch(batch)
        )
    iterator = iter(batches)
    while True:
        maybe("next")
        step = next(iterator, None)
        if step is None:
            return steps
        maybe("reduce")
        strategy.reduce("SUM", step, axis=0)
        steps += 1


def differ(strategy: Any, worker: int, names: list[str]) -> dict[str, Any]:
    """Workers make different calls, in one way after the other; what each got: `numbers`, or the `error` and its `text`."""
    loss, accuracy = np.full(2, 8.0), np.full(2, 100.0)

    def one_more() -> list[float]:
        found = []
        for step in range(3):
            if worker == 1 and step == 1:
                strategy.reduce("SUM", np.full(2, 800.0), axis=None)
            found += strategy.reduce("SUM", loss, axis=None).tolist()
        return found

    def operation() -> list[float]:
        return list(strategy.reduce("MEAN" if worker else "SUM", loss, axis=None).tolist())

    def swapped() -> list[float]:
        if worker:
            mine = [strategy.reduce("SUM", accuracy, axis=None)]
            mine.append(strategy.reduce("SUM", loss, axis=None))
            return [*mine[1].tolist(), *mine[0].tolist()]
        mine = [strategy.reduce("SUM", loss, axis=None)]
        mine.append(strategy.reduce("SUM", accuracy, axis=None))
        return [*mine[0].tolist(), *mine[1].tolist()]

    def crossed() -> list[float]:
        steps = iter(strategy.experimental_distribute_dataset(Dataset.range(64).filter(keep).batch(4)))
        next(steps)
        if worker:
            strategy.reduce("SUM", loss, axis=None)
        for _ in steps:
            pass
        return list(strategy.reduce("SUM", loss, axis=None).tolist())

    ways = {"one more": one_more, "operation": operation, "swapped": swapped, "crossed": crossed}
    outcomes: dict[str, Any] = {}
    for name in names:
        began = time.monotonic()
        try:
            outcomes[name] = {"numbers": ways[name]()}
        except Exception as error:  # noqa: BLE001 - the test looks at what was raised
            outcomes[name] = {"error": type(error).__name__, "text": str(error), "after": time.monotonic() - began}
    return outcomes


def variables(strategy: Any, worker: int, given: Any) -> dict[str, Any]:
    """What variables hold after writes of all policies; the chief's initial values count."""
    made: dict[str, Any] = {}
    with strategy.scope():
        for aggregation in ("SUM", "MEAN", "ONLY_FIRST_REPLICA", "NONE"):
            for synchronization in ("ON_WRITE", "ON_READ"):
                name = f"{synchronization} {aggregation}"
                made[name] = di.Variable(
                    lambda: [float(10 * worker), 1.0],
                    name=name,
                    aggregation=aggregation,
                    synchronization=synchronization,
                )

    def step() -> None:
        number = np.float32(di.distribute.get_replica_context().replica_id_in_sync_group + 1)
        for v in made.values():
            v.assign_add([number, number])
            if v.synchronization.name == "ON_WRITE":
                v.scatter_sub(di.IndexedSlices(number[None], [1]))

    strategy.run(step)
    inside = strategy.run(lambda: di.Variable(lambda: float(worker + 3), name="inside"))
    said: dict[str, Any] = {
        name: [part.numpy().tolist() for part in strategy.experimental_local_results(v)] for name, v in made.items()
    }
    said["read"] = {name: v.numpy().tolist() for name, v in made.items() if name != "ON_READ NONE"}
    said["inside"] = float(inside)
    try:
        with strategy.scope():
            di.Variable(np.zeros(worker + 1))
    except ValueError as error:
        said["refused"] = str(error)
    return said


def laws_of_strategies(strategy: Any, worker: int, given: Any) -> list[str]:
    """The names of the laws that hold."""
    return list(check_strategy(strategy))


def on_devices(strategy: Any, worker: int, given: Any) -> dict[str, Any]:
    """All arithmetic on values that are on devices, and what is said to mistakes."""
    from tests.distribute import test_device_exchange as exchange

    found = exchange.numbers(strategy, worker)
    return {
        "kind": strategy._reducer._exchange.kind,
        "arrays": sorted({type(value).__name__ for value in found}),
        "numbers": [np.asarray(value).tolist() for value in found],
        "mistakes": exchange.mistakes(strategy, worker),
        "mixed": exchange.differing(strategy, worker),
    }


PROGRAMS: dict[str, Callable[[Any, int, Any], Any]] = {
    "begin": begin,
    "compare": compare,
    "deliver": deliver,
    "differ": differ,
    "go_on": go_on,
    "laws_of_strategies": laws_of_strategies,
    "loader": loader,
    "loop": loop,
    "numbers": numbers,
    "on_devices": on_devices,
    "variables": variables,
}
