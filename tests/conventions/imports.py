# SPDX-License-Identifier: Apache-2.0
"""Which packages a program has imported that uses distinput alone; one process for all tests that ask."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

__all__ = ["imported"]

_PROGRAM = """
import json, sys
import distinput as di
import distinput.distribute.engines.mpi
strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
for step in strategy.experimental_distribute_dataset(di.data.Dataset.range(3).batch(2)):
    strategy.run(lambda x: x, args=(di.distribute.PerReplica([1, 2]),))
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


@cache
def imported() -> frozenset[str]:
    """The top-level packages that a small program with a strategy and the module of the MPI engine has loaded."""
    run = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=300, check=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert run.stderr == ""
    return frozenset(json.loads(run.stdout))
