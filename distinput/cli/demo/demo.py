# SPDX-License-Identifier: Apache-2.0
"""`distinput demo`: shows the library at work on real files, step by step, and checks every promise on the way."""

import contextlib
import json
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from math import ceil
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import distinput as di
from distinput.cli.demo.program import (
    FORMATS,
    SPLITS,
    Digits,
    Pass,
    Softmax,
    evaluate,
    evaluation_batches,
    ids_of,
    mirrored,
    paths_of,
    train_epoch,
    training_batches,
    write_files,
)
from distinput.data.progress import ProgressBar
from distinput.kernels.kernel import KERNELS
from distinput.names.lazy import dataclass
from distinput.names.words import count_of

# ----------------------------------------------------------------------------
# The report that the demo prints: headings, facts and checks, for a terminal of 100 columns.
# ----------------------------------------------------------------------------


_WIDTH = 100
_NAMES = 26


class DemoReport:
    """Prints at once, and remembers the checks."""

    def __init__(self) -> None:
        self.checked = 0
        self.failed: list[str] = []

    def say(self, text: str) -> None:
        """Print a line at once, even if the output is redirected."""
        print(text, flush=True)

    def heading(self, text: str) -> None:
        """Begin a chapter."""
        self.say(f"\n{text}\n{'-' * len(text)}")

    def fact(self, name: str, value: str) -> None:
        """Print a name and a text."""
        lines = textwrap.wrap(value, _WIDTH - _NAMES - 2, break_long_words=False, break_on_hyphens=False)
        self.say(f"  {name:<{_NAMES}}" + f"\n{'':{_NAMES + 2}}".join(lines))

    def check(self, name: str, wrong: str, right: str) -> None:
        """Print a check; `wrong` describes the failure and is empty if the check passed."""
        self.checked += 1
        if wrong:
            self.failed.append(name)
        self.fact(name, f"NO: {wrong}" if wrong else f"yes, {right}")

    def table(self, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Print named rows of values, aligned to the right."""
        width = max(12, *(len(column) + 2 for column in columns))
        for name, values in (("", columns), *rows):
            self.say(f"  {name:<{_NAMES}}" + "".join(f"{value:>{width}}" for value in values))

    def text(self, lines: str) -> None:
        """Print lines unchanged, folded if they are too long."""
        for line in lines.splitlines():
            indent = " " * (len(line) - len(line.lstrip()) + 2)
            self.say(textwrap.fill(line.strip(), _WIDTH, initial_indent=indent, subsequent_indent=indent + "    "))

    def conclude(self, seconds: float) -> bool:
        """Print a summary; True if every check passed."""
        if self.failed:
            self.say(f"\n{len(self.failed)} of {self.checked} checks FAILED: {'; '.join(self.failed)}.")
        else:
            self.say(f"\nAll {self.checked} checks passed, in {seconds:.1f} seconds.")
        return not self.failed


def differences(delivered: Sequence[int], expected: Any) -> str:
    """Describe how `delivered` differs from the `expected` ids, each exactly once; empty if it does not.

    >>> differences([3, 1, 2], [1, 2, 3])
    ''
    >>> differences([1, 1, 2], [1, 2, 3, 4])
    '2 missing (id 3, ...), 1 repeated (id 1)'
    """
    ids, counts = np.unique(np.asarray(delivered, np.int64), return_counts=True)
    found = {
        "missing": np.setdiff1d(expected, ids),
        "repeated": ids[counts > 1],
        "unexpected": np.setdiff1d(ids, expected),
    }
    wrong = {what: which for what, which in found.items() if len(which)}
    return ", ".join(f"{len(w)} {what} (id {w[0]}{', ...' if len(w) > 1 else ''})" for what, w in wrong.items())


# ----------------------------------------------------------------------------
# Step 4 of the demo: stop in the middle of an epoch, and continue in a new process.
# ----------------------------------------------------------------------------


ReplicaStepIds = list[list[list[int]]]
"""For each step and each replica, the ids it got."""


@dataclass(frozen=True)
class Interrupted:
    """An epoch that was stopped.

    Args:
      state_bytes: the size of the saved state.
      before: the steps before the stop.
      after: the steps after it in this process, which continued as if nothing had happened.
      resumed: the steps after it in a new process, which had only the saved state.
    """

    state_bytes: int
    before: ReplicaStepIds
    after: ReplicaStepIds
    resumed: ReplicaStepIds


def stop_and_resume(directory: Path, replicas: int, batch_size: int, stop_after: int) -> Interrupted:
    """Take `stop_after` steps, save the state, and let a new process take the rest.

    Raises:
      ChildProcessError: the new process failed.
    """
    saved = directory / "digits-state.json"
    strategy = mirrored(replicas)
    with iter(strategy.experimental_distribute_dataset(training_batches(directory, batch_size))) as batches:
        before = [ids_of(strategy, batch) for batch in islice(batches, stop_after)]
        state = json.dumps(batches.state())
        saved.write_text(json.dumps({"replicas": replicas, "batch_size": batch_size, "state": json.loads(state)}))
        after = [ids_of(strategy, batch) for batch in batches]
    child = subprocess.run(
        [sys.executable, "-m", "distinput", "demo", "--resume", str(saved)], capture_output=True, text=True, check=False
    )
    if child.returncode:
        raise ChildProcessError(f"the process that should continue from {saved} failed:\n{child.stderr.strip()}")
    return Interrupted(len(state), before, after, json.loads(child.stdout))


def ids_after(saved: Path) -> ReplicaStepIds:
    """The steps after a saved state: called in the new process; the data is in the same folder as the state."""
    job = json.loads(saved.read_text())
    strategy = mirrored(job["replicas"])
    batches = strategy.experimental_distribute_dataset(training_batches(saved.parent, job["batch_size"]))
    return [ids_of(strategy, batch) for batch in batches.restore(job["state"], may_differ="root")]


# ----------------------------------------------------------------------------
# `distinput demo`: shows the library at work on real files, step by step, and checks every promise on the way.
# ----------------------------------------------------------------------------


TRAINING_BATCH = 64
EVALUATION_BATCH = 50
"""360 records are not a multiple of the batch size, and the batch size is not a multiple of 4 replicas."""
LEARNED = 0.9  # guessing is right for a tenth of the digits


def run_demo(replicas: int, epochs: int, directory: Path | None, *, quick: bool) -> bool:
    """Run the demo and print its findings.

    Args:
      replicas: how many replicas share each batch.
      epochs: passes over the training data.
      directory: where the files are kept; None takes a temporary one.
      quick: measure the speed for a shorter time.

    Returns:
      True if every check passed.
    """
    began = perf_counter()
    report = DemoReport()
    strategy = mirrored(replicas)
    report.say(f"distinput {di.__version__}: hand-written digits, from files to {count_of(replicas, 'replica')}")
    with place_of(directory) as place:
        parts = files_of(report, place, kept=directory is not None)
        model = _training(report, strategy, place, parts["train"], epochs)
        _evaluation(report, strategy, place, parts["test"], model)
        _resuming(report, place, replicas, parts["train"])
        _speed(report, strategy, place, 0.1 if quick else 0.5)
        report.heading("What runs: explain() of the training pipeline")
        report.text(training_batches(place, TRAINING_BATCH).explain())
    return report.conclude(perf_counter() - began)


@contextlib.contextmanager
def place_of(directory: Path | None) -> Iterator[Path]:
    """A directory for the files, removed afterwards unless it is the user's."""
    if directory is None:
        with tempfile.TemporaryDirectory(prefix="distinput-demo-") as made:
            yield Path(made)
    else:
        directory.mkdir(parents=True, exist_ok=True)
        yield directory


def files_of(report: DemoReport, place: Path, *, kept: bool) -> dict[str, Digits]:
    """Write the files, unless they exist, and describe them; return the contents of each part of the data."""
    report.heading("Files")
    parts, written = write_files(place)
    report.fact("directory", f"{place} ({'kept' if kept else 'removed at the end'})")
    for file_format in FORMATS:
        paths = [path for split in SPLITS for path in paths_of(place, split, file_format)]
        kilobytes = sum(path.stat().st_size for path in paths) / 1000
        how = "written" if written else "found there, and read again"
        report.fact(file_format, f"{len(paths)} files, {kilobytes:.0f} kB, {how}")
    sizes = {split: len(part.id) for split, part in parts.items()}
    report.fact("records", f"{sizes['train']:,} to train on and {sizes['test']:,} to test with, each with an id")
    return parts


def _training(report: DemoReport, strategy: di.distribute.Strategy, place: Path, part: Digits, epochs: int) -> Softmax:
    replicas = strategy.num_replicas_in_sync
    report.heading(
        f"Training: TFRecord files -> parse -> shuffle -> batches of {TRAINING_BATCH} -> {count_of(replicas, 'replica')}"
    )
    model = Softmax(pixels=64, classes=10)
    batches = strategy.experimental_distribute_dataset(training_batches(place, TRAINING_BATCH))
    passes: list[Pass] = []
    steps = epochs * ceil(len(part.id) / TRAINING_BATCH)
    with ProgressBar(steps, steps, "training", "steps", leave=False) as bar:
        for _ in range(epochs):
            done = train_epoch(strategy, model, batches, lambda done: bar.step(f"loss {done.mean_loss:.3f}"))
            passes.append(done)
    shown = sorted({0, epochs // 4, epochs // 2, epochs - 1})
    report.table(
        [f"epoch {i + 1}" for i in shown],
        [
            ("loss", [f"{passes[i].mean_loss:.4f}" for i in shown]),
            ("accuracy", [percent(passes[i].accuracy) for i in shown]),
        ],
    )
    delivered = sum(len(done.ids) for done in passes)
    uneven, empty = (sum(counts) for counts in zip(*[done.unevenness() for done in passes], strict=True))
    report.fact("records delivered", f"{delivered:,} in {count_of(epochs, 'epoch')}")
    report.fact("steps", f"{sum(len(done.sizes) for done in passes)}, {_cut(uneven, empty)}")
    each_once(report, [done.ids for done in passes], part, "checked by id in every epoch")
    orders = len({tuple(done.ids) for done in passes})
    report.check(
        "a new order every epoch",
        "" if orders == epochs else f"{epochs} epochs had only {count_of(orders, 'order')}",
        f"{count_of(orders, 'order')} in {count_of(epochs, 'epoch')}",
    )
    return model


def _evaluation(
    report: DemoReport, strategy: di.distribute.Strategy, place: Path, part: Digits, model: Softmax
) -> None:
    replicas = strategy.num_replicas_in_sync
    strategies = {replicas: strategy, 1: mirrored(1)}
    where = " and on ".join(count_of(n, "replica") for n in strategies)
    report.heading(f"Evaluation: {len(part.id)} records in batches of {EVALUATION_BATCH}, on {where}")
    done = {
        (n, file_format): evaluate(on, model, evaluation_batches(place, file_format, EVALUATION_BATCH))
        for n, on in strategies.items()
        for file_format in FORMATS
    }

    def row(name: str, n: int, value: Any) -> tuple[str, list[str]]:
        return f"{name}, {count_of(n, 'replica')}", [value(done[n, file_format]) for file_format in FORMATS]

    report.table(
        FORMATS,
        [
            *[row("loss", n, lambda found: f"{found.mean_loss:.6f}") for n in strategies],
            *[row("accuracy", n, lambda found: percent(found.accuracy)) for n in strategies],
        ],
    )
    many, one = done[replicas, FORMATS[0]], done[1, FORMATS[0]]
    report.fact("steps", f"{len(many.sizes)}, {_cut(*many.unevenness())}")
    report.fact("rows in the last step", " + ".join(str(n) for sizes in many.sizes[-1:] for n in sizes) or "none")
    wrong = [(key, differences(found.ids, part.id)) for key, found in done.items()]
    report.check(
        "each exactly once",
        next((f"{file_format} on {count_of(n, 'replica')}: {text}" for (n, file_format), text in wrong if text), ""),
        f"checked by id in all {len(wrong)} passes",
    )
    accuracies = {found.accuracy.hex() for found in done.values()}
    report.check(
        "the same accuracy",
        "" if len(accuracies) == 1 else f"there are {len(accuracies)} different ones",
        f"{many.correct} of {len(many.ids)} and {one.correct} of {len(one.ids)}: to the last bit, in both formats",
    )
    losses = [found.mean_loss for found in done.values()]
    apart = max(losses) - min(losses)
    report.check(
        "the same loss",
        "" if apart <= 1e-12 * max(losses) else f"the losses are {apart:.1e} apart",
        f"but for rounding, since sums are in another order: {apart:.0e} apart" if apart else "to the last bit",
    )
    has_learned(report, one)


def each_once(report: DemoReport, passes: Sequence[Sequence[int]], part: Digits, right: str) -> None:
    """Check that every epoch had each record exactly once."""
    wrong = [f"epoch {i}: {text}" for i, ids in enumerate(passes, 1) if (text := differences(ids, part.id))]
    report.check("each exactly once", next(iter(wrong), ""), right)


def has_learned(report: DemoReport, found: Pass) -> None:
    """Check that a model is good enough."""
    accuracy = percent(found.accuracy)
    report.check(
        f"at least {LEARNED:.0%} accuracy",
        "" if found.accuracy >= LEARNED else f"only {accuracy}",
        f"{accuracy} of images the model has never seen",
    )


def _resuming(report: DemoReport, place: Path, replicas: int, part: Digits) -> None:
    steps = ceil(len(part.id) / TRAINING_BATCH)
    report.heading("Stopping in the middle of an epoch, and going on in a new process")
    found = stop_and_resume(place, replicas, TRAINING_BATCH, steps // 3)
    before, resumed = list(chain(*chain(*found.before))), list(chain(*chain(*found.resumed)))
    report.fact("stopped", f"after {len(found.before)} of {steps} steps, {len(before):,} records")
    report.fact("state saved", f"{found.state_bytes:,} bytes of JSON: positions, no records")
    report.fact("new process", f"{len(found.resumed)} steps, {len(resumed):,} records")
    wrong = differences(before + resumed, part.id)
    report.check("together the whole", wrong, "each record exactly once, checked by id")
    report.check(
        "exactly the rest",
        "" if found.resumed == found.after else "not what follows without a stop",
        "the same order, the same steps, the same replicas as without a stop",
    )


_KERNELS = (
    "scan_records", "locate_features", "fill_int64s", "gather_spans", "shuffle_steps", "exchange_rows", "drain_steps",
    "drain_rows",
)  # fmt: skip
_LONGEST_COMPILATION = 20.0


def _speed(report: DemoReport, strategy: di.distribute.Strategy, place: Path, seconds: float) -> None:
    report.heading(f"Speed, from files to {count_of(strategy.num_replicas_in_sync, 'replica')}")
    for name in _KERNELS:  # on a new machine kernels may still be compiling, with their slow references in use
        KERNELS[name].wait(_LONGEST_COMPILATION)

    def delivered(batches: di.distribute.DistributedDataset) -> int:
        return sum(len(part) for batch in batches for part in strategy.experimental_local_results(batch["id"]))

    def trained(batches: di.distribute.DistributedDataset) -> int:
        return len(train_epoch(strategy, Softmax(pixels=64, classes=10), batches).ids)

    in_order = {f: evaluation_batches(place, f, TRAINING_BATCH, split="train") for f in FORMATS}
    for what, one_pass, dataset in [
        *[(f"{file_format}, in order", delivered, dataset) for file_format, dataset in in_order.items()],
        ("tfrecord, shuffled", delivered, training_batches(place, TRAINING_BATCH)),
        ("the same, and training", trained, training_batches(place, TRAINING_BATCH)),
    ]:
        batches = strategy.experimental_distribute_dataset(dataset)
        records = passes = 0
        began = perf_counter()
        while (took := perf_counter() - began) < seconds:
            records += one_pass(batches)
            passes += 1
        report.fact(what, f"{records / took:>9,.0f} records/s, measured over {count_of(passes, 'pass', 'passes')}")


def percent(part: float) -> str:
    """A fraction as a percentage."""
    return f"{100 * part:.2f} %"


def _cut(uneven: int, empty: int) -> str:
    """The unevenness of steps, in words."""
    return f"{uneven} of them uneven, with {count_of(empty, 'empty replica batch', 'empty replica batches')}"
