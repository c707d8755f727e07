# SPDX-License-Identifier: Apache-2.0
"""Runs the tests in three processes, each with a part of the files, where pytest-xdist is not installed.

They try one case of each test, and leave out what looks at the project's files: packages change nothing there. With
arguments it is pytest: what they name may be in one part alone, and is tried whole.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

_CASES = "1"
# One more than two cores: many tests wait for processes of theirs.
_PARTS = 3
_ABOUT_FILES = ("tests/benchmarks", "tests/house", "tests/proofs")


def main(arguments: Sequence[str]) -> int:
    """The status of pytest, of the first part that failed."""
    command = [sys.executable, "-m", "pytest", *arguments]
    if arguments:
        return subprocess.run(command, check=False).returncode
    command += [f"--ignore={room}" for room in _ABOUT_FILES]
    with contextlib.ExitStack() as stack:
        # What the others say is printed when all have ended.
        said = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(1, _PARTS)]
        parts = [
            subprocess.Popen(
                command,
                env={**os.environ, "DISTINPUT_TESTS_PART": f"{part}/{_PARTS}", "DISTINPUT_TESTS_CASES": _CASES},
                stdout=out,
                stderr=out,
            )
            for part, out in enumerate([None, *said])
        ]
        failed = [status for status in [part.wait() for part in parts] if status]
        for text in said:
            text.seek(0)
            sys.stdout.write(text.read().decode(errors="replace"))
    return failed[0] if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
