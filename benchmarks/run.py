# SPDX-License-Identifier: Apache-2.0
"""Measures distinput beside limits of the machine and beside its peers: python benchmarks/run.py [name ...] [--quick]."""

import argparse
import dataclasses
import importlib
import json
import shlex
import sys
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.figures import summary, table
from benchmarks.harness import LEAST_SECONDS, BenchmarkError, Case, measure, missing_packages
from benchmarks.host import machine

BENCHMARKS = (
    "range_batch",
    "rebatch",
    "distribute",
    "lockstep",
    "coordinator",
    "service",
    "tfrecord_example",
    "sequence_example",
    "shuffle",
    "shuffle_memory",
    "mixture",
    "mixture_memory",
    "random_access",
    "text_lines",
    "csv_jsonl",
    "sql",
    "images",
    "tar",
    "side_index",
    "parquet",
    "remote",
    "padded_batch",
    "ragged_batch",
    "pack",
    "token_batches",
    "shard_plan",
    "state",
    "locate",
    "import_time",
    "command_line",
    "memory",
    "map_chain",
    "vectorized_map",
    "parallel_map",
    "prefetch",
    "growth",
    "tpu_strategy",
    "feeds",
    "save_load",
    "outside",
    "folders",
    "chats",
    "gpu",
)
WHEN_NAMED = {"gpu"}
"""Measured only where they are named: elsewhere they say nothing of a GPU."""
RESULTS = Path(__file__).resolve().parent / "results"
QUICK = 0.1
ROUNDS = 5


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


@dataclass(frozen=True)
class Plan:
    """How to measure.

    Args:
      scale: of the data.
      rounds: counted ones; with `minutes`, at most.
      least: seconds that a contender fills in a round.
      peers: with them, or with the limits of the machine alone.
      only: cases whose names contain this.
      until: when the clock `perf_counter` shows this, all is to be over, as far as the fewest rounds allow.
    """

    scale: float
    rounds: int
    least: float
    peers: bool = True
    only: str = ""
    until: float | None = None

    def share(self, left: int) -> "Plan":
        """The plan for one of `left` equal parts of the time."""
        if self.until is None:
            return self
        return dataclasses.replace(self, until=perf_counter() + (self.until - perf_counter()) / max(1, left))


def run(name: str, plan: Plan) -> tuple[dict[str, Any], set[str]]:
    """One benchmark: its result as plain JSON, and the packages of the peers that were left out."""
    module = importlib.import_module(f"benchmarks.{name}")
    absent: set[str] = set()
    failed: list[str] = []
    results = []
    with tempfile.TemporaryDirectory(prefix="distinput-benchmark-") as made:
        folder = Path(made)
        module.prepare(folder, plan.scale)
        cases = [case for case in module.cases(folder, plan.scale) if plan.only in case.name]
        for index, case in enumerate(cases):
            kept, missing = without_missing(case, plan.peers)
            absent |= missing
            if len(kept.contenders) == 1 < len(case.contenders) and not kept.ours.most:
                continue  # a time beside nothing says nothing
            until = plan.share(len(cases) - index).until
            try:
                results.append(
                    measure(module.__name__, kept, folder, plan.scale, plan.rounds, plan.least, _progress, until)
                )
            except BenchmarkError as error:
                failed.append(f"{name}, {case.name}: {error}")
            _progress("")
    for result in results:
        result["summary"] = summary(result)
    return {
        "benchmark": name,
        "question": module.QUESTION,
        "notes": getattr(module, "NOTES", ""),
        "date": datetime.now(UTC).isoformat(timespec="minutes"),
        "machine": machine(),
        "results": results,
        "failed": failed,
    }, absent


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def command(name: str, given: argparse.Namespace) -> str:
    """How to measure this again."""
    options = {"quick": given.quick, "scale": given.scale, "rounds": given.rounds, "minutes": given.minutes}
    options |= {"case": given.case, "no-peers": given.no_peers}
    usual = {"quick": False, "scale": 1.0, "rounds": ROUNDS, "minutes": None, "case": "", "no-peers": False}
    words = [
        f"--{key}" if value is True else f"--{key} {shlex.quote(str(value))}"
        for key, value in options.items()
        if value != usual[key]
    ]
    return " ".join(["python benchmarks/run.py", name, *words])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks named, print their tables and write their results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"of {', '.join(BENCHMARKS)}; all but gpu when left out"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="counted rounds; with --minutes, at most")
    parser.add_argument("--minutes", type=float, help="about how long all may take, beside the fewest rounds")
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
    until = None if given.minutes is None else perf_counter() + 60 * given.minutes
    least = LEAST_SECONDS * min(1.0, share)
    plan = Plan(share, rounds, least, not given.no_peers, given.case, until)
    absent: set[str] = set()
    failed: list[str] = []
    names = given.names or [name for name in BENCHMARKS if name not in WHEN_NAMED]
    given.results.mkdir(parents=True, exist_ok=True)
    for index, name in enumerate(names):
        try:
            result, missing = run(name, plan.share(len(names) - index))
        except Exception as error:  # noqa: BLE001 - what the other benchmarks find must not be lost
            traceback.print_exc()
            failed.append(f"{name}: {type(error).__name__}: {error}")
            continue
        absent |= missing
        failed += result["failed"]
        result["command"] = command(name, given)
        (given.results / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print(table(f"{name}: {result['question']}", result["results"]), end="\n\n", flush=True)
    for package in sorted(absent):
        print(f"{package} is not installed, so its figures are left out; `make peers` installs it")
    for failure in failed:
        print(f"failed: {failure}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
