# SPDX-License-Identifier: Apache-2.0
"""Functions one after the other, as one function: what neighbouring `map` steps become.

Between two functions a result has to become what an element is: a list a tuple, a number of Python a NumPy scalar of
TensorFlow's dtype, text bytes. From the results of the first element a function is written, in Python, that only looks
whether the next results are of the same kind, as they nearly always are, and which has each function on a line of its own,
so that the line in a traceback tells whose error it was.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from distinput.core.block import Block
from distinput.core.calls import calls_of
from distinput.core.nest import Structure, structure_of
from distinput.core.owned import is_plain, owned
from distinput.core.values import as_leaf, dtype_of

__all__ = ["Chain"]

_FILE = "<neighbouring maps>"


class Chain:
    """Functions of one element each, called one after the other.

    Args:
      functions: the first is given the elements, each other one what the one before it returned; a tuple as arguments.
    """

    def __init__(self, functions: Sequence[Callable[..., Any]]) -> None:
        self.functions = tuple(functions)
        self._step: Callable[[Any], Any] | None = None
        self._plain: bool | None = None  # whether the first result was numbers and text, which nobody can change

    def results(self, rows: Block) -> Iterator[Any]:
        """What the last function returns for each of the rows, made as it is asked for; arrays are nobody else's."""
        if self._plain:
            return self._results(rows)
        results = map(owned, self._results(rows))
        return self._looked_at(results) if self._plain is None else results

    def _looked_at(self, results: Iterator[Any]) -> Iterator[Any]:
        for first in results:
            self._plain = is_plain(first)
            yield first
            break
        yield from results

    def _results(self, rows: Block) -> Iterator[Any]:
        if len(self.functions) == 1:
            return calls_of(self.functions[0], rows, unpack=True)
        if self._step is None:
            return self._learning(rows)
        return map(self._step, rows.elements())

    def __call__(self, element: Any) -> Any:
        """What the last function returns for one element."""
        if self._step is not None:
            return self._step(element)
        return self._learnt(element)

    def place(self, error: BaseException, element: Any) -> tuple[int, Any]:
        """Which function raised an error that came of `element`, and what it was given."""
        step = None if self._step is None else self._step.__code__
        trace = error.__traceback__
        while trace is not None:
            frame = trace.tb_frame
            if frame.f_code is _call.__code__:
                return frame.f_locals["index"], frame.f_locals["given"]
            if frame.f_code is step:
                index = (trace.tb_lineno - _FIRST_LINE) // _LINES
                return index, frame.f_locals[f"x{index}"]
            trace = trace.tb_next
        return 0, element

    def __reduce__(self) -> tuple[Any, ...]:
        return Chain, (self.functions,)

    def _learning(self, rows: Block) -> Iterator[Any]:
        elements = rows.elements()
        for element in elements:
            yield self._learnt(element)
            break
        if self._step is not None:
            yield from map(self._step, elements)

    def _learnt(self, element: Any) -> Any:
        """The result for the first element; `_step` does the same for the next ones."""
        links = []
        value = element
        for index, function in enumerate(self.functions[:-1]):
            value, link = _call(function, index, value, _Link.of)
            links.append(link)
        result = _call(self.functions[-1], len(self.functions) - 1, value, None)
        self._step = self._written(links, spread=type(element) is tuple)
        return result

    def _written(self, links: "Sequence[_Link]", *, spread: bool) -> Callable[[Any], Any]:
        lines = ["def step(x0):"]
        names: dict[str, Any] = {"ndarray": np.ndarray}
        given = "*x0" if spread else "x0"
        for index, function in enumerate(self.functions):
            names[f"f{index}"] = function
            link = links[index] if index < len(links) else None
            result = f"x{index + 1}"
            checks = [f"{result} = f{index}({given})"]
            if link is not None:
                names[f"settled{index}"] = link.settled
                parts = [f"{result}_{place}" for place in range(link.width)]
                tests = link.tests(parts or [result], names, f"t{index}_")
                if tests is None:
                    checks.append(f"{result} = settled{index}({result})")
                    given = f"*{result}" if link.spread else result
                elif parts:
                    checks.append(
                        f"if type({result}) is not tuple or len({result}) != {link.width}: {result} = settled{index}({result})"
                    )
                    checks.append(f"{', '.join(parts)}, = {result}")
                    checks.append(f"if {tests}: {', '.join(parts)}, = {result} = settled{index}({result})")
                    given = ", ".join(parts)
                else:
                    checks.append(f"if {tests}: {result} = settled{index}({result})")
                    given = result
            else:
                checks.append(f"return {result}")
            lines += ["    " + check for check in checks] + ["    pass"] * (_LINES - len(checks))
        source = "\n".join(lines)
        exec(_compiled(source), names)  # noqa: S102 - only our own words
        return names["step"]  # type: ignore[no-any-return]


