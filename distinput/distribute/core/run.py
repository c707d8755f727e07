# SPDX-License-Identifier: Apache-2.0
"""Runs a function on every replica of this process at the same time."""

import dis
import inspect
from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import Any

from distinput.distribute.core.modes import Mode, modes
from distinput.distribute.core.rendezvous import Rendezvous
from distinput.distribute.core.replica_context import ReplicaContext
from distinput.distribute.core.replicas import Replicas
from distinput.distribute.core.values import has_distributed, is_number, marked, present_in, regroup, select_replica

__all__ = ["run_on_replicas", "wrong_arguments"]


def run_on_replicas(
    strategy: object, replicas: Replicas, fn: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    """Run a function on every replica; see `Strategy.run`.

    Args:
      strategy: the strategy that is current meanwhile.
      replicas: its replicas.
      fn: the function to call.
      given: the positional arguments, with those of all replicas.
      named: the named arguments.
    """
    count, first = replicas.count, replicas.first
    spread = any(map(has_distributed, given))
    spread_named = any(map(has_distributed, named.values()))
    meeting = Rendezvous(count)

    arguments = given, named

    def replica(index: int) -> Any:
        stack = modes.stack
        mode = Mode(strategy, ReplicaContext(strategy, first + index, meeting, index, arguments))
        stack.append(mode)
        try:
            result = fn(
                *([select_replica(index, x) for x in given] if spread else given),
                **({k: select_replica(index, x) for k, x in named.items()} if spread_named else named),
            )
        except BaseException as error:  # raised again once all have ended
            meeting.failed(index, error)
            if index == 0 and isinstance(error, KeyboardInterrupt):
                raise  # at once, since the others may sleep for long
            return None
        finally:
            stack.remove(mode)
        meeting.ended(index)
        return result

    try:
        results = replicas.devices.run(replica, [(i,) for i in range(count)])
    except BaseException as error:
        meeting.failed(0, error)  # an interrupt while waiting: release the replicas that wait for each other
        raise
    if meeting.uneven:
        raise RuntimeError(
            "Some replicas made a different number of replica_context().merge_call() calls; every replica must call "
            "merge_call, all_reduce and all_gather equally often"
        )
    if meeting.failures:
        _raise_first(replicas, fn, meeting)
    present = present_in((given, named)) if spread or spread_named else None
    if present is not None:  # results computed from placeholders are not data either
        return marked(regroup(results, always_wrap=count == 1), present)
    if count == 1 or (is_number(results[0]) and _is_literal(getattr(fn, "__code__", None))):
        return results[0]
    return regroup(results)


_NOT_CALLED_AT_ONCE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


@lru_cache(maxsize=256)
def _is_literal(code: CodeType | None) -> bool:
    """Whether a function returns one literal on every way through it, which neither data nor replica can change.

    >>> [_is_literal(f.__code__) for f in (lambda x: 5, lambda x: 5 if x else 6, lambda x: x, lambda x: int(x) and 5)]
    [True, False, False, False]
    """
    if code is None or code.co_flags & _NOT_CALLED_AT_ONCE:
        return False
    returned: set[tuple[str, int | None]] = set()
    before: dis.Instruction | None = None
    for each in dis.get_instructions(code):
        if each.opname == "RETURN_CONST":
            returned.add((each.opname, each.arg))
        elif each.opname == "RETURN_VALUE":
            if before is None or before.opname not in ("LOAD_CONST", "LOAD_SMALL_INT") or each.is_jump_target:
                return False
            returned.add((before.opname, before.arg))
        before = each
    return len(returned) == 1


def _raise_first(replicas: Replicas, fn: Callable[..., Any], meeting: Rendezvous) -> None:
    failures, meeting.failures = meeting.failures, []
    index, error = failures[0]
    name = getattr(fn, "__name__", type(fn).__name__)
    number = replicas.first + index
    error.add_note(f"in replica {number} of {replicas.total} ({replicas.devices.local[index]}), run({name})")
    for i, other in failures[1:]:
        error.add_note(f"replica {i} failed too: {type(other).__name__}: {other}")
    try:
        raise error
    finally:
        del error, failures  # a traceback that refers to itself would keep the strategy and its threads


def wrong_arguments(args: object) -> ValueError:
    """The error for positional arguments that are neither a list nor a tuple, of the type that TensorFlow raises."""
    return ValueError(
        f"run: positional args must be a list or tuple, got a {type(args).__name__}; write args=(x,) for one"
    )
