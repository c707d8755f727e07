# SPDX-License-Identifier: Apache-2.0
"""Whether two descriptions of the cluster in one environment contradict each other."""

from distinput.cluster.topology import Cluster, Sighting
from distinput.cluster.variables import Environ, text

__all__ = ["contradicts"]

_ALLOCATIONS = ("slurm", "kubernetes")
"""Sources that may describe just the single shell or pod from which other processes are started."""


def contradicts(found: Cluster, seen: Sighting, environ: Environ) -> bool:
    """True if a later source contradicts the description in use.

    Only variables set by hand are compared: TF_CONFIG, and RANK with WORLD_SIZE if torchrun did not set them. Launchers
    may start one another, such as srun one torchrun on each machine; then both are right, and the inner one is used.

    Args:
      found: the description in use.
      seen: the description by a source that comes later in the order.
      environ: the environment variables.
    """
    if seen.rank is None or seen.size is None or (seen.source in _ALLOCATIONS and seen.size == 1):
        return False
    if found.source == "tf_config":
        counts = {job: found.jobs.num_tasks(job) for job in found.jobs.jobs}
        least = sum(count for job, count in counts.items() if job != "evaluator")
        together = not counts.keys() <= {"chief", "worker"} and least <= seen.size <= least + 1
        if found.task_type not in ("chief", "worker") or together:
            return False  # parameter servers and evaluators, which are numbered separately, may be started by it too
        return (seen.rank, seen.size) != (found.rank, found.size)
    if found.source == "torchrun" and text(environ, "TORCHELASTIC_RUN_ID") is None:
        each, rest = divmod(found.size, seen.size)  # every process of the outer launcher may have started this many
        return bool(rest) or found.rank // each != seen.rank
    return False
