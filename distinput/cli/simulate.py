# SPDX-License-Identifier: Apache-2.0
"""`distinput simulate`: how fast a job of many workers would be, and what would limit it, before any job runs."""

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from distinput.cli.arguments import add_json, at_least, numbers, seconds, suggest
from distinput.cli.commands import FINE
from distinput.cli.dataset_commands import add_policy, add_replicas, policy_of
from distinput.cli.loading import add_dataset, load_dataset, user_code
from distinput.cli.output import print_json, print_table
from distinput.files.sink import Sink
from distinput.names.words import bytes_text, number_text, seconds_text
from distinput.reports.simulation import Machines, Simulation, StorageLimits, plot_of, simulate


class _Quantity:
    """The kind of an argument: a number with a unit.

    Args:
      units: what each is worth.
      example: how one is written.

    >>> _Quantity({"ms": 0.001, "s": 1.0}, "200ms")("200ms")
    0.2
    """

    def __init__(self, units: Mapping[str, float], example: str) -> None:
        self.units, self.example = units, example

    def __call__(self, text: str) -> float:
        match = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*(\S*)", text.strip())
        if match is None or match[2] not in self.units:
            known = ", ".join(unit for unit in self.units if unit)
            raise argparse.ArgumentTypeError(
                f"must be a number with one of {known}, such as {self.example}, got {text}"
            )
        return float(match[1]) * self.units[match[2]]

    def __repr__(self) -> str:
        return "quantity"  # argparse says "invalid quantity value"


_TIME = _Quantity({"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}, "200ms")
_BANDWIDTH = _Quantity(
    {
        **{f"{prefix}B/s": 1000.0**power for power, prefix in enumerate(("", "k", "M", "G", "T"))},
        **{f"{prefix}iB/s": 1024.0**power for power, prefix in enumerate(("K", "M", "G", "T"), 1)},
        **{f"{prefix}bit/s": 1000.0**power / 8 for power, prefix in enumerate(("", "k", "M", "G", "T"))},
    },
    "40Gbit/s",
)
_RATE = _Quantity({"/s": 1.0, "/min": 1 / 60}, "5500/s")
_PART = _Quantity({"%": 0.01, "": 1.0}, "1%")


def simulate_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput simulate`."""
    parser.description = (
        "Say how fast a job would be with W workers, and what would limit it. Who reads what is the plan of the job; what a "
        "row costs is measured here, by iterating the dataset for a few seconds. Several numbers of workers are compared in "
        "a table."
    )
    add_dataset(parser)
    text = "how many workers (default: 1)"
    parser.add_argument("--workers", type=numbers, default=[1], metavar="W[,W...]", help=text)
    add_replicas(parser)
    text = "time of a step on the devices without its input, such as 200ms"
    parser.add_argument("--step-time", type=_TIME, required=True, metavar="T", help=text)
    add_policy(parser)
    parser.add_argument("--rows", type=at_least(1), metavar="N", help="rows of a pass, where files do not tell")
    text = "stop the measured pass after S seconds (default: 3)"
    parser.add_argument("--seconds", type=seconds, default=3.0, metavar="S", help=text)
    storage = parser.add_argument_group("the storage, which all workers share")
    text = "such as 40Gbit/s or 500MB/s (default: no limit)"
    storage.add_argument("--storage-bandwidth", type=_BANDWIDTH, metavar="B", help=text)
    text = "wait for each request, such as 20ms (default: none)"
    storage.add_argument("--latency", type=_TIME, default=0.0, metavar="T", help=text)
    text = "requests of all workers, such as 5500/s (default: no limit)"
    storage.add_argument("--request-limit", type=_RATE, metavar="N", help=text)
    at_once = StorageLimits.at_once
    text = f"requests that a worker makes at once (default: {at_once})"
    storage.add_argument("--requests-at-once", type=at_least(1), default=at_once, metavar="N", help=text)
    machines = parser.add_argument_group("the workers")
    machines.add_argument("--cores", type=float, metavar="N", help="cores of each worker (default: as here)")
    text = "input workers that make the input of all workers (default: 0)"
    machines.add_argument("--input-workers", type=at_least(0), default=0, metavar="N", help=text)
    text = "part of the inputs that take ten times as long, such as 0.01 (default: 0)"
    machines.add_argument("--slow", type=_PART, default=0.0, metavar="P", help=text)
    text = "time between two failures, such as 30min (default: none fails)"
    machines.add_argument("--kill-every", type=_TIME, metavar="T", help=text)
    text = "time until training continues after a failure (default: 1min)"
    machines.add_argument("--restart", type=_TIME, default=Machines.restart, metavar="T", help=text)
    text = "time between two checkpoints (default: 10min)"
    machines.add_argument("--checkpoint-every", type=_TIME, default=Machines.checkpoint_every, metavar="T", help=text)
    drawn = parser.add_argument(
        "--svg", type=Path, metavar="FILE", help="also draw the time of a pass over the number of workers"
    )
    suggest(drawn, files=("svg",))
    add_json(parser)


def simulate_command(given: argparse.Namespace) -> int:
    """Simulate, and say."""
    dataset = load_dataset(given.dataset)
    storage = StorageLimits(given.storage_bandwidth, given.latency, given.request_limit, given.requests_at_once)
    machines = Machines(
        given.cores, given.input_workers, given.slow, given.kill_every, given.restart, given.checkpoint_every
    )
    with user_code(given.dataset):
        simulations = simulate(
            dataset, given.workers, given.replicas, step_seconds=given.step_time, storage=storage, machines=machines,
            policy=policy_of(given), rows=given.rows, seconds=given.seconds,
        )  # fmt: skip
    if given.svg is not None:
        with Sink(str(given.svg)) as sink:
            sink.write(f"{plot_of(simulations)}\n".encode())
    if given.json:
        print_json([told.to_dict() for told in simulations])
    elif len(simulations) == 1:
        print(simulations[0])
    else:
        print_table(
            ("workers", "policy", "steps", "a pass", "steps/s", "limit", "without it", "requests/s", "bytes/s", "skew"),
            [*map(_line, simulations)],
        )
        print("\nwithout it: the pass if that limit were gone. skew: the most rows of a worker, in means.")
    return FINE


def _line(told: Simulation) -> Sequence[object]:
    read = ("?", "?")
    if told.bytes_per_second is not None:
        read = (number_text(told.requests_per_second), bytes_text(told.bytes_per_second))
    return (
        told.workers, told.policy, told.steps, seconds_text(told.seconds), number_text(told.steps_per_second), told.limit,
        seconds_text(told.without_limit), *read, f"{told.skew:.2f}",
    )  # fmt: skip
