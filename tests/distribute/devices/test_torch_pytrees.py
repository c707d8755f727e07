# SPDX-License-Identifier: Apache-2.0
"""Distributed values are pytrees of PyTorch, also if PyTorch is imported after this library."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from distinput.distribute.core.values import Mirrored, PartialPerReplica, PerReplica

pytest.importorskip("torch")
from torch.utils import _pytree


def test_components_are_reached_and_put_back() -> None:
    step = {"x": PerReplica([np.ones(2), np.ones(1)]), "y": (Mirrored([1, 1]),)}
    doubled = _pytree.tree_map(lambda part: 2 * part, step)
    assert type(doubled["x"]) is PerReplica
    assert [part.tolist() for part in doubled["x"].values] == [[2, 2], [2]]
    assert (type(doubled["y"][0]), doubled["y"][0].values) == (Mirrored, (2, 2))
    assert len(_pytree.tree_leaves(step)) == 4


def test_placeholders_stay_placeholders() -> None:
    value = _pytree.tree_map(lambda part: part + 1, PartialPerReplica([4, 0], [True, False]))
    assert (value.values, value.present) == ((5, 1), (True, False))


def test_structures_are_compared_and_saved() -> None:
    _, one = _pytree.tree_flatten(PerReplica([1, 2]))
    _, other = _pytree.tree_flatten(PerReplica([3, 4]))
    _, longer = _pytree.tree_flatten(PerReplica([3, 4, 5]))
    assert one == other != longer
    assert _pytree.treespec_loads(_pytree.treespec_dumps(one)) == one


def test_values_of_a_program_that_imports_torch_later_are_pytrees() -> None:
    code = (
        "import sys, distinput as di\n"
        "value = di.distribute.PerReplica([1, 2])\n"
        "assert 'torch' not in sys.modules\n"
        "from torch.utils import _pytree\n"
        "assert _pytree.tree_leaves(value) == [1, 2]\n"
    )
    root = Path(__file__).parents[3]
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False, cwd=root
    )
    assert (run.returncode, run.stderr) == (0, "")