_FIRST_LINE = 2
_LINES = 4
"""Where the body begins in what `Chain` writes, and the lines in it for each function."""


@lru_cache(maxsize=1024)
def _compiled(source: str) -> CodeType:
    return compile(source, _FILE, "exec")


def _call(
    function: Callable[..., Any],
    index: int,  # noqa: ARG001 - read from the frame, as `given` is, when the call fails
    given: Any,
    link_of: "Callable[[Any], _Link] | None",
) -> Any:
    """A call as the written function makes it."""
    value = function(*given) if type(given) is tuple else function(given)
    if link_of is None:
        return value
    link = link_of(value)
    return link.settled(value), link


@dataclass(frozen=True)
class _Link:
    """What comes from one function and goes to the next: its structure, and the dtype of each leaf."""

    structure: Structure
    dtypes: tuple[Any, ...]
    kinds: tuple[Any, ...]

    @staticmethod
    def of(value: Any) -> "_Link":
        value = tuple(value) if type(value) is list else value
        structure = structure_of(value)
        raw = structure.flatten(value)
        leaves = [as_leaf(leaf) for leaf in raw]
        kinds = [type(leaf) if leaf is before else None for leaf, before in zip(leaves, raw, strict=True)]
        return _Link(structure, tuple(map(_dtype_of, leaves)), tuple(kinds))

    @property
    def width(self) -> int:
        """How many arguments the next function gets, where they are leaves; 0 where it gets one."""
        return len(self.structure.children) if self.structure.is_flat_tuple else 0

    @property
    def spread(self) -> bool:
        """Whether the next function gets the members of a tuple."""
        return self.structure.kind == "tuple"

    def tests(self, parts: list[str], names: dict[str, Any], prefix: str) -> str | None:
        """An expression that is true when a leaf is not what it was at first; None when leaves have to be settled always."""
        if not (self.structure.is_leaf or self.structure.is_flat_tuple):
            return None
        tests = []
        for place, (part, kind, dtype) in enumerate(zip(parts, self.kinds, self.dtypes, strict=True)):
            name = f"{prefix}{place}"
            if kind is bytes or (kind is not None and issubclass(kind, np.number | np.bool_)):
                names[name] = kind
                tests.append(f"type({part}) is not {name}")
            elif kind is np.ndarray and dtype.kind not in "SUO":
                names[name] = dtype
                tests.append(f"type({part}) is not ndarray or {part}.dtype is not {name} or not {part}.ndim")
            else:
                return None
        return " or ".join(tests)

    def settled(self, value: Any) -> Any:
        """`value` as an element.

        Raises:
          TypeError: it has another structure or dtype than the first result, or cannot be an array.
        """
        value = tuple(value) if type(value) is list else value
        leaves = [as_leaf(leaf) for leaf in self.structure.flatten(value)]
        for leaf, dtype in zip(leaves, self.dtypes, strict=True):
            if _dtype_of(leaf) != dtype:
                raise TypeError(f"the elements differ in dtype: {dtype} and {_dtype_of(leaf)}")
        return self.structure.build([leaf.to_user() if _dtype_of(leaf) is None else leaf for leaf in leaves])


def _dtype_of(leaf: Any) -> Any:
    """The dtype of a leaf; None for a data set."""
    return None if getattr(leaf, "nest_leaf", False) else dtype_of(leaf)
