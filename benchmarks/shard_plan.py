# SPDX-License-Identifier: Apache-2.0
"""How long does it take to decide which of 4096 workers reads which of a million files?"""

import tracemalloc
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.harness import SEED, Case, Contender, Work, scaled

QUESTION = (
    "10^3 to 10^6 files of very different sizes dealt to 4096 workers, after listing; then one worker's own share"
)
WORKERS = 4096
COUNTS = (1_000, 10_000, 100_000, 1_000_000)


def prepare(folder: Path, scale: float) -> None:
    """Files are only names and sizes here."""


def cases(folder: Path, scale: float) -> list[Case]:
    """Files that stay whole, files that can be cut anywhere, and the share of one worker."""
    found = []
    for count in COUNTS:
        n = scaled(count, scale, 100)
        found.append(_case(f"{count:,} whole files", n, "whole"))
    n = scaled(COUNTS[-1], scale, 100)
    return [*found, _case(f"{COUNTS[-1]:,} text files", n, "text"), _case(f"share of {COUNTS[-1]:,}", n, "share")]


def table(n: int) -> Any:
    """Names and sizes as they come from a listing; the largest file is no larger than a tenth of a worker's mean load."""
    from distinput.columns.column import Strings
    from distinput.files.manifest import FileTable

    sizes = np.random.default_rng(SEED).lognormal(15, 1.5, n).astype(np.int64)
    width = len(b"bucket/data/part-0000000.tfrecord")
    names = np.frombuffer(b"".join(b"bucket/data/part-%07d.tfrecord" % i for i in range(n)), np.uint8)
    return FileTable(
        Strings(names, width * np.arange(n), np.full(n, width)), np.minimum(sizes, sizes.sum() // WORKERS // 10 + 1)
    )


def _case(name: str, n: int, what: str) -> Case:
    def ours() -> Work:
        from distinput.formats.text import TextLines
        from distinput.formats.tfrecord import TFRecords
        from distinput.sharding.policies.balanced import assign_files

        files = table(n)
        form: Any = TextLines() if what == "text" else TFRecords()
        begun = perf_counter()
        dealt = assign_files(files, form, WORKERS)
        first = perf_counter() - begun  # of this process, with what is only loaded then

        def plan() -> None:
            assign_files(files, form, WORKERS)

        def share() -> None:
            dealt.share(WORKERS // 2)

        def facts() -> dict[str, float]:
            tracemalloc.start()
            again = assign_files(files, form, WORKERS)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            most = int(again.loads.argmax())
            begin = perf_counter()
            mine = again.share(most)
            seconds = perf_counter() - begin
            arrays = (mine.file, mine.start, mine.stop, mine.rows, mine.nbytes, mine.files.sizes, mine.files.names.data)
            return {
                "ms for the first plan": first * 1e3,
                "MB at most": peak / 1e6,
                "ms for a share": seconds * 1e3,
                "KB of a share": sum(array.nbytes for array in arrays) / 1e3,
                "largest load / mean": float(again.loads.max() / again.loads.mean()),
            }

        return Work(share if what == "share" else plan, lambda: "dealt", facts)

    def sorting() -> Work:
        files = table(n)

        def once() -> None:
            np.sort(files.sizes)

        return Work(once)

    return Case(name, {"share" if what == "share" else "plan": 1}, [
        Contender("distinput", "ours", ours), Contender("np.sort of the sizes", "limit", sorting),
    ])  # fmt: skip
