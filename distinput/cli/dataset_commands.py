# SPDX-License-Identifier: Apache-2.0
"""The commands over datasets of a user's program: what they read, how fast they are, and what each step has."""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from distinput.cli.arguments import add_json, at_least, numbers, seconds, suggest
from distinput.cli.commands import FAILED, FINE
from distinput.cli.files import files_of
from distinput.cli.loading import WHERE, add_dataset, is_name, load, load_dataset, user_code
from distinput.cli.output import print_json, print_table
from distinput.cli.visible import visible
from distinput.data.dataset import Dataset
from distinput.data.explanation import explanation_of
from distinput.data.progress import ProgressBar
from distinput.data.recording import recorded
from distinput.data.stats import SHORT
from distinput.errors import DistinputError, InvalidArgumentError
from distinput.files.sink import Sink
from distinput.names.lazy import later
from distinput.names.words import bytes_text, count_of, number_text, seconds_text
from distinput.plan.node import INFINITE
from distinput.plan.options import AutoShardPolicy, Policy
from distinput.reports import Graph, graph_of, mermaid_of, svg_of
from distinput.reports.bench import Bench, TriedChange, settled_bench, trials
from distinput.sharding.planning import shard_plan
from distinput.sharding.policies import policy_named
from distinput.sharding.shard_plan import LeastAndMost, PlanSummary, summary_of

if TYPE_CHECKING:
    from distinput.distribute import rehearsal
    from distinput.distribute.core import values as distributed_values
    from distinput.distribute.input import distributed_dataset
    from distinput.distribute.input.distributed_dataset import DistributedDataset
    from distinput.lineage import Located, Seen
else:
    # Strategies are for commands that look at a job.
    distributed_dataset = later("distinput.distribute.input.distributed_dataset")
    rehearsal = later("distinput.distribute.rehearsal")  # the same
    distributed_values = later("distinput.distribute.core.values")  # the same


# ----------------------------------------------------------------------------
# `distinput plan`: who reads what, for W workers of R replicas, before any job runs.
# ----------------------------------------------------------------------------


_BATCH = 256


