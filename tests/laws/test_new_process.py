# SPDX-License-Identifier: Apache-2.0
"""Law 2 in a new process: a state written to a file gives exactly the rest there."""

import json
import subprocess
import sys
from typing import Any

import pytest

from distinput.testing.elements import exact
from distinput.testing.pipelines import built

RECIPES: dict[str, list[Any]] = {
    "files, shuffled without a seed": [
        ["text", {"rows": [4, 0, 5], "reads": None, "compression": "GZIP"}],
        ["shuffle", {"buffer": 4, "seed": None, "again": None}],
        ["repeat", {"count": 2}],
        ["batch", {"size": 4, "drop": False, "parallel": None}],
    ],
    "a cache of a shuffle": [
        ["parquet", {"rows": [5, 3], "reads": 2, "columns": ["id"], "group": 2}],
        ["shuffle", {"buffer": 8, "seed": None, "again": None}],
        ["cache", {}],
        ["repeat", {"count": 3}],
    ],
    "a mix of windows": [
        ["range", {"start": 0, "stop": 20, "step": 1, "dtype": "int64"}],
        ["global_shuffle", {"seed": None, "again": None}],
        ["group_by_window", {"modulus": 3, "window": 2, "by_key": True, "reduce": "batch", "size": 2}],
        ["sample", {"others": ["skip"], "weights": None, "seed": 1, "stop": False}],
        ["interleave", {"function": "ahead", "cycle": 3, "block": 2, "parallel": -1}],
    ],
}

PROGRAM = """
import json, sys
from distinput.testing.elements import exact
from distinput.testing.pipelines import built
dataset = built(json.loads(sys.argv[1]))
for state in json.loads(sys.stdin.read()):
    with dataset.restore(state, may_differ="root") as rest:
        print(json.dumps([repr(exact(element)) for element in rest]))
"""


@pytest.mark.parametrize("name", RECIPES)
def test_a_state_goes_on_in_a_new_process(name: str) -> None:
    recipe = RECIPES[name]
    states, elements = [], []
    with iter(built(recipe)) as iterator:
        states.append(iterator.state())
        for element in iterator:
            elements.append(repr(exact(element)))
            states.append(iterator.state())
    assert len(elements) > 4
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(recipe)],
        input=json.dumps(states),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    rests = [json.loads(line) for line in done.stdout.splitlines()]
    assert rests == [elements[position:] for position in range(len(states))]
