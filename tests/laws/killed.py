# SPDX-License-Identifier: Apache-2.0
"""Kills writers at every kind of step, and looks at what they leave: `python -m tests.laws.killed SEED KILLS`.

A writer runs in a fork of this process, which ends itself with SIGKILL at one of its steps: before a file is opened, renamed or
removed, before a folder is made, listed or removed, and in the middle of every write. Then the old dataset or the new one must
be there, whole; the next writer must come to the same end as one that nobody has killed; and nothing else may be left.
"""

import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import distinput as di
from distinput.files.sink import Sink
from distinput.writers import open_file
from distinput.writers.manifest import MANIFEST, read_written, with_beside

OLD, NEW = list(range(7)), list(range(100, 112))
_LEFT = [number for number in range(100, 114) if number not in (103, 110)]
IN_TURNS = dict(zip(_LEFT, [NEW[place % 3 * 4 + place // 3] for place in range(12)], strict=True))
"""What is written in turns, so that the files have the new elements one after the other."""
_REPLACE = ("write", "write_beside", "write_in_turns", "workers")
_KEEP = ("cache", "snapshot", "snapshot_by_function")
_STEPS = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.listdir", "os.scandir")


def dataset(first: int, count: int) -> Any:
    """Some elements, in several blocks."""
    half = first + count // 2
    return di.data.Dataset.range(first, half).concatenate(di.data.Dataset.range(half, first + count)).map(lambda x: x)


def write(folder: str) -> None:
    """Replace a dataset by one of several files."""
    dataset(100, 12).write(folder, "elements", shard_rows=5, overwrite=True)


def write_beside(folder: str) -> None:
    """Replace files that have another one beside each."""
    dataset(100, 12).map(lambda x: x[None]).write(folder, "megatron", shard_rows=5, overwrite=True)


def write_in_turns(folder: str) -> None:
    """Replace a dataset by files that take turns, since nobody has counted the elements."""
    dataset(100, 14).filter(lambda x: x not in (103, 110)).map(lambda x: IN_TURNS[x]).write(
        folder, "elements", shards=3, overwrite=True
    )


def workers(folder: str) -> None:
    """Two workers write together, one after the other."""
    for index in range(2):
        part = dataset(100 + 6 * index, 6)
        part.write(folder, "elements", shard_rows=4, overwrite=True, num_workers=2, index=index, job="again")


def save(folder: str) -> None:
    """Save over a saved dataset."""
    dataset(100, 12).save(folder)


def save_by_function(folder: str) -> None:
    """Save to files that a function names."""
    dataset(100, 12).save(folder, shard_func=lambda x: x // 105)


def cache(folder: str) -> None:
    """A pass over a cache on disk."""
    assert kept(folder) == NEW


def snapshot(folder: str) -> None:
    """A pass over a snapshot."""
    assert dataset(100, 12).snapshot(folder).to_list() == NEW


def snapshot_by_function(folder: str) -> None:
    """A pass over a snapshot of files that a function names."""
    assert dataset(100, 12).snapshot(folder, shard_func=lambda x: x // 105).to_list() == NEW


def kept(folder: str) -> list[int]:
    """The elements of a cache."""
    return dataset(100, 12).cache(folder).to_list()  # type: ignore[no-any-return]


WRITERS: dict[str, Callable[[str], None]] = {
    made.__name__: made
    for made in (
        write,
        write_beside,
        write_in_turns,
        workers,
        save,
        save_by_function,
        cache,
        snapshot,
        snapshot_by_function,
    )
}


def prepare(name: str, folder: str) -> None:
    """What is there before."""
    if name == "write_beside":
        dataset(0, 7).map(lambda x: x[None]).write(folder, "megatron", overwrite=True)
    elif name in _REPLACE:  # files of other names are another dataset, which is not replaced
        dataset(0, 7).write(folder, "elements", overwrite=True)
    elif name not in _KEEP:
        dataset(0, 7).save(folder)
    else:
        os.makedirs(folder)
    Path(folder, "mine.txt").write_text("mine")


def run(name: str, folder: str, kill_at: int) -> int | None:
    """Run a writer in a fork that is killed at a step; the steps that it made if it was not killed."""
    read, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            steps = _killed_at(kill_at, folder)
            _small_files()
            WRITERS[name](folder)
            os.write(write_end, str(steps()).encode())
            os._exit(0)
        except BaseException as error:  # noqa: BLE001 - the fork must never go on as its parent
            sys.stderr.write(f"{name}: {error!r}\n")
            os._exit(1)
    os.close(write_end)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return None
    assert os.waitstatus_to_exitcode(status) == 0, f"{name}: ended with {status}"
    return int(said)


def _killed_at(kill_at: int, folder: str) -> Callable[[], int]:
    """Have this process killed at a step in a folder; returns a function that says how many it has made."""
    made = 0

    def step() -> None:
        nonlocal made
        if made == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        made += 1

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _STEPS and str(arguments[0]).startswith(folder):
            step()

    put = Sink._put

    def half(sink: Sink, data: bytes) -> None:
        put(sink, bytes(data)[: len(data) // 2])
        step()
        put(sink, bytes(data)[len(data) // 2 :])

    sys.addaudithook(hook)
    Sink._put = half  # type: ignore[method-assign]
    return lambda: made


def _small_files() -> None:
    """Have files that end by their size end with every block, so that a writer that was killed has some to go on after."""
    open_file.SHARD_BYTES = open_file.SHARD_BYTES = 1


def elements(folder: str) -> list[int]:
    """What is in the files of a folder."""
    return np.ravel(di.data.FileDataset(folder).to_list()).tolist()  # type: ignore[no-any-return]


def check(name: str, folder: str) -> None:
    """The old dataset or the new one is there, and a writer that is not killed comes to its end."""
    if name not in _KEEP:
        found = elements(folder)
        assert found in (OLD, NEW), found
        di.io.verify_files(folder)
        WRITERS[name](folder)
        assert elements(folder) == NEW
    else:
        WRITERS[name](folder)
        WRITERS[name](folder)
    if name.startswith("snapshot"):
        (word,) = [entry for entry in os.listdir(folder) if entry != "mine.txt"]
        folder, mine = os.path.join(folder, word), []
    else:
        mine = ["mine.txt"]
    found_files = read_written(folder)
    assert found_files is not None
    wanted = sorted([MANIFEST, *mine, *[file.name for file in with_beside(found_files.files)]])
    assert sorted(os.listdir(folder)) == wanted, f"{sorted(os.listdir(folder))}, expected {wanted}"
    di.io.verify_files(folder)


def main(seed: int, kills: int) -> None:
    """Kill as many writers as were asked for, at random steps."""
    draw = random.Random(seed)
    root = tempfile.mkdtemp(prefix="distinput-killed-")
    try:
        steps: dict[str, int] = {}
        names = list(WRITERS)
        for number in range(kills):
            name = names[(seed + number) % len(names)]
            if name not in steps:
                folder = os.path.join(root, f"whole-{name}")
                prepare(name, folder)
                found = run(name, folder, -1)
                assert found is not None
                steps[name] = found
                check(name, folder)
            folder = os.path.join(root, str(number))
            prepare(name, folder)
            at = draw.randrange(steps[name])
            assert run(name, folder, at) is None, f"{name}: was not killed at step {at} of {steps[name]}"
            try:
                check(name, folder)
            except BaseException as error:
                error.add_note(f"{name}, killed at step {at} of {steps[name]}")
                raise
            shutil.rmtree(folder)
        print(f"{kills} killed, of {steps}")
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