def plan_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput plan`."""
    parser.description = (
        "Say which worker will read which part of which file, why, and in how many steps, before any job runs; no record is "
        "read. Several numbers of workers are compared in a table, a line each."
    )
    text = f"files, or one dataset by {WHERE}; it makes global batches"
    suggest(parser.add_argument("sources", nargs="+", metavar="FILE|MODULE:ds", help=text), files=("*",))
    text = "how many workers; several are compared (default: 2)"
    parser.add_argument("--workers", type=numbers, default=[2], metavar="W[,W...]", help=text)
    add_replicas(parser)
    text = f"rows of a global batch (default: {_BATCH} for files; a dataset makes its own)"
    parser.add_argument("--batch", type=at_least(1), metavar="N", help=text)
    text = "format of the files; by default their names or first bytes tell it"
    parser.add_argument("--format", metavar="NAME", help=text)
    add_policy(parser)
    add_json(parser)


def add_replicas(parser: argparse.ArgumentParser) -> None:
    """Let a command be told how many replicas a worker has."""
    text = "replicas of each worker (default: 1)"
    parser.add_argument("--replicas", type=at_least(1), default=1, metavar="R", help=text)


def add_policy(parser: argparse.ArgumentParser) -> None:
    """Let a command be asked about another policy."""
    known = [policy.name.lower() for policy in AutoShardPolicy]
    text = f"how the data is divided: {', '.join(known)}, or a policy of your own (default: as the options of the dataset say)"
    suggest(parser.add_argument("--policy", metavar="NAME", help=text), words=known)


def policy_of(given: argparse.Namespace) -> Policy | None:
    """The policy that was asked about."""
    return None if given.policy is None else policy_named(given.policy.upper())


def plan_command(given: argparse.Namespace) -> int:
    """Print a plan, or several side by side."""
    dataset = _dataset(given)
    policy = policy_of(given)
    with user_code(" ".join(given.sources)):
        plans = [shard_plan(dataset.node, workers, given.replicas, policy) for workers in given.workers]
        if len(plans) == 1:
            print_json(plans[0].to_dict()) if given.json else print(plans[0])
            return FINE
        told = [summary_of(plan) for plan in plans]
    if given.json:
        print_json([one.to_dict() for one in told])
        return FINE
    print_table(
        ("workers", "policy", "reads", "steps", "files", "rows", "bytes", "balance", "idle"), [*map(_plan_line, told)]
    )
    print(f"\nper worker: the least and the most. {_advice(told)}")
    return FINE


def _dataset(given: argparse.Namespace) -> Dataset[Any]:
    names = [word for word in given.sources if is_name(word)]
    if names and len(given.sources) > 1:
        raise InvalidArgumentError(f"plan: give one dataset, or files, got {' '.join(given.sources)}")
    if names:
        dataset = load_dataset(names[0])
        return dataset if given.batch is None else dataset.batch(given.batch)
    programs = [word for word in given.sources if word.endswith(".py")]
    if programs and given.format is None:
        raise InvalidArgumentError(
            f"plan: {programs[0]} is a program; name a dataset in it, such as {programs[0]}:ds, or say --format text"
        )
    return files_of(given.sources, given.format).dataset().batch(given.batch or _BATCH)


def _plan_line(told: PlanSummary) -> Sequence[object]:
    steps = {None: "agreed", -1: "endless"}.get(told.steps, told.steps)
    balance = "?" if told.balance is None else f"{100 * told.balance:.0f} %"
    idle = "?" if told.idle is None else told.idle
    spans = [_words(span) for span in (told.files, told.rows, told.bytes)]
    return (told.num_workers, told.policy, told.reads, steps, *spans, balance, idle)


def _words(span: LeastAndMost) -> str:
    if span is None:
        return "?"
    least, most = span
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _advice(told: Sequence[PlanSummary]) -> str:
    """What the table says, in a sentence."""
    idle = [one for one in told if one.idle]
    whole = [one for one in told if one.reads == "whole files"]
    uneven = [one for one in told if one.balance is not None and one.balance < _EVEN]
    if idle:
        return f"Of {idle[0].num_workers} workers, {idle[0].idle} have no rows: fewer workers would do the same work."
    if whole:
        return "Where `reads` is `whole files`, every worker reads what others deliver; --policy balanced avoids it."
    if uneven:
        return (
            f"With {uneven[0].num_workers} workers the busiest one reads {1 / (uneven[0].balance or 1):.1f} times the mean: "
            "--policy balanced, or smaller files, would even it out."
        )
    return "The work is even."


_EVEN = 0.8
"""Below this balance, an uneven plan is worth a sentence."""


# ----------------------------------------------------------------------------
# `distinput explain`: a pipeline as described, the rules that changed it, and as it runs.
# ----------------------------------------------------------------------------


def explain_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput explain`."""
    add_dataset(parser)
    parser.add_argument("--workers", type=at_least(1), metavar="W", help="also say what each of W workers reads")
    add_replicas(parser)
    add_policy(parser)
    add_json(parser)


def explain_command(given: argparse.Namespace) -> int:
    """Explain."""
    dataset = load_dataset(given.dataset)
    with user_code(given.dataset):
        told = explanation_of(dataset.node, dataset._runs().node, given.workers, given.replicas, policy_of(given))
    print_json(told.to_dict()) if given.json else print(told)
    return FINE


# ----------------------------------------------------------------------------
# `distinput bench`: how fast a dataset is, what it waits for, and what would change that.
# ----------------------------------------------------------------------------


def bench_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput bench`."""
    parser.description = (
        "Iterate a dataset, do nothing with its elements, and say how fast it is, which step the others wait for, and what "
        "could be changed."
    )
    add_dataset(parser)
    text = "stop after S seconds (default: 5); 0: never"
    parser.add_argument("--seconds", type=seconds, default=5.0, metavar="S", help=text)
    parser.add_argument("--elements", type=at_least(1), metavar="N", help="stop after N elements")
    text = "seconds after the first element that do not count (default: 0.5)"
    parser.add_argument("--warm-up", type=seconds, default=0.5, metavar="S", help=text)
    text = "try changes of the pipeline, and say how much faster each makes it"
    parser.add_argument("--try", dest="tries", action="store_true", help=text)
    text = "also record another pass, and write a page about it"
    suggest(parser.add_argument("--html", type=Path, metavar="FILE", help=text), files=("html",))
    text = "also record another pass, and write it as a timeline for Perfetto"
    suggest(parser.add_argument("--trace", type=Path, metavar="FILE", help=text), files=("json",))
    add_json(parser)


