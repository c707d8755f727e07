# SPDX-License-Identifier: Apache-2.0
"""How fast distinput is beside its peers: the overview of docs/performance.md as a plot, all rows of it."""

import re
from dataclasses import dataclass
from math import log10
from pathlib import Path

from pictures.drawing import KINDS, Picture

__all__ = ["Range", "draw", "ranges"]

PAGE = Path(__file__).resolve().parents[1] / "performance.md"
ROW = re.compile(r"^\| \[(\w+)\]\(#\w+\) \| ([^|]+) \| \d+ \| ([\d.,]+)x(?: to ([\d.,]+)x)? \|$", re.MULTILINE)

# What a benchmark measures, in a few words; one that is not here has its name.
WORDS = {
    "range_batch": "batches of numbers",
    "rebatch": "batches of another size",
    "distribute": "cutting batches for 8 replicas",
    "lockstep": "agreeing on the next step",
    "coordinator": "functions of a coordinator",
    "service": "batches from input workers",
    "outside": "cases of TensorFlow's benchmarks",
    "tfrecord_example": "TFRecord files, parsed",
    "shuffle": "shuffling",
    "shuffle_memory": "shuffling a million elements",
    "random_access": "global shuffle over files",
    "text_lines": "lines of text files",
    "parquet": "Parquet files",
    "padded_batch": "padding ragged rows",
    "state": "saving, restoring a position",
    "import_time": "import, and the first batch",
    "map_chain": "16 maps or filters in a row",
    "parallel_map": "a slow function, in parallel",
    "sequence_example": "SequenceExamples, parsed",
    "csv_jsonl": "CSV and JSON Lines",
    "sql": "rows of a SQL query",
    "images": "JPEG images, decoded",
    "tar": "samples in tar archives",
    "side_index": "lines of a shuffled file",
    "ragged_batch": "ragged batches",
    "pack": "packing sequences",
    "token_batches": "batches of so many tokens",
    "vectorized_map": "functions run on whole blocks",
    "feeds": "feeding PyTorch, JAX, Keras",
    "save_load": "saving, loading, caching",
    "mixture": "texts of 100 files, mixed",
    "folders": "folders of MDS and LitData",
    "mixture_memory": "memory of 100 files, mixed",
    "remote": "objects of a store",
    "chats": "chats, from files to tokens",
    "tpu_strategy": "steps over devices of JAX",
}
# The library that a peer of a benchmark belongs to, by how its name begins; what is left is another one, or written by hand.
LIBRARIES = {"tf": "TensorFlow", "tensorflow": "TensorFlow", "torch": "PyTorch", "grain": "Grain"}
LIBRARIES |= {"datasets": "Hugging Face datasets", "webdataset": "WebDataset", "DataLoader": "PyTorch"}
OTHERS = "others, or by hand"
LEFT, RIGHT, LINE, TOP = 226, 756, 13, 76


@dataclass(frozen=True)
class Range:
    """The lowest and the highest ratio of a library in a benchmark."""

    benchmark: str
    library: str
    low: float
    high: float


def ranges(page: str) -> list[Range]:
    """The rows of the overview, those of one library in one benchmark together."""
    found: dict[tuple[str, str], list[float]] = {}
    for benchmark, peer, *numbers in ROW.findall(page):
        library = LIBRARIES.get(re.split(r"\W", peer)[0], OTHERS)
        found.setdefault((benchmark, library), []).extend(float(n.replace(",", "")) for n in numbers if n)
    return [Range(*key, min(numbers), max(numbers)) for key, numbers in found.items()]


def draw() -> str:
    """The plot."""
    rows = ranges(PAGE.read_text(encoding="utf-8"))
    libraries = [
        name for name in dict.fromkeys([*LIBRARIES.values(), OTHERS]) if any(row.library == name for row in rows)
    ]
    kinds = dict(zip(libraries, KINDS, strict=False)) | {OTHERS: KINDS[-1]}
    benchmarks = [*dict.fromkeys(row.benchmark for row in rows)]
    bottom = TOP + sum(LINE * sum(row.benchmark == name for row in rows) + 10 for name in benchmarks)
    picture = Picture("Speed compared (right of 1×: distinput is faster)", 800, bottom + 44)
    powers = _powers(rows)

    def at(ratio: float) -> float:
        return LEFT + (log10(ratio) - powers[0]) / (powers[-1] - powers[0]) * (RIGHT - LEFT)

    picture.text(20, 26, "Speed compared (right of 1×: distinput is faster)", "ink strong")
    x = 20.0
    for name in libraries:
        picture.bar(x, 41, 14, 10, kinds[name])
        picture.text(x + 20, 50, name, "soft small")
        x += 44 + 7 * len(name)
    for power in powers:
        picture.line([(at(10**power), TOP - 8), (at(10**power), bottom)], "ink" if power == 0 else "edge")
        picture.text(at(10**power), bottom + 18, f"{10**power:,g}x", "soft small", "middle")
    picture.text(at(1) + 6, bottom + 34, "their time / our time", "soft small")
    y = float(TOP)
    for benchmark in benchmarks:
        inside = sorted(
            (row for row in rows if row.benchmark == benchmark), key=lambda row: libraries.index(row.library)
        )
        picture.text(LEFT - 12, y + LINE * len(inside) / 2 + 3, WORDS.get(benchmark, benchmark), "ink small", "end")
        for row in inside:
            first, last = at(row.low), at(row.high)
            picture.bar(round(first - 2, 1), y, round(last - first + 4, 1), LINE - 4, kinds[row.library])
            y += LINE
        y += 10
    return picture.svg()


def _powers(rows: list[Range]) -> range:
    low, high = log10(min(row.low for row in rows)), log10(max(row.high for row in rows))
    return range(min(0, int(low // 1)), int(-(-high // 1)) + 1)
