# SPDX-License-Identifier: Apache-2.0
"""Notices a fall of our speed: ratios beside limits of the machine, against those recorded: python benchmarks/guard.py.

Times differ from machine to machine and from minute to minute, so none is looked at: ours and the limit take turns in one
process, and what counts is the median of the ratios of the rounds. A ratio has fallen when it is less than half of the
recorded one, in several measurements of more and more rounds; a machine that is busy for a while spoils one of them.
"""

import argparse
import gc
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.harness import Work, find_case, timed

__all__ = ["GUARDED", "Guarded", "fallen", "ratio", "recorded"]

RECORDED = Path(__file__).resolve().parent / "recorded.json"
SCALE = 0.05
LEAST_SECONDS = 0.01
ROUNDS = (5, 15, 45)


@dataclass(frozen=True)
class Guarded:
    """A case and the limit whose ratio is watched.

    Args:
      benchmark: its name.
      case: one of its cases.
      limit: one of the case's limits.
    """

    benchmark: str
    case: str
    limit: str

    def __str__(self) -> str:
        return f"{self.benchmark}: {self.case}: {self.limit}"


GUARDED = (
    Guarded("range_batch", "batch(32)", "slice of an array"),
    Guarded("range_batch", "batch(1024)", "arange, rows"),
    Guarded("rebatch", "owned copies, side by side", "memcpy"),
    Guarded("distribute", "views", "plain slices"),
    Guarded("shuffle", "buffer", "permutation + take"),
    Guarded("shuffle", "global", "permutation + take"),
    Guarded("tfrecord_example", "fixed length", "read + crc32c"),
    Guarded("text_lines", "byte spans", "read"),
    Guarded("parquet", "numbers", "read_row_group"),
    Guarded("map_chain", "map_rows", "numpy on blocks"),
    Guarded("padded_batch", "sequences in memory", "memcpy of the values, warm, and zeros"),
    Guarded("random_access", "npy", "permutation + take of mapped arrays"),
)


@contextmanager
def loaded(guarded: Guarded) -> Iterator[tuple[Work, Work]]:
    """Ours and the limit, ready in this process; both have delivered the same values once."""
    module = importlib.import_module(f"benchmarks.{guarded.benchmark}")
    with tempfile.TemporaryDirectory(prefix="distinput-guard-") as made:
        folder = Path(made)
        module.prepare(folder, SCALE)
        case = find_case(module, guarded.case, folder, SCALE)
        (limit,) = [contender for contender in case.contenders if contender.name == guarded.limit]
        ours, theirs = case.ours.load(), limit.load()
        sums = {work.check() for work in (ours, theirs) if work.check is not None}
        if len(sums) != 1:
            raise AssertionError(f"{guarded}: ours and the limit deliver other values")
        yield ours, theirs


def ratio(ours: Work, limit: Work, rounds: int) -> float:
    """Their time / our time: the median over rounds in which both take turns."""
    found, frozen = [], gc.get_freeze_count()
    gc.freeze()  # or each collection between rounds would look through all that a process of many tests holds
    try:
        for _ in range(rounds):
            mine = timed(ours, LEAST_SECONDS).seconds
            found.append(timed(limit, LEAST_SECONDS).seconds / mine)
    finally:
        if not frozen:  # else somebody wants what is old to stay out of collections
            gc.unfreeze()
    return median(found)


def fallen(ours: Work, limit: Work, before: float) -> float | None:
    """The ratio, if it is less than half of what it was before however often it is measured; else None."""
    best = 0.0
    for rounds in ROUNDS:
        best = max(best, ratio(ours, limit, rounds))
        if best >= before / 2:
            return None
    return best


def recorded() -> dict[str, float]:
    """The ratio of each guarded case, as it was recorded."""
    found: dict[str, float] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print each ratio beside the recorded one, or record them; the exit status is 1 if one has fallen by half."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="what is measured now is what must not fall by half")
    given = parser.parse_args(arguments)
    os.environ["DISTINPUT_KERNELS"] = "compiled"
    before = {} if given.record else recorded()
    found, falls = {}, 0
    for guarded in GUARDED:
        name = str(guarded)
        with loaded(guarded) as (ours, limit):
            found[name] = round(ratio(ours, limit, ROUNDS[-1]), 3)
            fell = name in before and found[name] < before[name] / 2 and fallen(ours, limit, before[name]) is not None
        was = f", recorded {before[name]:g}x" if name in before else ""
        print(f"{guarded}: {found[name]:g}x{was}{', fallen by half' if fell else ''}", flush=True)
        falls += fell
    if given.record:
        RECORDED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 1 if falls else 0


if __name__ == "__main__":
    sys.exit(main())
