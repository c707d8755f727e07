# SPDX-License-Identifier: Apache-2.0
"""A process that has loaded an engine, which takes long, and forks the workers of one test after the other.

It has no group and no thread of its own, so what it forks is as good as a fresh process. An order is a line of JSON on
standard input; the answer is one on standard output.
"""

import json
import os
import sys
from importlib import import_module
from pathlib import Path

from tests.engines.processes import Fork, wait_for


def main() -> None:
    """Serve until standard input ends."""
    import distinput as di

    # Lazily loaded corners too, so that no worker has to.
    import_module(sys.argv[1])
    _ = di.distribute.MultiWorkerMirroredStrategy, di.io, di.data.TFRecordDataset
    tasks = Path("/proc/self/task")  # of Linux
    assert not tasks.exists() or len(list(tasks.iterdir())) == 1, (
        "a thread would be missing in the processes forked here"
    )
    for line in sys.stdin:
        order = json.loads(line)
        folder = Path(order["folder"])
        workers = [_fork(folder, rank, environment) for rank, environment in enumerate(order["environments"])]
        codes = wait_for(workers, order["limit"], order["stuck"])
        print(json.dumps(codes), flush=True)
    os._exit(0)  # there is nothing to tidy up, and taking PyTorch apart takes seconds


def _fork(folder: Path, rank: int, environment: dict[str, str]) -> Fork:
    pid = os.fork()
    if pid:
        return Fork(pid)
    os.setsid()
    os.environ.update(environment)
    output = os.open(folder / f"output-{rank}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    from tests.engines.worker import main as work

    sys.exit(work(folder))


if __name__ == "__main__":
    main()
