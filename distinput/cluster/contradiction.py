# SPDX-License-Identifier: Apache-2.0
"""Whether two descriptions of the cluster in one environment can both hold."""

from distinput.cluster.topology import Cluster, Sighting
from distinput.cluster.variables import Environ, text

__all__ = ["contradicts"]

_ALLOCATIONS = ("slurm", "kubernetes")
"""What starts one process in a shell or a pod may be what the others are started from."""


def contradicts(found: Cluster, seen: Sighting, environ: Environ) -> bool:
    """Whether what a later source says cannot hold beside the description that is taken.

    Only what people write is compared: TF_CONFIG, and RANK with WORLD_SIZE where no torchrun set them. Launchers start one
    another, such as srun one torchrun on each machine; then the inner one knows best, and both are right.

    Args:
      found: the description that is taken.
      seen: by a source that comes later in the order.
      environ: the variables.
    """
    if seen.rank is None or seen.size is None or (seen.source in _ALLOCATIONS and seen.size == 1):
        return False
    if found.source == "tf_config":
        counts = {job: found.jobs.num_tasks(job) for job in found.jobs.jobs}
        least = sum(count for job, count in counts.items() if job != "evaluator")
        together = not counts.keys() <= {"chief", "worker"} and least <= seen.size <= least + 1
        if found.task_type not in ("chief", "worker") or together:
            return False  # parameter servers and evaluators, which count for themselves, may be started by it too
        return (seen.rank, seen.size) != (found.rank, found.size)
    if found.source == "torchrun" and text(environ, "TORCHELASTIC_RUN_ID") is None:
        each, rest = divmod(found.size, seen.size)  # every process of the outer launcher may have started as many
        return bool(rest) or found.rank // each != seen.rank
    return False
