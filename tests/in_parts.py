# SPDX-License-Identifier: Apache-2.0
"""Runs the tests in two processes, each with a part of the files, where pytest-xdist is not installed.

They try a few cases of each test, and leave out what looks at the project's files: packages change nothing there. With
arguments it is pytest: what they name may be in one part alone, and is tried whole.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

_CASES = "3"
_ABOUT_FILES = ("tests/benchmarks", "tests/house", "tests/proofs")


def main(arguments: Sequence[str]) -> int:
    """The status of pytest, of the first part that failed."""
    command = [sys.executable, "-m", "pytest", *arguments]
    if arguments:
        return subprocess.run(command, check=False).returncode
    command += [f"--ignore={room}" for room in _ABOUT_FILES]
    with tempfile.TemporaryFile() as said:  # by the second, printed when both have ended
        first, second = (
            subprocess.Popen(
                command,
                env={**os.environ, "DISTINPUT_TESTS_PART": part, "DISTINPUT_TESTS_CASES": _CASES},
                stdout=out,
                stderr=out,
            )
            for part, out in (("0/2", None), ("1/2", said))
        )
        status = first.wait() or second.wait()
        second.wait()
        said.seek(0)
        sys.stdout.write(said.read().decode(errors="replace"))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