def bench_command(given: argparse.Namespace) -> int:
    """Measure, and say."""
    dataset = load_dataset(given.dataset)
    longest = given.seconds or None
    with user_code(given.dataset):
        measured = dataset if given.elements is None else dataset.take(given.elements)
        with ProgressBar(*measured.cardinality_bounds(), leave=False) as bar:
            told = settled_bench(dataset, longest, given.elements, given.warm_up, watch=bar.reach)
        tried = list(trials(dataset, told, min(longest or 5.0, 5.0))) if given.tries else []
        if tried:
            told = told.with_trials()
        _write(dataset, given, longest)
    if given.json:
        print_json({**told.to_dict(), "trials": [one.to_dict() for one in tried]})
    else:
        _print_bench(told, tried)
    return FINE


def _write(dataset: Dataset[Any], given: argparse.Namespace, longest: float | None) -> None:
    """The page and the timeline, of a pass that is recorded."""
    if given.html is None and given.trace is None:
        return
    recording = recorded(dataset, longest, given.elements)
    if given.html is not None:
        recording.write_report(given.html)
    if given.trace is not None:
        recording.write_chrome_trace(given.trace)


def _print_bench(told: Bench, tried: list[TriedChange]) -> None:
    rates = [(told.elements_per_second, "elements"), (told.rows_per_second, "rows")]
    parts = [f"{number_text(rate)} {what}/s" for rate, what in rates if rate is not None]
    if told.bytes_per_second:
        parts.append(f"about {bytes_text(told.bytes_per_second)}/s")
    if told.first_seconds is not None:
        parts.append(f"the first element after {seconds_text(told.first_seconds)}")
    end = "all" if told.ended else "broken off"
    print(", ".join(parts) or "no elements")
    print(f"{told.elements:,} elements ({end}) in {seconds_text(told.seconds)}\n")
    print(told.stats)
    advice = [text for text in told.changes if text != told.bottleneck]
    if told.ended and told.seconds < SHORT:
        advice.insert(0, "A pass as short as this says little about the rate.")
    if advice:
        print("\n" + "\n".join(advice))
    if tried:
        print("\ntried:")
    for one in sorted(tried, key=lambda one: -(one.times or 0.0)):
        print(f"  {one}")
    if tried and not any(one.helps for one in tried):
        print("Nothing that was tried helps.")


# ----------------------------------------------------------------------------
# Steps of a job, for the commands that look at one: which dataset, cut for how many workers and replicas.
# ----------------------------------------------------------------------------


T = TypeVar("T")


def add_job(parser: argparse.ArgumentParser) -> None:
    """Let a command take a dataset, the job that it was distributed for, and a pass."""
    add_dataset(parser)
    parser.add_argument("--workers", type=at_least(1), metavar="W", help="workers of the job (default: 1)")
    parser.add_argument("--replicas", type=at_least(1), metavar="R", help="replicas of each worker (default: 1)")
    text = "the pass over the dataset, from 0 (default: 0)"
    parser.add_argument("--epoch", type=at_least(0), default=0, metavar="N", help=text)


