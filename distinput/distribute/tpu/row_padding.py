# SPDX-License-Identifier: Apache-2.0
"""Whether rows that are added to the arguments of a program can change its results.

A function is traced for b rows, those of the program, and for n rows, those of data, and the two programs are compared step
by step. A dimension that is b in one and n in the other is a dimension of rows. Each value is then one of three things:

* free of rows: the same in both programs, such as a sum over rows of which a mask has set the added ones to zero;
* by rows: its first n rows are those of the program for n rows, so the others are to be cut off;
* unknown: anything else, such as a mean over all rows, or a number computed from b.

Only what is proved counts: a step without a rule in `padding_rules.py` makes its results unknown. Added rows repeat a row of
data, so a product with a zero is taken to be zero: it is not only where the data itself gives an infinity or a NaN.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from distinput.distribute.tpu.arguments import RunArguments, Split
from distinput.distribute.tpu.mesh import ReplicaMesh
from distinput.distribute.tpu.padding_rules import (
    BY_ROWS,
    CLEAN,
    MASK,
    ROWS,
    UNKNOWN,
    ZERO,
    FlatProgram,
    PairedStep,
    ValueKind,
    equal_arrays,
    equal_literals,
    flattened,
    is_free,
    is_literal,
    kinds_of,
    rows_axis,
)
from distinput.distribute.tpu.program import Traced, has_callbacks, trace_function


def padded_results(
    strategy: Any,
    mesh: ReplicaMesh,
    fn: Callable[..., Any],
    arguments: RunArguments,
    rows: int,
    data_rows: int,
    traced: Traced | None,
) -> tuple[bool, ...] | None:
    """What to keep of the results if arrays of `data_rows` are padded to `rows`; None if padding might change them.

    For each array of the result, True if it has the rows of the arguments and keeps those of data.

    Args:
      strategy: the strategy.
      mesh: its devices.
      fn: the function.
      arguments: its arguments.
      rows: the number of rows with padding.
      data_rows: the number of rows of data of a replica, less than `rows`.
      traced: the function traced for that many rows, if it has been.
    """
    try:
        small = traced or trace_function(strategy, mesh, fn, arguments, rows)
        if has_callbacks(small.jaxpr.jaxpr):
            return None
        found = _compared(small, trace_function(strategy, mesh, fn, arguments, data_rows or rows + 1), arguments)
        if found is not None and not data_rows:
            empty = trace_function(strategy, mesh, fn, arguments, 0)
            if not _same_outcome(small, empty) or not _same_without_rows(*found, small, empty):
                return None
    except Exception:  # noqa: BLE001 - a function that cannot be traced is run as it is, and fails there if it must
        return None
    if found is None:
        return None
    program, known = found
    return tuple([x in known and known[x][0] in BY_ROWS for x in program.outvars[: small.num_results]])


_Known: TypeAlias = dict[Any, tuple[ValueKind, Any]]
"""What is known of each value of a program, and the value of the other program that corresponds to it."""


def _flat(traced: Traced) -> FlatProgram:
    return flattened(traced.jaxpr, MASK)


def _same_outcome(small: Traced, large: Traced) -> bool:
    """True if two traces return the same structure and use the same variables."""
    return (
        small.structure == large.structure
        and small.places == large.places
        and small.shared == large.shared
        and all(a is b or _same_constant(a, b) for a, b in zip(small.constants, large.constants, strict=True))
        and _same_variables(small, large)
    )


def _same_constant(a: Any, b: Any) -> bool:
    """True for equal numbers and texts; `len(x)` is a number that differs."""
    return type(a) is type(b) and isinstance(a, bool | int | float | complex | str | bytes) and repr(a) == repr(b)


def _compared(small: Traced, large: Traced, arguments: RunArguments) -> tuple[FlatProgram, _Known] | None:
    """What is known of a program, compared with that for another number of rows; None if a result is unknown."""
    if not _same_outcome(small, large):
        return None
    inputs, sizes = [CLEAN], None
    for leaf, before, after in zip(arguments.arrays, small.jaxpr.in_avals[1:], large.jaxpr.in_avals[1:], strict=True):
        by_rows = isinstance(leaf, Split) and bool(leaf.shapes[0])
        inputs.append(ROWS if by_rows else CLEAN)
        if by_rows:
            sizes = before.shape[0], after.shape[0]
    a, b = _flat(small), _flat(large)
    if sizes is None or len(a.consts) != len(b.consts):
        return None
    known = _known(a, b, inputs, _constants(a, b, small, large), sizes)
    if known is None:
        return None
    for i, (p, q) in enumerate(zip(a.outvars, b.outvars, strict=True)):
        kind = _kind_of(known, p, q)
        if kind is UNKNOWN:
            return None
        if kind in BY_ROWS and (i >= small.num_results or rows_axis(p.aval.shape, q.aval.shape, sizes) != 0):
            return None
    return a, known


def _same_variables(small: Traced, large: Traced) -> bool:
    a, b = small.trace, large.trace
    return (
        [id(x) for x in a.stores] == [id(x) for x in b.stores]
        and [id(x) for x in a.written] == [id(x) for x in b.written]
        and [(id(x), i) for x, i in a.hosts] == [(id(x), i) for x, i in b.hosts]
    )


def _constants(a: FlatProgram, b: FlatProgram, small: Traced, large: Traced) -> list[ValueKind]:
    """Arrays that are part of the programs: what stands for variables, and what the function made itself."""
    stand_ins = {id(x) for each in (small, large) for x in each.trace.stand_ins + each.trace.host_stand_ins}
    found = []
    for x, y in zip(a.consts, b.consts, strict=True):
        same = x is y or (id(x) in stand_ins and id(y) in stand_ins) or equal_arrays(x, y)
        found.append(CLEAN if same else UNKNOWN)
    return found


def _kind_of(known: _Known, x: Any, y: Any) -> ValueKind:
    if is_literal(x) or is_literal(y):
        if not (is_literal(x) and is_literal(y)) or not equal_literals(x.val, y.val):
            return UNKNOWN
        return CLEAN if np.any(x.val) else ZERO
    # The same value must be used in both programs, or their steps do not correspond.
    kind, other = known[x]
    return kind if other is y else UNKNOWN


def _known(
    a: FlatProgram, b: FlatProgram, inputs: Sequence[ValueKind], constants: Sequence[ValueKind], sizes: tuple[int, int]
) -> _Known | None:
    """What is known of the values of two programs for these numbers of rows; None if their steps do not correspond."""
    if len(a.eqns) != len(b.eqns) or len(a.outvars) != len(b.outvars):
        return None
    known: _Known = {}
    for p, kind, q in zip([*a.invars, *a.constvars], [*inputs, *constants], [*b.invars, *b.constvars], strict=True):
        known[p] = kind, q
    for x, y in zip(a.eqns, b.eqns, strict=True):
        name = x.primitive.name
        if name != y.primitive.name or len(x.invars) != len(y.invars) or len(x.outvars) != len(y.outvars):
            return None
        operands = tuple([_kind_of(known, p, q) for p, q in zip(x.invars, y.invars, strict=True)])
        step = PairedStep(name, x, y, operands, sizes)
        for p, q, kind in zip(x.outvars, y.outvars, kinds_of(step), strict=True):
            known[p] = _checked(kind, p.aval.shape, q.aval.shape, sizes), q
    return known


def _same_without_rows(program: FlatProgram, known: _Known, small: Traced, empty: Traced) -> bool:
    """True if a program for no rows at all computes what the padded one does when no row is data.

    JAX leaves steps out where there are no rows, so the two are compared as expressions: what is by rows is empty, and a
    sum of it is zero.
    """

    def expressions(program: FlatProgram, trace: Any, is_empty: Callable[[Any], bool]) -> list[Any]:
        variables = {id(x): i for i, x in enumerate(trace.stand_ins + trace.host_stand_ins)}
        made: dict[Any, Any] = {x: ("in", i) for i, x in enumerate(program.invars)}
        for x, value in zip(program.constvars, program.consts, strict=True):
            made[x] = ("variable", variables[id(value)]) if id(value) in variables else ("const", _written(value))
        made = {x: _EMPTY if is_empty(x) else node for x, node in made.items()}

        def node_of(x: Any) -> Any:
            return ("literal", _written(x.val)) if is_literal(x) else made[x]

        for step in program.eqns:
            nodes = [node_of(x) for x in step.invars]
            for i, out in enumerate(step.outvars):
                if is_empty(out):
                    made[out] = _EMPTY
                elif _EMPTY not in nodes:
                    params = tuple(sorted([(key, _written(value)) for key, value in step.params.items()]))
                    made[out] = step.primitive.name, params, tuple(nodes), i
                elif step.primitive.name in ("reduce_sum", "reduce_or", "reduce_xor", "dot_general"):
                    made[out] = "zeros", out.aval.shape, str(out.aval.dtype)
                elif step.primitive.name == "scatter-add" and nodes[0] is not _EMPTY:
                    made[out] = nodes[0]
                else:
                    made[out] = "unknown", id(step)
        return [node_of(x) for x in program.outvars]

    padded = expressions(program, small.trace, lambda x: known[x][0] in BY_ROWS)
    return padded == expressions(_flat(empty), empty.trace, lambda x: not np.prod(x.aval.shape))


def _written(value: Any) -> str:
    """A value as text that is equal for equal values alone."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        array = np.asarray(value)
        return f"{array.dtype}{array.shape}{array.tobytes().hex()}"
    return repr(value)


_EMPTY = "empty"


def _checked(kind: ValueKind, small: Sequence[int], large: Sequence[int], sizes: tuple[int, int]) -> ValueKind:
    """The kind, if the shapes agree with it."""
    if is_free(kind):
        return kind if tuple(small) == tuple(large) else UNKNOWN
    if kind in BY_ROWS:
        return kind if rows_axis(small, large, sizes) is not None else UNKNOWN
    return UNKNOWN
