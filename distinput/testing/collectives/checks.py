# SPDX-License-Identifier: Apache-2.0
"""The checks of collectives, which the ranks of a group make together."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from distinput.distribute.collectives.channel import OPS, fold
from distinput.distribute.engines import Collectives, CollectiveTimeout, Mismatch, PeerLost, Poisoned
from distinput.names.lazy import dataclass

# ----------------------------------------------------------------------------
# The arrays that workers contribute to the checks, and how results are compared.
# ----------------------------------------------------------------------------


Array: TypeAlias = npt.NDArray[Any]
Check: TypeAlias = Callable[[Collectives], None]
"""What holds on every engine: every worker calls it with its group."""

NUMBERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
"""Dtypes of numbers."""


def made(rank: int, dtype: str, shape: Sequence[int], seed: int = 0) -> Array:
    """The array that a worker contributes; every worker can compute that of every other one."""
    generator = np.random.Generator(np.random.Philox(key=[seed, rank]))
    bits = generator.integers(-100, 100, size=tuple(shape))
    if dtype[0] in "fc":
        return (bits * 0.37 * (1 + 0.5j if dtype[0] == "c" else 1)).astype(dtype)
    return bits.astype(dtype)  # negative ones become large unsigned ones, whose sums wrap


def same(actual: Array, expected: Array) -> None:
    """Two arrays are equal in dtype, shape and values, and the first is a fresh array of its own."""
    assert actual.dtype == expected.dtype, f"dtype {actual.dtype}, expected {expected.dtype}"
    assert actual.shape == expected.shape, f"shape {actual.shape}, expected {expected.shape}"
    np.testing.assert_array_equal(actual, expected)
    assert actual.flags.c_contiguous, "the result is not C-contiguous"
    assert actual.flags.writeable, "the result cannot be written to"


# ----------------------------------------------------------------------------
# Results of the conformance suite of collectives: of one worker, and of all of them.
# ----------------------------------------------------------------------------


SOON = 10.0
"""Seconds within which an error that needs no waiting must arrive, even on a busy machine that stands still at times."""


@dataclass
class Outcome:
    """The result of one worker.

    Args:
      rank: the worker.
      failed: for each check that did not hold, why.
      passed: the checks that held.
      seconds: how long the checks took; for a fault, how long after it the error came.
      error: for a fault, the name of the error's class.
      culprit: for a fault, the ranks that the error named.
      message: for a fault, its text.
    """

    rank: int
    failed: dict[str, str] = field(default_factory=dict)
    passed: list[str] = field(default_factory=list)
    seconds: float = 0.0
    error: str = ""
    culprit: list[int] = field(default_factory=list)
    message: str = ""


@dataclass(frozen=True)
class Report:
    """The results of all workers.

    Args:
      engine: which one.
      size: how many workers.
      outcomes: of the workers that reported, in rank order.
      codes: how the processes ended, in rank order; with mpiexec its own.
      output: what they printed.
      seconds: how long it took.
    """

    engine: str
    size: int
    outcomes: tuple[Outcome, ...]
    codes: tuple[int | None, ...] = ()
    output: str = ""
    seconds: float = 0.0

    @property
    def problems(self) -> list[str]:
        """The checks that failed, each with the worker on which it did."""
        return [f"rank {o.rank}: {name}: {why}" for o in self.outcomes for name, why in o.failed.items()]

    @property
    def latest(self) -> float:
        """The longest time that a worker took."""
        return max((outcome.seconds for outcome in self.outcomes), default=0.0)


def raises(kind: type[BaseException] | tuple[type[BaseException], ...], call: Callable[[], object]) -> BaseException:
    """The error of a kind that a call raises, soon.

    Raises:
      AssertionError: it raised none, or not soon.
    """
    begin = time.monotonic()
    found: BaseException | None = None
    try:
        result = call()
    except kind as error:
        found = error
    if found is None:
        raise AssertionError(f"expected {kind}, got {result!r}")
    took = time.monotonic() - begin
    assert took < SOON, f"{type(found).__name__} came after {took:.2f} s"
    return found


# ----------------------------------------------------------------------------
# Groups beside one another, and the end of a group.
# ----------------------------------------------------------------------------


def _two_groups_in_opposite_order(group: Collectives) -> None:
    with group.dup("first") as first, group.dup("second") as second:
        pairs = [(first, 1), (second, 10)]
        met = threading.Barrier(2)

        def work(pair: tuple[Collectives, int]) -> list[int]:
            mine, factor = pair
            met.wait(10)
            return [int(mine.all_reduce(factor * i)) for i in range(5)]

        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(work, pairs if group.rank % 2 else pairs[::-1]))
        if not group.rank % 2:
            results.reverse()
        assert results == [[i * group.size for i in range(5)], [10 * i * group.size for i in range(5)]]
        # And from one thread: a group that waits does not hold up the other one.
        if group.rank == 0:
            later = first.agree([1])
            assert second.all_reduce(1).item() == group.size
            assert later.result() == [group.size]
        else:
            assert second.all_reduce(1).item() == group.size
            assert first.agree([1]).result() == [group.size]


def _one_thread_at_a_time(group: Collectives) -> None:
    with group.dup("busy") as busy:
        errors: list[BaseException] = []
        if group.rank == 0 and group.size > 1:
            thread = threading.Thread(target=busy.barrier)
            thread.start()
            while not busy._sequence.lock.locked():
                time.sleep(0.001)
            errors.append(raises(RuntimeError, busy.barrier))
            group.barrier()
            thread.join()
            assert "dup" in str(errors[0])
        else:
            group.barrier()
            busy.barrier()


def _a_closed_group_says_so(group: Collectives) -> None:
    other = group.dup("closed")
    other.barrier()
    other.close()
    other.close()
    assert "closed" in str(raises(RuntimeError, other.barrier))
    group.barrier()


def _a_timeout_must_be_a_time(group: Collectives) -> None:
    raises(ValueError, lambda: group.barrier(timeout=-1))
    raises(ValueError, lambda: group.barrier(timeout=float("nan")))
    group.barrier()


# ----------------------------------------------------------------------------
# `agree`: agreements are posted ahead and complete in order.
# ----------------------------------------------------------------------------


def _agreements_ahead(group: Collectives) -> None:
    ranks = sum(range(group.size))
    ahead = []
    for step in range(12):
        ahead.append(group.agree([1, group.rank, -step]))
        if step % 3 == 0:
            assert group.all_reduce(step).item() == step * group.size  # in between, while agreements are under way
        if len(ahead) > 4:
            assert ahead.pop(0).result() == [group.size, ranks, -(step - 4) * group.size]
    last = ahead[-1]
    assert last.result() == [group.size, ranks, -11 * group.size]
    assert all(agreement.done() for agreement in ahead)  # they complete in the order of posting
    assert last.result() == last.result()


def _an_agreement_is_not_done_early(group: Collectives) -> None:
    if group.size == 1:
        return
    if group.rank == group.size - 1:
        group.barrier()  # the others have looked
        assert group.agree([7]).result() == [7 * group.size]
        return
    agreement = group.agree([7])
    assert not agreement.done()
    group.barrier()
    deadline = time.monotonic() + 10
    while not agreement.done() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert agreement.done()
    assert agreement.result() == [7 * group.size]


def _agreements_about_different_things(group: Collectives) -> None:
    odd = group.rank == group.size - 1 and group.size > 1
    agreement = group.agree([1], "validation" if odd else "training")
    if group.size > 1:
        text = str(raises(Mismatch, agreement.result))
        assert "training" in text, text
        assert "validation" in text, text
    assert group.agree([1], "training").result() == [group.size]
    group.barrier()  # nobody closes the board before all have read it


def _agreements_of_different_lengths(group: Collectives) -> None:
    odd = group.rank == group.size - 1 and group.size > 1
    first = group.agree([1] * (2 if odd else 1))
    second = group.agree([1])
    if group.size > 1:
        raises(Mismatch, first.result)
    assert second.result() == [group.size]
    if group.size > 1:
        if odd:
            raises(ValueError, lambda: group.agree([1 << 62]))
        else:
            third = group.agree([1])
            raises(Mismatch, third.result)
    assert group.agree([-(1 << 40)]).result() == [-(1 << 40) * group.size]


def _an_agreement_outlives_the_timeout(group: Collectives) -> None:
    late = group.rank == group.size - 1
    if late:
        time.sleep(1.5 * group.timeout)
    agreement = group.agree([1])
    if not late:
        time.sleep(1.5 * group.timeout)  # nobody waits, so nobody is late
    assert agreement.result() == [group.size]
    group.barrier()


# ----------------------------------------------------------------------------
# `all_reduce`: every dtype, operation and layout, bit for bit.
# ----------------------------------------------------------------------------


def _all_reduce_every_dtype(group: Collectives) -> None:
    for seed, dtype in enumerate(NUMBERS):
        for op in sorted(OPS):
            parts = [made(rank, dtype, (3, 5), seed) for rank in range(group.size)]
            same(group.all_reduce(parts[group.rank], op), fold(parts, op))


def _all_reduce_large(group: Collectives) -> None:
    for seed, dtype in enumerate(NUMBERS):
        for op in ("max", "sum"):
            parts = [made(rank, dtype, (1500,), seed) for rank in range(group.size)]
            result = group.all_reduce(parts[group.rank], op)
            expected = fold(parts, op)
            if dtype[0] in "fc":
                np.testing.assert_allclose(result, expected, rtol=1e-2 if dtype == "f2" else 1e-4, atol=1e-3)
            else:
                same(result, expected)
            others = group.all_gather(result)
            assert all(other.tobytes() == result.tobytes() for other in others), f"{dtype} {op} differs between ranks"


def _all_reduce_deterministic(group: Collectives) -> None:
    parts = [made(rank, "f4", (3000,)) * np.float32(10.0**rank) for rank in range(group.size)]
    same(group.all_reduce(parts[group.rank], deterministic=True), fold(parts, "sum"))


def _all_reduce_in_pieces(group: Collectives) -> None:
    parts = [np.full(600_000, 0.1 + rank) for rank in range(group.size)]  # 4.8 MB
    same(group.all_reduce(parts[group.rank], deterministic=True), fold(parts, "sum"))


def _all_reduce_truth_values(group: Collectives) -> None:
    mine = np.array([True, False, group.rank == 0])
    same(group.all_reduce(mine, "min"), np.array([True, False, group.size == 1]))
    same(group.all_reduce(mine, "max"), np.array([True, False, True]))
    assert isinstance(raises(TypeError, lambda: group.all_reduce(mine, "sum")), TypeError)


def _all_reduce_of_nothing_and_of_one(group: Collectives) -> None:
    same(group.all_reduce(np.zeros((0, 3), "f4")), np.zeros((0, 3), "f4"))
    same(group.all_reduce(np.float64(1.5)), np.array(1.5 * group.size))
    same(group.all_reduce(2, "prod"), np.array(2**group.size))


def _all_reduce_nan_and_infinity(group: Collectives) -> None:
    for length in (2, 5000):  # inside the header, and by itself
        mine = np.full(length, float(group.rank))
        mine[0] = np.nan if group.rank == group.size - 1 else 0
        mine[1] = np.inf
        for op in ("max", "min", "sum"):
            assert np.isnan(group.all_reduce(mine, op)[0])
        assert group.all_reduce(mine, "sum")[1] == np.inf


# ----------------------------------------------------------------------------
# `all_gather`, `broadcast` and `barrier`, and the layouts that all calls take.
# ----------------------------------------------------------------------------


def _places(group: Collectives) -> None:
    places = [tuple(place.tolist()) for place in group.all_gather([group.rank, group.size])]
    assert places == [(rank, group.size) for rank in range(group.size)]
    assert 0 <= group.local_rank < group.local_size <= group.size


def _any_layout(group: Collectives) -> None:
    base = np.arange(24, dtype=">i4").reshape(4, 6)
    frozen = np.arange(6.0)
    frozen.flags.writeable = False
    for mine in (base, base.T, base[::2, ::-3], np.asfortranarray(base), frozen):
        before = mine.copy()
        result = group.all_reduce(mine)
        same(result, (mine * group.size).astype(mine.dtype.newbyteorder("=")))
        same(group.all_gather(mine)[-1], mine.astype(mine.dtype.newbyteorder("=")))
        same(group.broadcast(mine), mine.astype(mine.dtype.newbyteorder("=")))
        result[...] = 0
        np.testing.assert_array_equal(mine, before)


def _all_gather_every_dtype(group: Collectives) -> None:
    for dtype in ("?", *NUMBERS, "M8[us]", "m8[s]", "S3", "U2"):
        for rows in (lambda rank: rank, lambda rank: 400 * (rank % 2), lambda _: 3000, lambda _: 0):  # uneven, empty
            parts = [made(rank, "i8", (rows(rank), 2)).astype(dtype) for rank in range(group.size)]
            gathered = group.all_gather(parts[group.rank])
            assert len(gathered) == group.size
            for actual, expected in zip(gathered, parts, strict=True):
                same(actual, expected)


def _all_gather_scalars(group: Collectives) -> None:
    for rank, value in enumerate(group.all_gather(np.float32(group.rank))):
        same(value, np.array(rank, "f4"))


def _all_gather_text(group: Collectives) -> None:
    texts = [[b"", b"a\0b" * rank, "\u00fc\U0001f642"] * (1 + 100 * rank) for rank in range(group.size)]
    parts = [np.array(text, object) for text in texts]
    for actual, expected in zip(group.all_gather(parts[group.rank]), parts, strict=True):
        assert (actual.dtype, actual.tolist()) == (expected.dtype, expected.tolist())
    widths = [np.array(["x" * (1 + rank), "y"]) for rank in range(group.size)]
    for actual, expected in zip(group.all_gather(widths[group.rank]), widths, strict=True):
        same(actual, expected)
    for rank, text in enumerate(group.all_gather(np.array(["\u00fc" * group.rank, "y"], np.dtypes.StringDType()))):
        assert (text.dtype, text.tolist()) == (np.dtypes.StringDType(), ["\u00fc" * rank, "y"])


def _broadcast_from_every_root(group: Collectives) -> None:
    for root in range(group.size):
        for dtype, shape in (("f4", (2, 3)), ("u2", (0, 3)), ("c16", ()), ("f8", (4000,)), ("?", (9,)), ("S4", (3,))):
            expected = made(root, "i8", shape).astype(dtype)
            same(group.broadcast(expected if group.rank == root else None, root), expected)
        words = np.array([[b"x", "\u00fc"]], object)
        assert group.broadcast(words if group.rank == root else None, root).tolist() == words.tolist()


def _barrier_waits(group: Collectives) -> None:
    if group.rank == group.size - 1:
        time.sleep(0.2)
    arrived = time.monotonic()
    group.barrier()
    left = time.monotonic()
    if group.local_size == group.size:  # one machine, one clock
        assert left >= max(float(time_) for time_ in group.all_gather(arrived))


def _a_late_peer_within_the_time(group: Collectives) -> None:
    if group.rank == 0:
        time.sleep(1.0)
    assert group.all_reduce(1).item() == group.size


# ----------------------------------------------------------------------------
# Calls that differ between workers, or cannot be, are refused on all of them.
# ----------------------------------------------------------------------------


def _different_calls_are_refused_everywhere(group: Collectives) -> None:
    odd = group.rank == group.size - 1
    calls: list[Callable[[], object]] = [
        lambda: group.all_reduce(np.zeros(4 if odd else 3)),
        lambda: group.all_reduce(np.zeros((2, 3) if odd else (3, 2))),
        lambda: group.all_reduce(np.zeros(5000 if odd else 3)),
        lambda: group.all_reduce(np.zeros(3, "f4" if odd else "f8")),
        lambda: group.all_reduce(np.zeros(3), "max" if odd else "sum"),
        lambda: group.all_reduce(np.zeros(3), deterministic=odd),
        lambda: group.all_gather(np.zeros((2, 3 if odd else 4))),
        lambda: group.all_gather(np.zeros(() if odd else (1,))),
        lambda: group.all_gather(np.zeros(2, "i4" if odd else "u4")),
        lambda: group.all_gather(np.array(["x"], object if odd else "U1")),
        lambda: group.broadcast(np.zeros(2), group.size - 1 if odd else 0),
        lambda: group.barrier() if odd else group.all_reduce(1),
        lambda: group.dup("x" if odd else "y"),
    ]
    if group.size == 1:
        return
    for call in calls:
        error = raises(Mismatch, call)
        assert f"rank {group.size - 1}: " in str(error), f"no table of who called what: {error}"
        assert group.all_reduce(1).item() == group.size  # and the next call works


def _calls_with_different_names_are_refused_everywhere(group: Collectives) -> None:
    odd = group.rank == group.size - 1
    name = "accuracy" if odd and group.size > 1 else "loss"
    calls: list[Callable[[], object]] = [
        lambda: group.all_reduce(1.0, name=name),
        lambda: group.all_gather(np.zeros(3), name=name),
        lambda: group.broadcast(np.zeros(3), name=name),
        lambda: group.barrier(name=name),
    ]
    for call in calls if group.size > 1 else ():
        text = str(raises(Mismatch, call))
        assert "name='loss'" in text, f"the call of the others is not named: {text}"
        assert "name='accuracy'" in text, f"the call of the odd one is not named: {text}"
        assert group.all_reduce(1, name="after").item() == group.size


def _a_call_from_elsewhere_is_refused(group: Collectives) -> None:
    odd = group.rank == group.size - 1 and group.size > 1
    refused = []
    for turn in range(3):
        try:
            if odd and turn == 2:
                group.all_reduce(800)  # one more than the others, who are there where all were before
            else:
                group.all_reduce(8)
        except Mismatch:
            refused.append(turn)
    assert refused == ([2] if group.size > 1 else [])


def _a_branch_may_have_calls_of_its_own(group: Collectives) -> None:
    for _ in range(3):
        if group.rank == 0:
            assert group.all_reduce(1).item() == group.size
        else:
            assert group.all_reduce(1).item() == group.size


def _an_impossible_call_of_one_worker(group: Collectives) -> None:
    odd = group.rank == group.size - 1
    calls: list[tuple[type[BaseException], Callable[[], object]]] = [
        (TypeError, lambda: group.all_reduce(np.array([None]) if odd else 1)),
        (TypeError, lambda: group.all_reduce("x" if odd else 1)),
        (ValueError, lambda: group.all_reduce(1, "median" if odd else "sum")),
        (TypeError, lambda: group.all_gather(np.array([{}]) if odd else [1])),
        (ValueError, lambda: group.broadcast(1, group.size if odd else 0)),
        (TypeError, lambda: group.broadcast(None, group.size - 1)),
    ]
    for kind, call in calls:
        error = raises(kind if odd else Mismatch, call)
        assert isinstance(error, kind if odd else Mismatch)
        assert group.all_reduce(1).item() == group.size


# ----------------------------------------------------------------------------
# What holds for `Collectives` on every engine: the table of all checks, and a function that runs them.
# ----------------------------------------------------------------------------


def _by_name(*checks: Check) -> dict[str, Check]:
    return {check.__name__.removeprefix("_"): check for check in checks}


CHECKS: dict[str, Check] = _by_name(
    _places,
    _any_layout,
    _all_gather_every_dtype,
    _all_gather_scalars,
    _all_gather_text,
    _broadcast_from_every_root,
    _barrier_waits,
    _a_late_peer_within_the_time,
    _all_reduce_every_dtype,
    _all_reduce_large,
    _all_reduce_deterministic,
    _all_reduce_in_pieces,
    _all_reduce_truth_values,
    _all_reduce_of_nothing_and_of_one,
    _all_reduce_nan_and_infinity,
    _different_calls_are_refused_everywhere,
    _calls_with_different_names_are_refused_everywhere,
    _a_call_from_elsewhere_is_refused,
    _a_branch_may_have_calls_of_its_own,
    _an_impossible_call_of_one_worker,
    _agreements_ahead,
    _an_agreement_is_not_done_early,
    _agreements_about_different_things,
    _agreements_of_different_lengths,
    _two_groups_in_opposite_order,
    _one_thread_at_a_time,
    _a_closed_group_says_so,
    _a_timeout_must_be_a_time,
)
"""The checks that hold on every engine, by name: functions that every worker calls with its group."""

SLOW_CHECKS: dict[str, Check] = _by_name(_an_agreement_outlives_the_timeout)
"""Further checks, which take longer than the timeout of the group: open it with a short one."""


def run_checks(group: Collectives, names: Sequence[str] | None = None) -> Outcome:
    """All checks, or some, on a group; every worker calls this.

    Args:
      group: fresh or used, but not failed.
      names: keys of `CHECKS` and `SLOW_CHECKS`; by default all of the former.
    """
    outcome = Outcome(group.rank)
    begin = time.monotonic()
    for name in CHECKS if names is None else names:
        try:
            (CHECKS | SLOW_CHECKS)[name](group)
        except Exception as error:  # noqa: BLE001 - it is what the outcome is made of
            outcome.failed[name] = f"{type(error).__name__}: {error}"
            if isinstance(error, Poisoned | CollectiveTimeout | PeerLost):
                break
        else:
            outcome.passed.append(name)
    outcome.seconds = time.monotonic() - begin
    return outcome