def on_workers(given: argparse.Namespace, body: "Callable[[DistributedDataset], T]") -> list[T]:
    """Ask every worker of the job something.

    Args:
      given: the words of the command line.
      body: what is asked.

    Returns:
      The answers, worker by worker.

    Raises:
      InvalidArgumentError: what is named is not a dataset; there is no such step, replica, file or worker.
    """
    dataset: Any = load(given.dataset)
    cut = isinstance(dataset, distributed_dataset.DistributedDataset)
    if not cut and not isinstance(dataset, Dataset):
        raise InvalidArgumentError(
            f"{given.dataset}: it must be a Dataset or a DistributedDataset, or a function that returns one, "
            f"got {type(dataset).__name__}"
        )
    if cut and (given.workers, given.replicas) != (None, None):
        raise InvalidArgumentError(
            f"{given.dataset} is distributed already, as its strategy has it: leave out --workers and --replicas, or name the "
            "dataset that was distributed"
        )
    with user_code(given.dataset):
        try:
            if cut:
                return [body(dataset)]
            return rehearsal.rehearse(dataset, given.workers or 1, given.replicas or 1, lambda d, _: body(d))
        except DistinputError:
            raise
        except (IndexError, ValueError) as error:
            raise InvalidArgumentError(f"{given.dataset}: {error}") from error


# ----------------------------------------------------------------------------
# `distinput locate`: from a step to the records that it is made of, and from a record to its steps.
# ----------------------------------------------------------------------------


