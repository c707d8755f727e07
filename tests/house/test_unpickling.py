# SPDX-License-Identifier: Apache-2.0
"""Pickles are code. Each place that unpickles is listed, with whom it takes them from; none takes them from files of data."""

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "distinput"

FROM = {
    "run/segments.py": "memory that a process of this program shares; a member of the cluster, through its own connection",
    "run/lent_memory.py": "memory of a process of the same user, whose place the consumer or a worker of the service has sent",
    "run/processes.py": "the process that started this one",
    "distribute/seats/links.py": "a connection whose other end has proved that it knows the secret of the cluster",
    "distribute/seats/packing.py": "the same",
    "ops/piece_lanes.py": "the consumer, through the cluster or the executor that the user names",
    "functions/executor_calls.py": "an executor of the user's",
    "functions/workers.py": "this process itself: whether an error can be sent",
    "kernels/object_code.py": "a constant of a compiled kernel, which is executed anyway",
}


def test_pickles_come_from_this_program_or_from_who_has_its_secrets() -> None:
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if "testing" not in path.parts
        and re.search(
            r"^(?!\s*#)(?!.*`pickle\.loads`).*\b(?:pickle|cloudpickle|dill|joblib|marshal|shelve)\.loads?\(",
            path.read_text(),
            re.MULTILINE,
        )
    }
    assert found <= set(FROM), "say in FROM whom this takes pickles from"


def test_numpy_unpickles_nothing() -> None:
    for path in PACKAGE.rglob("*.py"):
        for call in re.findall(r"np\.load\([^\n]*", path.read_text()):
            assert "allow_pickle=False" in call or "testing" in path.parts, f"{path}: {call}"
