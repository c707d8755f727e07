# SPDX-License-Identifier: Apache-2.0
"""Step 4 of the demo: stop in the middle of an epoch, and continue in a new process."""

import json
import subprocess
import sys
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from distinput.cli.demo.pipelines import training_batches
from distinput.cli.demo.training import ids_of, mirrored

__all__ = ["Interrupted", "ids_after", "stop_and_resume"]

ReplicaStepIds = list[list[list[int]]]
"""For each step and each replica, the ids it got."""


@dataclass(frozen=True)
class Interrupted:
    """An epoch that was stopped.

    Args:
      state_bytes: the size of the saved state.
      before: the steps before the stop.
      after: the steps after it in this process, which continued as if nothing had happened.
      resumed: the steps after it in a new process, which had only the saved state.
    """

    state_bytes: int
    before: ReplicaStepIds
    after: ReplicaStepIds
    resumed: ReplicaStepIds


def stop_and_resume(directory: Path, replicas: int, batch_size: int, stop_after: int) -> Interrupted:
    """Take `stop_after` steps, save the state, and let a new process take the rest.

    Raises:
      ChildProcessError: the new process failed.
    """
    saved = directory / "digits-state.json"
    strategy = mirrored(replicas)
    with iter(strategy.experimental_distribute_dataset(training_batches(directory, batch_size))) as batches:
        before = [ids_of(strategy, batch) for batch in islice(batches, stop_after)]
        state = json.dumps(batches.state())
        saved.write_text(json.dumps({"replicas": replicas, "batch_size": batch_size, "state": json.loads(state)}))
        after = [ids_of(strategy, batch) for batch in batches]
    child = subprocess.run(
        [sys.executable, "-m", "distinput", "demo", "--resume", str(saved)], capture_output=True, text=True, check=False
    )
    if child.returncode:
        raise ChildProcessError(f"the process that was to go on from {saved} failed:\n{child.stderr.strip()}")
    return Interrupted(len(state), before, after, json.loads(child.stdout))


def ids_after(saved: Path) -> ReplicaStepIds:
    """The steps after a saved state: called in the new process; the data is in the same folder as the state."""
    job = json.loads(saved.read_text())
    strategy = mirrored(job["replicas"])
    batches = strategy.experimental_distribute_dataset(training_batches(saved.parent, job["batch_size"]))
    return [ids_of(strategy, batch) for batch in batches.restore(job["state"], may_differ="root")]
