# SPDX-License-Identifier: Apache-2.0
"""A training program for tests of preemption: it counts how often each record was used, and is told to end at some moment.

`python -m tests.engines.preempted ORDER.json`, in the environment of a worker.
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import distinput as di
from distinput.distribute.experimental import CommunicationOptions, PreemptionCheckpointHandler, TerminationConfig
from tests.patience import PATIENCE

RECORDS = 120


def dataset(kind: str) -> Any:
    """Global batches of four records; `counted` tells whether their number is known beforehand."""
    made = di.data.Dataset.range(RECORDS).shuffle(10, seed=5)
    return (made if kind == "counted" else made.filter(lambda x: x >= 0)).batch(4)


def files(folder: str) -> Any:
    """The records in lines of files, of which each worker reads some: policy FILE."""
    return di.data.TextLineDataset(f"{folder}/*.txt").map(number_of).batch(4)


def number_of(line: bytes) -> Any:
    """The number in a line."""
    return np.int64(int(line))


def uneven(context: Any) -> Any:
    """Worker 0 has a quarter of the records, and so runs out of them early."""
    mine = (0, RECORDS // 4) if context.input_pipeline_id == 0 else (RECORDS // 4, RECORDS)
    return di.data.Dataset.range(*mine).batch(2)


def after(value: Any, total: Any) -> Any:
    """The value of the variable after a step whose records have this sum: it depends on their order."""
    return np.int64((int(value) * 3 + int(total)) % 1_000_003)


def main(order: dict[str, Any]) -> int:
    """Train, and leave the result in the folder of the order once everything was used.

    Args:
      order: `folder`, `engine`, `kind` of the data (`files`: in the folder), `form` of the loop, `grace` in seconds,
        `pause` of a step, and `stops`: for each worker that is to get SIGTERM, by its number, when: seconds after the first
        step, or negative the step. With `saves`, the loop saves after every step, and the signal is SIGKILL.
    """
    options = CommunicationOptions(implementation=order["engine"], timeout_seconds=PATIENCE)
    with di.distribute.MultiWorkerMirroredStrategy(communication_options=options) as strategy:
        worker = strategy.cluster_resolver.task_id or 0
        if order["kind"] == "uneven":
            iterator = iter(strategy.distribute_datasets_from_function(uneven))
        else:
            records = files(order["folder"]) if order["kind"] == "files" else dataset(order["kind"])
            iterator = iter(strategy.experimental_distribute_dataset(records))
        with strategy.scope():
            used = di.Variable(np.zeros(RECORDS, np.int64))
            value = di.Variable(np.int64(7))
            checkpoint: Any = di.train.Checkpoint(used=used, value=value, iterator=iterator, steps=0)
        config = TerminationConfig(grace_period=order["grace"] or None)
        manager = di.train.CheckpointManager(checkpoint, order["folder"], max_to_keep=2)
        handler = PreemptionCheckpointHandler(strategy.cluster_resolver, manager, termination_config=config)
        when = order["stops"].get(str(worker))
        first = checkpoint.steps

        def tell() -> None:
            os.kill(os.getpid(), signal.SIGKILL if order["saves"] else signal.SIGTERM)

        def step(batch: Any) -> None:
            if when is not None and checkpoint.steps == first and when >= 0:
                threading.Timer(when, tell).start()
            if when is not None and when < 0 and checkpoint.steps - first == -when:
                tell()
            time.sleep(order["pause"])
            (rows,) = strategy.experimental_local_results(batch)
            mine = np.bincount(rows, minlength=RECORDS)
            total = strategy.reduce("SUM", mine, axis=None)
            used.assign_add(total)
            value.assign(after(value.numpy(), (total * np.arange(RECORDS)).sum()))

        if order["form"] == "run":
            for batch in iterator:
                handler.run(step, batch)
                checkpoint.steps += 1
                if order["saves"]:
                    manager.save()
        else:
            with handler.watch_preemption_scope():
                for batch in iterator:
                    step(batch)
                    checkpoint.steps += 1
                    handler.save_checkpoint_if_preempted()
        result = {"used": used.numpy().tolist(), "value": int(value.numpy()), "steps": checkpoint.steps, "first": first}
        (Path(order["folder"]) / f"result-{worker}.json").write_text(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(Path(sys.argv[1]).read_text())))
