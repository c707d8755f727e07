# SPDX-License-Identifier: Apache-2.0
"""The program of a process that plays ranks: `python -m distinput.testing.judge.player FOLDER RANK...`.

Several ranks are threads. It ends when all ranks of the job have, in whatever process they are, or when the judge has.
"""

import os
import pickle
import shutil
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from distinput.testing.judge import traces
from distinput.testing.judge.play import PlayTask, events, said

TASK = "task"
"""The file in the folder that says what to do."""

OVER = ".over"
"""What a file is named after the rank that has come to its end; it is empty, or says that there was an error."""


def main(words: Sequence[str]) -> int:
    """Play the ranks, then wait for the others.

    Args:
      words: the folder and the ranks.
    """
    folder, ranks = Path(words[0]), list(map(int, words[1:]))
    leave = threading.Event()
    threading.Thread(target=_wait, args=(folder, ranks, leave), daemon=True, name="distinput-judge").start()
    if len(ranks) == 1:
        _play(folder, ranks[0])
    else:
        threads = [threading.Thread(target=_play, args=(folder, rank), name=f"rank {rank}") for rank in ranks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if not _over(folder, ranks):
        return 1  # what a rank raised was no `Exception`
    leave.wait()
    return 0


def _wait(folder: Path, ranks: Sequence[int], leave: threading.Event) -> None:
    """Wait for the end of the input, which is a pipe from the judge."""
    while os.read(0, 1):
        pass
    if not _over(folder, ranks):  # the judge is gone, and nobody else removes its files
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)
    leave.set()


def _over(folder: Path, ranks: Sequence[int]) -> bool:
    return all(Path(folder, f"{rank}{OVER}").exists() for rank in ranks)


def _play(folder: Path, rank: int) -> None:
    """Write the events of a rank to its file."""
    failed = ""
    with Path(folder, str(rank)).open("wb", buffering=0) as file:
        try:
            task: PlayTask = pickle.loads(Path(folder, TASK).read_bytes())
            told: set[str] = set()
            for event in events(task, rank):
                file.write(pickle.dumps(event))
                if event[0] not in told and event[0] in ("step", "end"):  # before it is closed and nobody knows of it
                    file.write(pickle.dumps(("memory", traces.mapped([os.getpid()]))))
                told.add(event[0])
                failed = failed or ("failed" if event[0] == "error" else "")
        except Exception as error:  # noqa: BLE001 - pickle raises errors of many kinds
            file.write(pickle.dumps(("error", said(error))))
            failed = "failed"
    Path(folder, f"{rank}{OVER}.new").write_text(failed)
    Path(folder, f"{rank}{OVER}.new").rename(Path(folder, f"{rank}{OVER}"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
