# SPDX-License-Identifier: Apache-2.0
"""`judge`: every law of loaders, tried on one; `check_interrupted`: a job of one that is stopped again and again."""

import functools
import sys
import time
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from typing import Any

from distinput.names.words import shown
from distinput.testing.judge.delivery import Ids, compared, ids_of
from distinput.testing.judge.job import Job, Maker
from distinput.testing.judge.laws import LAWS
from distinput.testing.judge.play import restored, saved
from distinput.testing.judge.processes import HOWS, Still, load_told, unpicklable, watched
from distinput.testing.judge.report import JudgeReport, Ruling, broken, not_judged
from distinput.testing.judge.trial import Settled, Trial


def judge(
    make_loader: Callable[..., Any],
    records: int | Collection[Hashable],
    *,
    ranks: int | Sequence[int] = (1, 2, 3, 4),
    batch: int = 4,
    seed: int = 0,
    workers: Sequence[int] = (),
    stops: Sequence[int] | None = None,
    laws: Collection[str] | None = None,
    leave_out: Collection[str] = (),
    ids: Ids = ids_of,
    name: str | None = None,
    packages: Sequence[str] = (),
    patience: float = 60.0,
    play: str = "in turn",
) -> JudgeReport:
    """Try a loader of any library in jobs of several ranks, and say which laws it keeps. Only what it delivers counts.

    The laws, by name:

    * exactly once: in an epoch all ranks together get each record once;
    * equal steps: all ranks have the same number of steps;
    * partial batches: only the last step is partial, it has the rows that are left, and batches without rows look like others;
    * same order: a loader made again in the same way gives the same steps;
    * seeds: another seed gives another order;
    * epochs: the second epoch is whole too, and in another order where there is a seed;
    * workers: the steps are the same with any number of worker processes or threads;
    * restart: from the state after any step exactly the rest follows, in a new loader;
    * elastic restart: so it does on another number of ranks, each record once;
    * rank killed: after SIGKILL a new process continues from the last state that was saved;
    * worker killed: after SIGKILL to a worker process there is an error, or nothing is lost; nothing hangs;
    * nothing left: no thread, process or open file is left behind.

    Ranks are played one after the other in this process, as most loaders take their rank as an argument; others are played by
    `play="processes"` or `play="threads"`. A loader that raises an error before it delivers anything has *refused*, which
    breaks no law.

    Args:
      make_loader: makes the loader of one rank: anything that can be iterated, once for each epoch. It is called with what its
        parameters ask for: `records`, `rank`, `ranks`, `batch` (rows of a rank in a step), `global_batch` (of all ranks),
        `seed`, `epoch`, `workers`. What it does not take is not judged. Its state, or that of its iterator, is that of
        `state_dict` and `load_state_dict`, or `get_state` and `set_state`.
      records: how many there are, named 0, 1, 2, ...; or their names.
      ranks: numbers of ranks to try.
      batch: the rows of one rank in a step.
      seed: the seed to begin with.
      workers: numbers of workers of each rank to try beside none.
      stops: after which steps a job is stopped, from 1 on; by default after every one.
      laws: names of the laws to judge; by default all.
      leave_out: names of laws not to judge.
      ids: the records of a batch; by default the numbers in it, those under "id", or the first of a tuple.
      name: of the loader, in the report; by default that of the function.
      packages: names of packages whose versions the report tells.
      patience: seconds for one step after which the loader hangs.
      play: how the ranks of a job are played: "in turn", one after the other in this process; "processes", all at once in
        processes of their own with the variables of `torchrun` (RANK, WORLD_SIZE, ...) in their environment; "threads", all at
        once as threads of a new process. Processes are new for each run of a job, so give few `stops`.

    Returns:
      The report: `report.ok`, `report.broken`, `report["restart"].says`, `print(report)`, `report.check()` to raise an error,
      `report.to_json()`.

    Raises:
      ValueError: an unknown law or way to play, no ranks, a stop before the first step, a parameter of `make_loader` that is
        not known; it cannot be made in another process, and is to be.
      UnknownBatch: it cannot be told which records are in a batch.

    >>> def every_nth(records, rank, ranks, batch):
    ...     own = range(rank, records, ranks)
    ...     return [list(own[i : i + batch]) for i in range(0, len(own), batch)]
    >>> print(judge(every_nth, records=9, ranks=2, batch=4, laws=["exactly once", "equal steps", "restart"]))
    every_nth: 1 of 2 laws is broken
      kept     exactly once  each record once
      BROKEN   equal steps   9 records, 2 ranks, batches of 4: the ranks have [2, 1] steps
      -        restart       neither the loader nor its iterator has state_dict and load_state_dict, or get_state and set_state
    """
    chosen = _chosen(laws, leave_out)
    trial = begin(
        make_loader,
        records,
        ranks=ranks,
        batch=batch,
        seed=seed,
        workers=workers,
        stops=stops,
        ids=ids,
        patience=patience,
        play=play,
    )
    began = time.monotonic()
    findings = tuple([ruling(trial, law) for law in chosen])
    return JudgeReport(
        name=name or _name(make_loader),
        findings=findings,
        jobs=tuple(map(str, trial.jobs)),
        versions={package: _version(package) for package in packages},
        seconds=time.monotonic() - began,
    )


