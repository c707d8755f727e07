# SPDX-License-Identifier: Apache-2.0
"""Prints how long `import distinput` and a first batch take beyond `import numpy`, and tells what they load.

python tests/house/import_time.py [--runs 5] [--json]
"""

import sys
import time
from typing import TypedDict

# What else this file needs is imported where it is needed: a module that is loaded before NumPy counts for nobody.


class Loaded(TypedDict):
    """What one fresh process saw."""

    numpy_ms: float
    distinput_ms: float
    batch_ms: float
    corners_ms: float
    numpy: list[str]
    batch: list[str]
    modules: list[str]


def load_here() -> Loaded:
    """Import numpy, then distinput, in this process, which must not have done so before."""
    begin = time.perf_counter()
    import numpy as np

    assert np.__name__
    with_numpy = sorted(sys.modules)
    middle = time.perf_counter()
    import distinput

    assert distinput.__name__
    end = time.perf_counter()
    dataset = distinput.data.Dataset.from_tensor_slices(np.arange(100)).batch(32)
    assert len(next(iter(dataset))) == 32
    after_batch = time.perf_counter()
    batch = sorted(sys.modules)

    import pkgutil
    from importlib import import_module

    begin_corners = time.perf_counter()
    # The corners, the ops and the formats are loaded when they are first named; what they load counts as well.
    for corner in (distinput.data, distinput.distribute, distinput.io):
        assert all(hasattr(corner, name) for name in corner.__all__)
    for room in ("formats", "functions", "ops", "rewrite", "sharding", "streaming"):
        for file in pkgutil.iter_modules(import_module(f"distinput.{room}").__path__):
            import_module(f"distinput.{room}.{file.name}")
    last = time.perf_counter()
    return {
        "numpy_ms": 1e3 * (middle - begin),
        "distinput_ms": 1e3 * (end - middle),
        "batch_ms": 1e3 * (after_batch - end),
        "corners_ms": 1e3 * (last - begin_corners),
        "numpy": with_numpy,
        "batch": batch,
        "modules": sorted(sys.modules),
    }


def load_elsewhere() -> Loaded:
    """The same in a fresh process."""
    import json
    import subprocess

    run = subprocess.run([sys.executable, __file__, "--json"], capture_output=True, text=True, check=True, timeout=300)
    loaded: Loaded = json.loads(run.stdout)
    return loaded


def main() -> None:
    """Print the figure, or with `--json` what one process saw."""
    import argparse
    import statistics

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="fresh processes to take the median of")
    parser.add_argument("--json", action="store_true", help="load all in this process and print what was seen")
    arguments = parser.parse_args()
    runs = [load_elsewhere() for _ in range(arguments.runs)]
    ours = statistics.median(run["distinput_ms"] for run in runs)
    numpy = statistics.median(run["numpy_ms"] for run in runs)
    batch = statistics.median(run["batch_ms"] for run in runs)
    corners = statistics.median(run["corners_ms"] for run in runs)
    print(
        f"import numpy {numpy:.0f} ms, then import distinput {ours:.0f} ms more, then a batch of what is in memory "
        f"{batch:.0f} ms more, then all of distinput.data, .distribute and .io {corners:.0f} ms more (median of {len(runs)})"
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["--json"]:
        seen = load_here()
        import json

        print(json.dumps(seen))
    else:
        main()