def locate_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput locate`."""
    parser.description = (
        "With --step: the file and the record of every row of a step. With --file and --record: the steps, replicas and rows "
        "in which a record is seen. Both are computed from positions; no record is read for it."
    )
    add_job(parser)
    parser.add_argument("--step", type=at_least(0), metavar="N", help="the step of the pass, from 0")
    text = "only the rows of replica K, numbered over all workers (default: all)"
    parser.add_argument("--replica", type=at_least(0), metavar="K", help=text)
    suggest(
        parser.add_argument("--file", metavar="FILE", help="the file of the record, as the dataset names it"),
        files=("*",),
    )
    parser.add_argument("--record", type=at_least(0), metavar="N", help="the record in the file, from 0")
    text = "look for the record in the first N steps only (default: in all)"
    parser.add_argument("--first", type=at_least(1), metavar="N", help=text)
    text = "count the records of files that do not tell, by reading them once"
    parser.add_argument("--read", action="store_true", help=text)
    add_json(parser)


def locate_command(given: argparse.Namespace) -> int:
    """Locate."""
    by_record = given.file is not None and given.record is not None
    one_of_them = (given.file is None) != (given.record is None)
    if one_of_them or by_record == (given.step is not None):
        raise InvalidArgumentError("locate: give --step N, or --file FILE and --record N")
    passes = {"epoch": given.epoch, "read": given.read}
    if not by_record:
        _print_located(given, on_workers(given, lambda d: d.locate(given.step, given.replica, **passes))[0])
        return FINE
    steps = None if given.first is None else range(given.first)

    def seen(distributed: "DistributedDataset") -> "tuple[tuple[Seen, ...], int]":
        found = distributed.when(given.file, given.record, steps=steps, **passes)
        return found, INFINITE if found else distributed._records(given.read).records_of(given.file)

    found, count = on_workers(given, seen)[0]
    _print_seen(given, found, count)
    return FINE if found else FAILED


def _print_located(given: argparse.Namespace, found: "Located") -> None:
    if given.json:
        print_json(found.to_dict())
        return
    rows = [(place.replica, place.row, place.file, place.record) for place in found]
    print_table(("replica", "row", "file", "record"), rows)
    for sentence in found.assumes:
        print(f"if {sentence}")


def _print_seen(given: argparse.Namespace, found: "tuple[Seen, ...]", count: int) -> None:
    if given.json:
        print_json([seen._asdict() for seen in found])
        return
    if found:
        print_table(("epoch", "step", "replica", "row"), found)
    elif 0 <= count <= given.record:
        print(
            f"there is no record {given.record:,}: {visible(given.file)} has {count_of(count, 'record')}, numbered from 0 on"
        )
    else:
        before = "" if given.first is None else f" before step {given.first:,}"
        print(f"record {given.record:,} of {visible(given.file)} is in no step of epoch {given.epoch}{before}")


# ----------------------------------------------------------------------------
# `distinput replay`: the batches of a step again.
# ----------------------------------------------------------------------------


def replay_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput replay`."""
    parser.description = (
        "Print what each replica of a job got in a step, without the job, and without the steps before it where rows can be "
        "counted. In a notebook, `distributed.replay(step)` returns it."
    )
    add_job(parser)
    parser.add_argument("--step", type=at_least(0), required=True, metavar="N", help="the step of the pass, from 0")
    text = "only the batch of replica K, numbered over all workers (default: all)"
    parser.add_argument("--replica", type=at_least(0), metavar="K", help=text)
    add_json(parser)


def replay_command(given: argparse.Namespace) -> int:
    """Replay."""

    def parts(distributed: "DistributedDataset") -> tuple[object, ...]:
        replicas = distributed._source.terms.replicas.count
        return distributed_values.local_results(distributed.replay(given.step, epoch=given.epoch), replicas)

    found = [part for worker in on_workers(given, parts) for part in worker]
    if given.replica is not None and given.replica >= len(found):
        raise InvalidArgumentError(
            f"replay: there are {len(found)} replicas, numbered from 0, got replica {given.replica}"
        )
    chosen = range(len(found)) if given.replica is None else [given.replica]
    if given.json:
        print_json([{"replica": number, "batch": found[number]} for number in chosen])
        return FINE
    for number in chosen:
        print(f"replica {number}:\n{found[number]}")
    return FINE


# ----------------------------------------------------------------------------
# `distinput graph`: a picture of a pipeline.
# ----------------------------------------------------------------------------


_KINDS = {".svg": "svg", ".mmd": "mermaid", ".mermaid": "mermaid", ".md": "markdown", ".json": "json"}


def graph_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput graph`."""
    add_dataset(parser)
    text = f"where to write; the end of its name says what: {', '.join(_KINDS)} (default: Mermaid, to standard output)"
    suggest(parser.add_argument("-o", "--output", type=Path, metavar="FILE", help=text), files=("*",))
    text = "what to write, whatever the name of the file"
    parser.add_argument("--kind", choices=sorted(set(_KINDS.values())), help=text)
    text = "draw the steps that run, after the rules, and not those described"
    parser.add_argument("--running", action="store_true", help=text)
    parser.add_argument("--json", action="store_const", dest="kind", const="json", help="the same as --kind json")


def graph_command(given: argparse.Namespace) -> int:
    """Draw."""
    dataset = load_dataset(given.dataset)
    with user_code(given.dataset):
        graph = graph_of(dataset, running=given.running)
    kind = given.kind or ("mermaid" if given.output is None else _kind_of(given.output))
    text = _WRITERS[kind](graph)
    if given.output is None:
        print(text)
    else:
        with Sink(str(given.output)) as sink:
            sink.write(f"{text}\n".encode())
    return FINE


def _kind_of(path: Path) -> str:
    kind = _KINDS.get(path.suffix.lower())
    if kind is None:
        raise InvalidArgumentError(f"{path}: its name must end in one of {', '.join(_KINDS)}, or say --kind")
    return kind


_WRITERS: dict[str, Callable[[Graph], str]] = {
    "json": lambda graph: json.dumps(asdict(graph)),
    "markdown": lambda graph: f"```mermaid\n{mermaid_of(graph)}\n```",
    "mermaid": mermaid_of,
    "svg": svg_of,
}
