# SPDX-License-Identifier: Apache-2.0
"""Distributed values are pytrees, also if JAX is imported after this library."""

import subprocess
import sys

import pytest

from distinput.distribute.core.values import Mirrored, PartialPerReplica, PerReplica
from tests.engines.processes import missing

pytestmark = pytest.mark.skipif(bool(missing("jax")), reason=missing("jax"))
VALUES = [PerReplica([1, 2]), PartialPerReplica([1, 2], [True, False]), Mirrored([1, 2])]
LATER = """
import sys
import distinput
value = distinput.distribute.PerReplica([1, 2])
assert "jax" not in sys.modules
import jax.numpy
print(jax.tree.leaves({"x": value}), jax.tree.map(lambda x: -x, value).values)
"""


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_components_are_leaves(value: PerReplica) -> None:
    import jax

    assert jax.tree.leaves((value, 3)) == [1, 2, 3]
    made = jax.tree.map(lambda x: 10 * x, value)
    assert type(made) is type(value)
    assert made.values == (10, 20)
    assert getattr(made, "present", None) == getattr(value, "present", None)
    assert [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path({"x": value})] == [
        "['x'][0]", "['x'][1]",
    ]  # fmt: skip


def test_jitted_functions_take_and_return_them() -> None:
    import jax

    made = jax.jit(lambda value: jax.tree.map(lambda x: x + 1, value))(PerReplica([1, 2]))
    assert type(made) is PerReplica
    assert [int(part) for part in made.values] == [2, 3]


def test_values_over_a_mesh_become_values_of_parts() -> None:
    import jax
    import numpy as np

    from distinput.distribute.tpu.mesh import DeviceValues, ReplicaMesh

    mesh = ReplicaMesh.of(jax.devices()[:1])
    value = DeviceValues(jax.device_put(np.arange(3), mesh.per_replica), mesh, scalar=False)
    made = jax.tree.map(lambda x: 2 * x, value)
    assert type(made) is PerReplica
    assert [part.tolist() for part in made.values] == [[0, 2, 4]]


def test_values_of_a_program_that_imports_jax_later_are_pytrees() -> None:
    found = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True, check=False, timeout=300)
    assert found.stdout.strip() == "[1, 2] (-1, -2)", found.stderr
