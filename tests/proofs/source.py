# SPDX-License-Identifier: Apache-2.0
"""The library's own source, executed with arithmetic that also computes with `Integer`; or with one place of it changed."""

import ast
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from tests.proofs.integers import Integer, Truth

__all__ = ["MODULES", "Change", "Code"]

MODULES = (
    "distinput.columns.block",
    "distinput.distribute.input.dealing",
    "distinput.distribute.input.distribution",
    "distinput.kernels.random_orders",
    "distinput.plan.batch_sizes",
    "distinput.sharding.policies.balanced",
    "distinput.plan.batch_sizes",
    "distinput.sharding.own_rows",
    "distinput.sharding.own_rows",
)
"""What the proofs are about; what these import of one another is the same copy."""

_AS_IT_IS = {"inlined", "kernel", "lru_cache"}  # decorators that compile or remember change no answer

Change = tuple[str, str, str]
"""A module, a text that it holds once, and what to put in its place."""


class Code:
    """Modules of the library, each executed from its source file.

    Args:
      symbolic: NumPy's functions take an `Integer` too; otherwise the modules are as they are imported.
      change: what is wrong in them, on purpose.

    Raises:
      LookupError: the text to be changed is not in the module, or is there more than once.
    """

    def __init__(self, *, symbolic: bool, change: Change | None = None) -> None:
        self._symbolic, self._change, self._made = symbolic, change, dict[str, ModuleType]()
        if change is not None:
            self(change[0])

    def __call__(self, name: str) -> Any:
        """The module of this name."""
        if name not in self._made:
            self._made[name] = self._execute(name)
        return self._made[name]

    def _execute(self, name: str) -> ModuleType:
        found = find_spec(name)
        assert found is not None, name
        assert found.origin is not None, name
        source = Path(found.origin).read_text(encoding="utf-8")
        if self._change is not None and self._change[0] == name:
            _, old, new = self._change
            if source.count(old) != 1:
                raise LookupError(f"{name} must hold {old!r} once, and has it {source.count(old)} times")
            source = source.replace(old, new)
        module = ModuleType(name)
        module.__file__ = found.origin
        exec(_compiled(source, found.origin), module.__dict__)
        for key, value in list(vars(module).items()):
            home = getattr(value, "__module__", None)
            if isinstance(value, FunctionType | type) and home in MODULES and home != name:
                setattr(module, key, getattr(self(home), key))
        if self._symbolic:
            vars(module).update(_SYMBOLIC)
        return module


@cache
def _compiled(source: str, file: str) -> CodeType:
    """The code of a module, its functions without the decorators that change no answer; every proof executes it anew."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [each for each in node.decorator_list if _name(each) not in _AS_IT_IS]
    return compile(tree, file, "exec")


def _name(decorator: ast.expr) -> str:
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return function.id if isinstance(function, ast.Name) else ""


class _Arrays:
    """NumPy, where one `Integer` stands for all elements of an array."""

    def __getattr__(self, name: str) -> Any:
        return {"uint64": _Word, "int64": _Number}.get(name) or getattr(np, name)

    def arange(self, *bounds: Any, dtype: Any = None) -> Any:
        some = any(isinstance(bound, Integer) for bound in bounds)
        return _range(*bounds)[0] if some else np.arange(*bounds, dtype=dtype)

    def clip(self, value: Any, low: Any, high: Any) -> Any:
        return np.minimum(np.maximum(value, low), high)

    def any(self, value: Any) -> Any:
        return value if isinstance(value, Truth) else np.any(value)

    def asarray(self, value: Any, dtype: Any = None) -> Any:
        return value if isinstance(value, Integer) else np.asarray(value, dtype)


class _Converts(type):
    """A type of NumPy that takes an `Integer` too."""

    def __call__(cls, value: Any = 0) -> Any:
        kind = cls.__mro__[1]
        return value.astype(kind) if isinstance(value, Integer) else kind(value)


class _Word(np.uint64, metaclass=_Converts):
    pass


class _Number(np.int64, metaclass=_Converts):
    pass


def _int(value: Any = 0) -> Any:
    return value if isinstance(value, Integer) else int(value)


def _range(*bounds: Any) -> Any:
    """One number stands for all: the first of `first` to `stop`, or the one that the proof calls `each`."""
    some = [bound for bound in bounds if isinstance(bound, Integer)]
    if not some:
        return range(*bounds)
    return (bounds[0] if len(bounds) == 2 else some[0].facts.each,)


_SYMBOLIC: Mapping[str, Any] = {"np": _Arrays(), "range": _range, "int": _int}
