# SPDX-License-Identifier: Apache-2.0
"""Whether a function may wait for somebody, perhaps for who uses what it gives; as far as can be seen from outside."""

import io
import os
import stat
from collections.abc import Callable, Iterator
from time import sleep
from types import CodeType, ModuleType
from typing import Any

__all__ = ["may_wait"]

_DEPTH = 3
"""How deeply the functions and objects that it names are searched."""

_CHANNELS = frozenset(
    [
        "_queue",
        "asyncio",
        "confluent_kafka",
        "grpc",
        "http",
        "httpx",
        "kafka",
        "multiprocessing",
        "pika",
        "queue",
        "redis",
        "requests",
        "select",
        "selectors",
        "serial",
        "socket",
        "ssl",
        "subprocess",
        "urllib3",
        "websocket",
        "websockets",
        "zmq",
    ]
)
"""Modules of objects through which something comes when it comes."""

_SIGNALS = frozenset({"Barrier", "BoundedSemaphore", "Condition", "Event", "Flag", "Semaphore"})
"""Classes for which threads wait; locks are there for other reasons."""

_CALLS = {"time": {"sleep"}, "sys": {"stdin"}}
"""What of a module waits."""


def may_wait(function: Callable[..., Any]) -> bool:
    """Whether a function names a queue, a connection, an event, the terminal or the like.

    >>> import queue
    >>> answers = queue.Queue()
    >>> may_wait(lambda: answers.get()), may_wait(lambda: [1].pop())
    (True, False)
    """
    return _waits(function, set(), _DEPTH)


def _waits(value: Any, seen: set[int], depth: int) -> bool:
    if id(value) in seen or depth < 0:
        return False
    seen.add(id(value))
    kind = type(value)
    module = kind.__module__.partition(".")[0]
    if module in _CHANNELS or (module == "threading" and kind.__name__ in _SIGNALS):
        return True
    if isinstance(value, io.IOBase):
        return _is_no_file(value)
    if isinstance(value, ModuleType | type | str | bytes | int | float | complex) or module == "numpy":
        return False
    return any(_waits(part, seen, depth - 1) for part in _parts(value)) or _calls(value)


def _parts(value: Any) -> Iterator[Any]:
    """What a function or an object names or holds."""
    if isinstance(value, tuple | list | set | frozenset):
        yield from list(value)[:16]
        return
    for name in ("__self__", "__func__", "func", "args", "__wrapped__", "__defaults__"):
        yield getattr(value, name, None)
    code = getattr(value, "__code__", None)
    if isinstance(code, CodeType):
        known = getattr(value, "__globals__", {})
        yield from [known[name] for name in _names(code) if name in known]
        for cell in getattr(value, "__closure__", None) or ():
            try:
                yield cell.cell_contents
            except ValueError:  # not set yet
                continue
    elif not hasattr(value, "__func__"):
        yield from list(getattr(value, "__dict__", {}).values())[:64]
        kind = vars(type(value))
        yield from (kind.get("__call__"), kind.get("__iter__"))


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _calls(function: Any) -> bool:
    """Whether it calls something of a module that waits, or asks at the terminal."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return False
    known, names = getattr(function, "__globals__", {}), set(_names(code))
    if "input" in names and "input" not in known:
        return True
    modules = [known[name].__name__ for name in names if isinstance(known.get(name), ModuleType)]
    return any(_CALLS.get(module, set()) & names for module in modules) or any(
        known.get(name) is sleep for name in names
    )


def _is_no_file(value: io.IOBase) -> bool:
    """Whether it is a terminal, a pipe or the like, where a read waits."""
    try:
        return not stat.S_ISREG(os.fstat(value.fileno()).st_mode)
    except (OSError, ValueError):
        return False