def begin(
    make_loader: Callable[..., Any],
    records: int | Collection[Hashable],
    *,
    ranks: int | Sequence[int],
    batch: int,
    seed: int = 0,
    workers: Sequence[int] = (),
    stops: Sequence[int] | None = None,
    ids: Ids = ids_of,
    patience: float = 60.0,
    play: str = "in turn",
) -> Trial:
    """A trial that laws can be asked about one by one; see `judge` for the arguments.

    Raises:
      ValueError: no ranks, an unknown way to play them, a parameter of `make_loader` that is not known.
    """
    if play not in HOWS:
        raise ValueError(f"judge: ranks cannot be played {play!r}; known are {', '.join(HOWS)}")
    counts = [ranks] if isinstance(ranks, int) else list(ranks)
    if not counts or min(counts) < 1 or batch < 1:
        raise ValueError(f"judge: ranks and batch must be at least 1, got ranks={ranks!r}, batch={batch}")
    if stops is not None and min(stops, default=1) < 1:
        raise ValueError(f"judge: a state is taken after a step, so stops must be at least 1, got {list(stops)}")
    make = Maker(make_loader, records)
    if max(counts) > 1 and play != "processes" and not (make.takes("rank") and make.takes("ranks")):
        raise ValueError("judge: make_loader must take rank and ranks; give ranks=1 for a loader of one rank")
    why = unpicklable(make, ids) if play != "in turn" else None
    if why:
        raise ValueError(f"judge: ranks are to be played in new processes ({play}), but {why}")
    known = range(records) if isinstance(records, int) else list(records)
    return Trial(
        make=make,
        known=known,
        jobs=[Job(len(known), each, batch, seed) for each in counts],
        ids=ids,
        stops=stops,
        others=sorted({*counts, 1, 2, 2 * max(counts)}),
        workers=tuple(workers),
        patience=patience,
        play=play,
    )


def _chosen(laws: Collection[str] | None, leave_out: Collection[str]) -> list[str]:
    unknown = [law for law in (*(laws or ()), *leave_out) if law not in LAWS]
    if unknown:
        raise ValueError(f"judge: there is no law {unknown[0]!r}; known are {', '.join(LAWS)}")
    return [law for law in LAWS if (laws is None or law in laws) and law not in leave_out]


def ruling(trial: Trial, law: str) -> Ruling:
    """What one law says in a trial; once the loader has hung, nothing more is tried.

    >>> trial = begin(lambda: [[0, 1], [2]], 3, ranks=1, batch=2)
    >>> ruling(trial, "exactly once").verdict.value, ruling(trial, "equal steps").says
    ('kept', 'there is one rank')
    """
    if trial.hung:
        return replace(not_judged(trial.hung), law=law)
    trial.at(law)
    try:
        finding = watched(functools.partial(LAWS[law], trial), trial.patience, lambda: trial.last)
    except Settled as settled:
        finding = settled.ruling
    except Still as error:
        says = str(error) or f"{trial.place}: no step for {trial.patience:g} seconds{load_told()}"
        finding = broken(says, hung=trial.patience)
        trial.hung = f"the loader hung when {law!r} was judged"
    return replace(finding, law=law)


def _name(function: Callable[..., Any]) -> str:
    if isinstance(function, functools.partial):
        given = [*map(shown, function.args), *[f"{name}={shown(value)}" for name, value in function.keywords.items()]]
        return f"{_name(function.func)}({', '.join(given)})"
    return getattr(function, "__name__", type(function).__name__)


def _version(package: str) -> str:
    if package == "distinput":  # what runs: the metadata of a checkout says what it was when it was installed
        return str(sys.modules[package].__version__)
    try:
        return version(package).partition("+")[0]
    except PackageNotFoundError:
        return "not installed"


# ----------------------------------------------------------------------------
# A job that is stopped several times, and continues with other ranks each time.
# ----------------------------------------------------------------------------


def check_interrupted(
    make_loader: Callable[..., Any], job: Job, stops: Sequence[tuple[int, int]], *, ids: Ids = ids_of
) -> None:
    """Every record comes once, however often a job is stopped and with whatever ranks it goes on.

    `distinput.testing.strategies` draws jobs, and the stops of one.

    Args:
      make_loader: makes the loader of a rank, as `judge` takes it.
      job: the job.
      stops: (steps, ranks): after so many steps, go on with so many ranks, which must divide the rows of a step. Rank r gets
        the state of rank r modulo the number of ranks that saved.
      ids: the records of a batch.

    Raises:
      AssertionError: a record is lost or comes again.
      ValueError: ranks that do not divide the rows of a step.

    >>> import distinput as di
    >>> def mine(records, rank, ranks, global_batch):
    ...     return di.data.Dataset.range(records).batch(global_batch).shard_batches(ranks, rank)
    >>> check_interrupted(mine, Job(records=23, ranks=2, batch=3), [(1, 3), (1, 1), (0, 2)])
    """
    make = Maker(make_loader, job.records)
    loaders = [make(job, rank) for rank in range(job.ranks)]
    passes = [iter(loader) for loader in loaders]
    found: list[Hashable] = []
    for steps, ranks in stops:
        found += _taken(passes, steps, ids)
        states = [saved(loader, batches) for loader, batches in zip(loaders, passes, strict=True)]
        other = job.on(ranks)
        if other is None:
            raise ValueError(f"check_interrupted: {ranks} ranks must divide the {job.global_batch} rows of a step")
        loaders = [make(other, rank) for rank in range(ranks)]
        passes = [restored(loader, states[rank % len(states)]) for rank, loader in enumerate(loaders)]
        job = other
    found += _taken(passes, job.most_steps, ids)
    wrong = compared(found, range(job.records))
    if wrong:
        raise AssertionError(f"{job}, interrupted by {list(stops)}: {wrong}")


def _taken(passes: Sequence[Any], steps: int, ids: Ids) -> list[Hashable]:
    return [each for batches in passes for batch in islice(batches, steps) for each in ids(batch)]
