# SPDX-License-Identifier: Apache-2.0
"""One contender's process: `python -m benchmarks.serve module case contender folder scale`.

Orders come as lines of JSON on the standard input and are answered on the standard output: `["load"]`, `["check"]`,
`["time", least]` and `["facts"]`. It ends with its input.
"""

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from benchmarks.harness import find_case, timed


def main() -> None:
    """Load the contender and obey."""
    # What a library prints must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    module, case, name, folder, scale = sys.argv[1:]
    contenders = find_case(importlib.import_module(module), case, Path(folder), float(scale)).contenders
    (contender,) = [c for c in contenders if c.name == name]
    work = contender.load()
    for line in sys.stdin:
        order, *arguments = json.loads(line)
        answer: Any
        if order == "load":
            answer = True  # it has, or it would not be here
        elif order == "check":
            answer = None if work.check is None else work.check()
        elif order == "time":
            times = timed(work, *arguments)
            answer = [times.seconds, times.cpu]
        else:
            answer = dict(work.facts())
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    answers.flush()
    os._exit(0)  # some libraries wait for their threads at exit


if __name__ == "__main__":
    main()
