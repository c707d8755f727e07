# SPDX-License-Identifier: Apache-2.0
"""How a process learns its place in a job; docs/conventions.md lists the lines."""

import json

import pytest

from distinput.distribute.cluster_resolver import resolve

LAUNCHERS = {
    "torchrun": {
        "RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1",
    },
    "tf_config": {
        "TF_CONFIG": json.dumps({"cluster": {"worker": list("abcd")}, "task": {"type": "worker", "index": 1}})
    },
    "slurm": {
        "SLURM_PROCID": "1", "SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_NODELIST": "n[1-4]",
        "SLURM_STEP_TASKS_PER_NODE": "1(x4)", "SLURM_NODEID": "1", "SLURM_JOB_ID": "7",
    },
    "open_mpi": {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "PMIX_RANK": "1"},
    "pmi": {"PMI_RANK": "1", "PMI_SIZE": "4"},
}  # fmt: skip


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_the_variables_of_every_launcher_are_read_an_argument_wins_and_a_contradiction_is_an_error(
    launcher: str,
) -> None:
    environ = LAUNCHERS[launcher]
    found = resolve(environ)
    assert (found.source, found.rank, found.size) == (launcher, 1, 4)
    given = resolve(environ, rank=2, size=4)
    assert (given.rank, given.size) == (2, 4)
    other = {"RANK": "0", "WORLD_SIZE": "3", "MASTER_ADDR": "b", "MASTER_PORT": "2"}
    # What was set by hand must not contradict a launcher; of launchers that start one another the inner one is believed.
    by_hand = environ if launcher == "torchrun" else environ | other
    with pytest.raises(ValueError, match=r"RANK|WORLD_SIZE"):
        resolve(LAUNCHERS["tf_config"] | other if launcher in ("torchrun", "tf_config") else by_hand)
