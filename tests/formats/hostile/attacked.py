# SPDX-License-Identifier: Apache-2.0
"""Carries out attacks, in a process with little memory that watches what is done in it.

    python -m tests.formats.hostile.attacked FOLDER FIRST STOP STEP

For each attack it prints `begin NUMBER NAME`, and then what came of it: `fine`, or `bad:` and what is wrong.
"""

import os
import re
import resource
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from distinput.errors import DataLossError, DistinputError
from tests.formats.hostile.attacks import CANARY, Attack
from tests.formats.hostile.every_attack import ATTACKS
from tests.formats.hostile.peak import peak_bytes

SECONDS = 60
"""For one attack, on a slow machine."""

_WATCHED = {
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "subprocess.Popen",
    "pickle.find_class",
    "socket.connect",
}
"""What no reader of files has to do."""

_CHANGES = {"os.remove", "os.rename", "os.link", "os.symlink", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod"}
"""What readers of files must not do, and the attacks themselves may, in their folder."""


_TRUSTED = {"builtins", "copyreg", "numba", "numpy", "llvmlite"}
"""Whose classes numba finds in its cache of kernels."""


PLACE = (
    r"byte \d+|after \d+|at \d+ \(record|row \d+|record \d+|line \d+|row group \d+|record batch \d+|sample|member|array '"
    r"|its (header|footer|list of members|columns|parts)|manifest|changed while it was read|has \d+ bytes"
)
"""What an error of damage says of the place in the file; of a manifest, or of all of a file, what is wrong with it."""


class Watch:
    """Notes what is done that should not be, while it is on."""

    def __init__(self, folder: Path) -> None:
        self.on, self.seen, self._folder = False, list[str](), str(folder)
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.on:
            return
        outside = bool(args) and isinstance(args[0], str | bytes) and not os.fsdecode(args[0]).startswith(self._folder)
        if args and "__pycache__" in str(args[0]):  # numba's cache of kernels
            return
        if threading.current_thread().name == "distinput-kernels":  # which compiles, and runs a linker
            return
        if event == "pickle.find_class" and str(args[0]).split(".")[0] in _TRUSTED:
            return
        writes = event == "open" and isinstance(args[2], int) and bool(args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        if event in _WATCHED or (outside and (event in _CHANGES or writes)):
            self.seen.append(f"{event}{args!s:.100}")


def outcome(attack: Attack, folder: Path, watch: Watch) -> str:
    """What came of an attack."""
    folder.mkdir()
    os.chdir(folder)
    attack.make(folder)
    before, rows, error = peak_bytes(anew=True), 0, None
    watch.seen.clear()
    watch.on = True
    signal.alarm(SECONDS)
    try:
        for _ in attack.read(folder):
            rows += 1
    except Exception as caught:  # noqa: BLE001 - whatever it is, it is looked at
        error = caught
    finally:
        watch.on = False
        signal.alarm(0)
    more = peak_bytes() - before
    said = "" if error is None else " ".join([str(error), *getattr(error, "__notes__", ())])
    wrong = []
    if watch.seen or (folder / CANARY).exists():
        wrong.append(f"did {watch.seen}")
    if more > attack.most_bytes:
        wrong.append(f"took {more >> 20} MiB")
    if attack.rows is not None and rows != attack.rows:
        wrong.append(f"gave {rows} elements, not {attack.rows}")
    if error is not None and not isinstance(error, DistinputError | OSError):
        wrong.append(f"{type(error).__name__}: {error!s:.300}")
    elif error is None and attack.error == "file":
        wrong.append("no error")
    elif isinstance(error, DataLossError) and not re.search(PLACE, str(error)):
        wrong.append(f"no place in the file: {error!s:.300}")
    elif error is not None and str(folder / (attack.error or "file").rstrip("?")) not in said:
        wrong.append(f"the file is not named: {said:.300}")
    return f"bad: {'; '.join(wrong)}".replace("\n", " ") if wrong else f"fine {said[:200]}".replace("\n", " ")


def main() -> None:
    folder, (first, stop, step) = Path(sys.argv[1]), map(int, sys.argv[2:])
    limit = 8 << 30  # of addresses, so that a length that is believed is an error and not the machine's end
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends the process
    watch = Watch(folder)
    for number in range(first, stop, step):
        print("begin", number, ATTACKS[number].name, flush=True)
        print(outcome(ATTACKS[number], folder / str(number), watch), flush=True)


if __name__ == "__main__":
    main()
