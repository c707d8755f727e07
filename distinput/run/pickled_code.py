# SPDX-License-Identifier: Apache-2.0
"""Functions as cloudpickle sends them, with the file that they come from: tracebacks of other processes show its lines.

cloudpickle 3.1.3 writes `<dynamic-code>` in its place.
"""

import importlib.util
import io
import pickle
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import CodeType
from typing import Any

__all__ = ["dumps", "dumps_with_buffers", "has_cloudpickle", "pickler"]


@cache
def pickler() -> Any:
    """The pickler of cloudpickle, whose code objects keep the names of their files.

    Raises:
      ImportError: cloudpickle is not installed.
    """
    cloudpickle = import_module("cloudpickle")
    reduced = cloudpickle.Pickler.dispatch_table[CodeType]

    class CodePickler(cloudpickle.Pickler):  # type: ignore[misc, name-defined]
        def reducer_override(self, value: Any) -> Any:
            if type(value) is CodeType:
                return _code, (value.co_filename, *reduced(value)[:2])
            return super().reducer_override(value)

    return CodePickler


def dumps(value: Any, **options: Any) -> bytes:
    """`pickle.dumps` for what plain pickle cannot send, such as lambdas and objects of classes that have no name to import.

    Raises:
      ImportError: cloudpickle is not installed.
      Exception: the value cannot be pickled.
    """
    file = io.BytesIO()
    pickler()(file, **options).dump(value)
    return file.getvalue()


def dumps_with_buffers(value: Any) -> tuple[bytes, list[pickle.PickleBuffer]]:
    """An object for another process that runs no script of its own, and its arrays, which lie beside it.

    Plain pickle names classes; those of the main script, and of functions, are sent whole by cloudpickle if that is installed,
    which finds its own class again in what comes back.

    Raises:
      Exception: whatever pickling raises.
    """
    buffers: list[pickle.PickleBuffer] = []
    try:
        data = pickle.dumps(value, 5, buffer_callback=buffers.append)
    except (AttributeError, pickle.PicklingError):  # a class or function that has no name to import
        if not has_cloudpickle():
            raise
    else:
        if b"__main__" not in data or not has_cloudpickle():
            return data, buffers
    buffers.clear()
    return dumps(value, protocol=5, buffer_callback=buffers.append), buffers


@cache
def has_cloudpickle() -> bool:
    """Whether cloudpickle is installed."""
    return importlib.util.find_spec("cloudpickle") is not None


def _code(filename: str, make: Callable[..., CodeType], given: tuple[Any, ...]) -> CodeType:
    return make(*given).replace(co_filename=filename)
