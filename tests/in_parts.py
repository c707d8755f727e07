# SPDX-License-Identifier: Apache-2.0
"""Runs all tests in two processes, each with a part of the files, where pytest-xdist is not installed.

With arguments it is pytest: what they name may be in one part alone.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """The status of pytest, of the first part that failed."""
    command = [sys.executable, "-m", "pytest", *arguments]
    if arguments:
        return subprocess.run(command, check=False).returncode
    with tempfile.TemporaryFile() as said:  # by the second, printed when both have ended
        first, second = (
            subprocess.Popen(command, env={**os.environ, "DISTINPUT_TESTS_PART": part}, stdout=out, stderr=out)
            for part, out in (("0/2", None), ("1/2", said))
        )
        status = first.wait() or second.wait()
        second.wait()
        said.seek(0)
        sys.stdout.write(said.read().decode(errors="replace"))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
