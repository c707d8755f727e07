# SPDX-License-Identifier: Apache-2.0
"""Measures distinput beside limits of the machine and beside its peers: python benchmarks/run.py [name ...] [--quick]."""

import argparse
import dataclasses
import importlib
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.harness import LEAST_SECONDS, Case, machine, measure, missing_packages, summary, table

BENCHMARKS = (
    "range_batch",
    "rebatch",
    "distribute",
    "lockstep",
    "tfrecord_example",
    "shuffle",
    "text_lines",
    "parquet",
    "padded_batch",
    "shard_plan",
    "state",
    "import_time",
    "map_chain",
)
RESULTS = Path(__file__).resolve().parent / "results"
QUICK = 0.1


def without_missing(case: Case, wants_peers: bool) -> tuple[Case, set[str]]:
    """The case with those contenders that can take part, and the packages that the others lack."""
    missing: set[str] = set()
    kept = []
    for contender in case.contenders:
        if contender.kind == "peer" and not wants_peers:
            continue
        lacks = missing_packages(contender)
        missing.update(lacks)
        if not lacks:
            kept.append(contender)
    return dataclasses.replace(case, contenders=kept), missing


def run(
    name: str, scale: float, rounds: int, least: float, wants_peers: bool = True, only: str = ""
) -> tuple[dict[str, Any], set[str]]:
    """One benchmark: its result as plain JSON, and the packages of the peers that were left out."""
    module = importlib.import_module(f"benchmarks.{name}")
    absent: set[str] = set()
    results = []
    with tempfile.TemporaryDirectory(prefix="distinput-benchmark-") as made:
        folder = Path(made)
        module.prepare(folder, scale)
        for case in module.cases(folder, scale):
            if only not in case.name:
                continue
            kept, missing = without_missing(case, wants_peers)
            absent |= missing
            results.append(measure(module.__name__, kept, folder, scale, rounds, least, _progress))
            _progress("")
    for result in results:
        result["summary"] = summary(result)
    return {"benchmark": name, "question": module.QUESTION, "machine": machine(), "results": results}, absent


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks named, print their tables and write their results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(BENCHMARKS)}; all when left out")
    parser.add_argument("--rounds", type=int, default=5, help="counted rounds")
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK:g} of the data and of the least time, 3 rounds at most"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="of the data; ratios of small data mean little")
    parser.add_argument("--case", default="", help="only cases whose names contain this")
    parser.add_argument("--no-peers", action="store_true", help="only the limits of the machine")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the JSON files")
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    if given.rounds < 1 or given.scale <= 0:
        parser.error("--rounds must be at least 1 and --scale above 0")
    share = given.scale * (QUICK if given.quick else 1)
    rounds = min(3, given.rounds) if given.quick else given.rounds
    absent: set[str] = set()
    given.results.mkdir(parents=True, exist_ok=True)
    for name in given.names or BENCHMARKS:
        result, missing = run(name, share, rounds, LEAST_SECONDS * min(1.0, share), not given.no_peers, given.case)
        absent |= missing
        (given.results / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print(table(f"{name}: {result['question']}", result["results"]), end="\n\n", flush=True)
    for package in sorted(absent):
        print(
            f"{package} is not installed, so its figures are left out; `pip install -e '.[bench]'` installs the peers"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
