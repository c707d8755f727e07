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
    import_module("distinput.testing.collectives")
    tasks = Path("/proc/self/task")  # of Linux
    assert not tasks.exists() or len(list(tasks.iterdir())) == 1, (
        "a thread would be missing in the processes forked here"
    )
    for line in sys.stdin:
        order = json.loads(line)
        folder = Path(order["folder"])
        environments, words = order["environments"], order["words"]
        workers = [
            _fork(folder, rank, environment, words and words[rank]) for rank, environment in enumerate(environments)
        ]
        codes = wait_for(workers, order["limit"], order["stuck"])
        print(json.dumps(codes), flush=True)
    os._exit(0)  # there is nothing to tidy up, and taking PyTorch apart takes seconds


def _fork(folder: Path, rank: int, environment: dict[str, str], words: list[str] | None) -> Fork:
    """A worker of tests/engines, or with `words` one of the suite for collectives, whose command line they are."""
    pid = os.fork()
    if pid:
        return Fork(pid)
    os.setsid()
    os.environ.update(environment)
    output = os.open(folder / f"output-{rank}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    if words is not None:
        from distinput.testing.collectives import main as check

        sys.exit(check(words))
    from tests.engines.worker import main as work

    sys.exit(work(folder))


if __name__ == "__main__":
    main()
