# SPDX-License-Identifier: Apache-2.0
"""Two descriptions of one cluster: which may stand side by side, and which cannot both hold."""

import pytest

from distinput.cluster.cluster_spec import ClusterSpec
from distinput.cluster.resolve import contradicts
from distinput.cluster.topology import Cluster, Sighting

WORKERS = ClusterSpec({"worker": ["a:1", "b:1", "c:1"]})
WITH_PS = ClusterSpec({"worker": ["a:1", "b:1"], "ps": ["p:1"]})


def tf_config(rank: int, jobs: ClusterSpec = WORKERS, task_type: str = "worker") -> Cluster:
    size = jobs.num_tasks("worker")
    return Cluster(rank, size, jobs=jobs, task_type=task_type, task_id=rank, source="tf_config")


def torchrun(rank: int, size: int) -> Cluster:
    return Cluster(rank, size, source="torchrun")


@pytest.mark.parametrize(
    "found, seen, expected",
    [
        (tf_config(1), Sighting("torchrun", rank=1, size=3), False),
        (tf_config(1), Sighting("torchrun", rank=2, size=3), True),
        (tf_config(1), Sighting("torchrun", rank=1, size=4), True),
        (tf_config(1), Sighting("torchrun", size=4), False),  # it does not say which process this is
        (tf_config(1), Sighting("torchrun", rank=2), False),
        (tf_config(1), Sighting("slurm", rank=0, size=1), False),  # one shell, from which all were started
        (tf_config(1), Sighting("slurm", rank=0, size=3), True),
        (tf_config(1), Sighting("mpi", rank=0, size=1), True),
        (tf_config(0, WITH_PS), Sighting("slurm", rank=2, size=3), False),  # it started the parameter server, too
        (tf_config(0, WITH_PS), Sighting("slurm", rank=2, size=7), True),
        (tf_config(0, WITH_PS, "ps"), Sighting("slurm", rank=2, size=7), False),
        (Cluster(0, 2, source="openmpi"), Sighting("slurm", rank=1, size=2), False),  # launchers know best, inner first
        (torchrun(3, 4), Sighting("slurm", rank=1, size=2), False),  # two processes on each of two machines
        (torchrun(3, 4), Sighting("slurm", rank=0, size=2), True),
        (torchrun(3, 4), Sighting("slurm", rank=1, size=3), True),
    ],
)
def test_what_cannot_both_hold(found: Cluster, seen: Sighting, expected: bool) -> None:
    assert contradicts(found, seen, {}) is expected


def test_what_torchrun_itself_set_is_not_compared() -> None:
    assert not contradicts(torchrun(3, 4), Sighting("slurm", rank=0, size=2), {"TORCHELASTIC_RUN_ID": "none"})
