# SPDX-License-Identifier: Apache-2.0
"""One worker of the golden cases, on whatever started it: `golden_worker.py ENGINE CASES REPLICAS OUT`.

The runner's own workers are told their number; here it is asked of the environment, as mpiexec sets it.
"""

import sys
from pathlib import Path

import distinput as di


def main(engine: str, cases: str, replicas: str, out: str) -> None:
    """Answer the cases, each in a line of OUT followed by the worker's number."""
    place = di.distribute.cluster_resolver.resolve()
    if engine == "jax":  # initialised by the program, and found by the strategy
        import jax

        jax.distributed.initialize(place.coordinator, place.size, place.rank, cluster_detection_method="deactivate")
    sys.path.insert(0, str(Path(__file__).parents[1] / "golden"))
    import adapter

    adapter._worker_main(cases, replicas, str(place.rank), f"{out}{place.rank}")


if __name__ == "__main__":
    main(*sys.argv[1:])
