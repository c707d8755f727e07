# SPDX-License-Identifier: Apache-2.0
"""What added rows do to the results of one step of a program: a rule for each kind of step.

Each value is one of three things, of which `distinput.distribute.tpu.row_padding` speaks: free of rows, by rows, or unknown. A
rule takes what is known of the operands and says what is known of the results; a step without a rule makes its results unknown.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax.extend.core
import numpy as np

from distinput.names.lazy import dataclass

# ---- A traced program as one list of steps, without functions inside of it

_CALLS = {
    "checkpoint": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "remat": "jaxpr",
    "remat2": "jaxpr",
}


class _Place:
    """A value of a flat program; each has a place of its own, however often a function is called."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval = aval


@dataclass(frozen=True)
class FlatStep:
    """A step: a primitive, its parameters, its operands, and the values that it makes."""

    primitive: Any
    params: dict[str, Any]
    invars: tuple[Any, ...]
    outvars: tuple[Any, ...]


@dataclass(frozen=True)
class FlatProgram:
    """A program of plain steps.

    Args:
      invars: its inputs.
      constvars: its constants.
      consts: their values.
      eqns: its steps, in order.
      outvars: its results.
    """

    invars: tuple[Any, ...]
    constvars: tuple[Any, ...]
    consts: tuple[Any, ...]
    eqns: tuple[FlatStep, ...]
    outvars: tuple[Any, ...]


def flattened(closed: Any, keep: str) -> FlatProgram:
    """The program with the steps of the functions that it calls in the place of the calls; loops and branches stay.

    Args:
      closed: a closed jaxpr.
      keep: the name of a compiled function whose call stays a step.
    """
    steps: list[FlatStep] = []
    constvars: list[Any] = []
    consts: list[Any] = []

    def walk(program: Any, inputs: Sequence[Any], constants: Sequence[Any]) -> list[Any]:
        known: dict[Any, Any] = dict(zip(program.invars, inputs, strict=True))
        known.update(zip(program.constvars, constants, strict=True))

        def at(x: Any) -> Any:
            return x if is_literal(x) else known[x]

        for eqn in program.eqns:
            operands = tuple([at(x) for x in eqn.invars])
            inner = eqn.params.get(_CALLS.get(eqn.primitive.name, ""))
            if inner is not None and eqn.params.get("name") != keep:
                results = walk(getattr(inner, "jaxpr", inner), operands, placed(getattr(inner, "consts", ())))
            else:
                results = [_Place(x.aval) for x in eqn.outvars]
                steps.append(FlatStep(eqn.primitive, eqn.params, operands, tuple(results)))
            known.update(zip(eqn.outvars, results, strict=True))
        return [at(x) for x in program.outvars]

    def placed(values: Sequence[Any]) -> list[Any]:
        made = [_Place(jax.typeof(value)) for value in values]
        constvars.extend(made)
        consts.extend(values)
        return made

    invars = [_Place(x.aval) for x in closed.jaxpr.invars]
    outvars = walk(closed.jaxpr, invars, placed(closed.consts))
    return FlatProgram(tuple(invars), tuple(constvars), tuple(consts), tuple(steps), tuple(outvars))


def is_literal(x: Any) -> bool:
    """True for a number that is written in the place of an operand."""
    return isinstance(x, jax.extend.core.Literal)


# ---- Whether programs, parameters and constants of two traces are equal


def equal_arrays(a: Any, b: Any) -> bool:
    """True if two arrays have the same shape, dtype and values; NaNs are equal."""
    if np.shape(a) != np.shape(b) or a.dtype != b.dtype or not a.dtype.isbuiltin:
        return False
    return bool(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=a.dtype.kind in "fc"))


def equal_literals(a: Any, b: Any) -> bool:
    """True if two literals of programs are of the same type and value."""
    if type(a) is not type(b):
        return False
    return a is b or repr(np.asarray(a)) == repr(np.asarray(b))


def equal_parameters(a: Any, b: Any) -> bool:
    """True if two parameters of a step are equal, loops and branches inside of it included."""
    if a is b:
        return True
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(equal_parameters(x, y) for x, y in zip(a, b, strict=True))
    if hasattr(a, "jaxpr") and hasattr(b, "jaxpr"):
        return _equal_programs(a.jaxpr, b.jaxpr) and _equal_consts(a.consts, b.consts)
    if hasattr(a, "eqns") and hasattr(b, "eqns"):
        return _equal_programs(a, b)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and equal_arrays(a, b)
    try:
        return bool(a == b)
    except Exception:  # noqa: BLE001 - what cannot be compared may differ
        return False


def _equal_consts(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(x is y or equal_arrays(x, y) for x, y in zip(a, b, strict=True))


def _equal_programs(a: Any, b: Any) -> bool:
    """True if two programs inside of steps are the same to the last number."""
    if len(a.eqns) != len(b.eqns) or len(a.invars) != len(b.invars) or len(a.outvars) != len(b.outvars):
        return False
    pairs: dict[Any, Any] = dict(zip([*a.invars, *a.constvars], [*b.invars, *b.constvars], strict=False))

    def equal(x: Any, y: Any) -> bool:
        if is_literal(x) or is_literal(y):
            return is_literal(x) and is_literal(y) and equal_literals(x.val, y.val)
        return pairs.get(x) is y and x.aval.shape == y.aval.shape  # type: ignore[union-attr]

    for x, y in zip(a.eqns, b.eqns, strict=True):
        if x.primitive is not y.primitive or set(x.params) != set(y.params) or len(x.invars) != len(y.invars):
            return False
        if not all(equal(p, q) for p, q in zip(x.invars, y.invars, strict=True)):
            return False
        if not all(equal_parameters(x.params[name], y.params[name]) for name in x.params):
            return False
        pairs.update(zip(x.outvars, y.outvars, strict=True))
    return all(equal(p, q) for p, q in zip(a.outvars, b.outvars, strict=True))


# ---- What added rows do to the results of one step of a program: a rule for each kind of step


@dataclass(frozen=True)
class ValueKind:
    """What is known of a value.

    Args:
      name: for people who debug.
    """

    name: str


CLEAN = ValueKind("free of rows")
ZERO = ValueKind("free of rows, and zero")
ROWS = ValueKind("by rows")
ZEROED = ValueKind("by rows, and added rows are zero")
UNKNOWN = ValueKind("unknown")
BY_ROWS = (ROWS, ZEROED)


def is_free(kind: ValueKind) -> bool:
    """True if the value is the same for any number of rows."""
    return kind is CLEAN or kind is ZERO


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ELEMENTWISE = _names(
    """
    abs acos acosh add add_any and asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt ceil clamp clz complex
    conj convert_element_type copy copy_p cos cosh digamma div eq erf erf_inv erfc exp exp2 expm1 floor ge gt
    igamma imag integer_pow is_finite le lgamma log log1p logistic lt max min mul ne neg nextafter not
    optimization_barrier or population_count pow real reduce_precision rem round rsqrt select_n shift_left
    shift_right_arithmetic shift_right_logical sign sin sinh sqrt square stop_gradient sub tan tanh xor
    """
)
_ZERO_STAYS = _names(
    """
    abs asin asinh atan atanh cbrt ceil convert_element_type copy copy_p conj erf erf_inv expm1 floor imag log1p
    neg real reduce_precision round sign sin sinh sqrt square stop_gradient tan tanh
    """
)
_ZERO_MOVED = _names("broadcast_in_dim expand_dims reshape squeeze transpose")
_ZERO_TOGETHER = _names("add add_any max min or sub xor")
_REDUCTIONS = _names("argmax argmin reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum reduce_xor")
_CUMULATIVE = _names("cumlogsumexp cummax cummin cumprod cumsum")
MASK = "distinput_row_mask"


def rows_axis(small: Sequence[int], large: Sequence[int], sizes: tuple[int, int]) -> int | None:
    """The only dimension that differs, if it has these sizes; else None."""
    if len(small) != len(large):
        return None
    differing = [i for i, (a, b) in enumerate(zip(small, large, strict=True)) if a != b]
    return differing[0] if len(differing) == 1 and (small[differing[0]], large[differing[0]]) == sizes else None


@dataclass(frozen=True)
class PairedStep:
    """One step of both programs.

    Args:
      name: of its primitive.
      small: the step for the rows of the program.
      large: the step for the rows of data.
      kinds: of its operands.
      sizes: these numbers of rows.
    """

    name: str
    small: Any
    large: Any
    kinds: tuple[ValueKind, ...]
    sizes: tuple[int, int]

    def axis(self, operand: int) -> int | None:
        """The dimension of rows of an operand."""
        return rows_axis(self.small.invars[operand].aval.shape, self.large.invars[operand].aval.shape, self.sizes)

    @property
    def out(self) -> int | None:
        """The dimension of rows of the first result."""
        return rows_axis(self.small.outvars[0].aval.shape, self.large.outvars[0].aval.shape, self.sizes)

    @property
    def grows(self) -> bool:
        """True if some result has another shape for more rows."""
        return any(a.aval.shape != b.aval.shape for a, b in zip(self.small.outvars, self.large.outvars, strict=True))

    def same(self, *names: str) -> bool:
        """True if these parameters are equal in both programs."""
        return all(equal_parameters(self.small.params.get(name), self.large.params.get(name)) for name in names)

    @property
    def is_same(self) -> bool:
        """True if all parameters are equal in both programs, loops and branches inside of them included."""
        return set(self.small.params) == set(self.large.params) and self.same(*self.small.params)


def kinds_of(step: PairedStep) -> list[ValueKind]:
    """What is known of each result of a step."""
    count = len(step.small.outvars)
    if UNKNOWN in step.kinds:
        return [UNKNOWN] * count
    if step.name in ("jit", "pjit") and step.small.params.get("name") == step.large.params.get("name") == MASK:
        return [ZEROED if all(map(is_free, step.kinds)) and step.out == 0 else UNKNOWN]
    if not any(kind in BY_ROWS for kind in step.kinds):
        if not step.grows:
            zero = step.name in _ZERO_STAYS | _ZERO_MOVED and step.kinds[0] is ZERO
            return [(ZERO if zero else CLEAN) if step.is_same else UNKNOWN] * count
        return [_made(step)] * count
    rule = _RULES.get(step.name)
    return [UNKNOWN if rule is None else rule(step)] * count


def _made(step: PairedStep) -> ValueKind:
    """Rows made of what has none."""
    if step.name == "broadcast_in_dim" and step.same("broadcast_dimensions"):
        shape, target = step.small.invars[0].aval.shape, step.out
        along = dict(zip(step.small.params["broadcast_dimensions"], shape, strict=True))
        if target is None or along.get(target, 1) != 1:
            return UNKNOWN
        return ZEROED if step.kinds[0] is ZERO else ROWS
    if step.name == "iota" and step.same("dimension", "dtype"):
        return ROWS
    return UNKNOWN


def _elementwise(step: PairedStep) -> ValueKind:
    kinds = step.kinds
    if not step.is_same:
        return UNKNOWN
    rows = [i for i, kind in enumerate(kinds) if kind in BY_ROWS]
    if any(step.axis(i) != step.out for i in rows):
        return UNKNOWN
    zero = [kind is ZEROED or kind is ZERO for kind in kinds]
    if step.name in ("mul", "and"):
        stays = any(zero)
    elif step.name == "div":
        stays = zero[0]
    elif step.name == "select_n":
        # An added row has the predicate's zero, false, and so takes the first case.
        stays = all(zero[1:]) or (zero[0] and zero[1])
    elif step.name == "integer_pow":
        stays = zero[0] and step.small.params["y"] > 0
    elif step.name in _ZERO_TOGETHER:
        stays = all(zero)
    else:
        stays = step.name in _ZERO_STAYS and zero[0]
    return ZEROED if stays else ROWS


def _reduction(step: PairedStep) -> ValueKind:
    axes, axis = step.small.params["axes"], step.axis(0)
    if not step.same("axes") or axis is None:
        return UNKNOWN
    if axis in axes:
        return CLEAN if step.kinds[0] is ZEROED and step.name in ("reduce_sum", "reduce_or", "reduce_xor") else UNKNOWN
    return ZEROED if step.kinds[0] is ZEROED and step.name in ("reduce_sum", "reduce_or", "reduce_and") else ROWS


def _cumulative(step: PairedStep) -> ValueKind:
    if not step.same("axis", "reverse") or step.small.params["axis"] == step.axis(0):
        return UNKNOWN
    return ZEROED if step.kinds[0] is ZEROED and step.name == "cumsum" else ROWS


def _dot(step: PairedStep) -> ValueKind:
    if not step.same("dimension_numbers"):
        return UNKNOWN
    contracted, batched = step.small.params["dimension_numbers"]
    kinds = []
    for operand in (0, 1):
        if step.kinds[operand] not in BY_ROWS:
            kinds.append("none")
            continue
        axis = step.axis(operand)
        if axis in contracted[operand]:
            kinds.append(f"contracted {list(contracted[operand]).index(axis)}")
        elif axis in batched[operand]:
            kinds.append(f"batched {list(batched[operand]).index(axis)}")
        else:
            kinds.append("kept")
    zero = ZEROED in step.kinds or ZERO in step.kinds
    if "contracted" in kinds[0] + kinds[1]:
        return CLEAN if kinds[0] == kinds[1] and zero else UNKNOWN
    apart = kinds[0] == kinds[1] if "batched" in kinds[0] + kinds[1] else sorted(kinds) == ["kept", "none"]
    return (ZEROED if zero else ROWS) if apart else UNKNOWN


def _convolution(step: PairedStep) -> ValueKind:
    """Rows are the batch of a convolution; or they are summed over, as in the gradient of its kernel."""
    names = ("window_strides", "padding", "lhs_dilation", "rhs_dilation", "dimension_numbers")
    if not step.same(*names, "feature_group_count", "batch_group_count"):
        return UNKNOWN
    params = step.small.params
    if params["feature_group_count"] != 1 or params["batch_group_count"] != 1:
        return UNKNOWN
    lhs, rhs = params["dimension_numbers"].lhs_spec, params["dimension_numbers"].rhs_spec
    kinds = step.kinds
    if kinds[0] in BY_ROWS and is_free(kinds[1]) and step.axis(0) == lhs[0]:
        return kinds[0]
    if kinds[0] in BY_ROWS and kinds[1] in BY_ROWS and step.axis(0) == lhs[1] and step.axis(1) == rhs[1]:
        return CLEAN if ZEROED in kinds else UNKNOWN
    return UNKNOWN


def _moved(step: PairedStep) -> ValueKind:
    """Shapes change, but the dimension of rows stays a dimension of its own."""
    kind = step.kinds[0]
    if step.name == "reshape":
        small, axis, out = step.small, step.axis(0), step.out
        if axis is None or out is None or small.params.get("dimensions") is not None:
            return UNKNOWN
        before, after = small.invars[0].aval.shape, small.outvars[0].aval.shape
        return kind if np.prod(before[:axis]) == np.prod(after[:out]) else UNKNOWN
    if step.name == "broadcast_in_dim":
        axis, out = step.axis(0), step.out
        if axis is None or not step.same("broadcast_dimensions"):
            return UNKNOWN
        return kind if step.small.params["broadcast_dimensions"][axis] == out else UNKNOWN
    if step.name == "transpose":
        return kind if step.same("permutation") else UNKNOWN
    stays = step.name != "rev" or step.axis(0) not in step.small.params["dimensions"]
    return kind if step.same("dimensions") and stays else UNKNOWN


def _slice(step: PairedStep) -> ValueKind:
    axis, small, large = step.axis(0), step.small, step.large
    if axis is None or step.out is None or not step.same("strides"):
        return UNKNOWN
    for each in (small, large):
        params, strides = each.params, each.params["strides"]
        whole = params["start_indices"][axis] == 0 and params["limit_indices"][axis] == each.invars[0].aval.shape[axis]
        if not whole or (strides is not None and strides[axis] != 1):
            return UNKNOWN
    others = [i for i in range(len(small.invars[0].aval.shape)) if i != axis]
    for name in ("start_indices", "limit_indices"):
        if any(small.params[name][i] != large.params[name][i] for i in others):
            return UNKNOWN
    return step.kinds[0]


def _concatenate(step: PairedStep) -> ValueKind:
    axes = {step.axis(i) for i in range(len(step.kinds))}
    if not step.same("dimension") or axes != {step.out} or step.out == step.small.params["dimension"]:
        return UNKNOWN
    if any(kind not in BY_ROWS for kind in step.kinds):
        return UNKNOWN
    return ZEROED if set(step.kinds) == {ZEROED} else ROWS


def _split(step: PairedStep) -> ValueKind:
    return step.kinds[0] if step.same("axis", "sizes") and step.small.params["axis"] != step.axis(0) else UNKNOWN


def _pad(step: PairedStep) -> ValueKind:
    axis = step.axis(0)
    if axis is None or not step.same("padding_config") or step.small.params["padding_config"][axis] != (0, 0, 0):
        return UNKNOWN
    return ZEROED if step.kinds[0] is ZEROED and step.kinds[1] is ZERO else ROWS


def _sort(step: PairedStep) -> ValueKind:
    dimension = step.small.params["dimension"]
    axes = {step.axis(i) for i in range(len(step.kinds))}
    fits = step.same("dimension", "is_stable", "num_keys") and len(axes) == 1 and dimension not in axes
    return ROWS if fits and all(kind in BY_ROWS for kind in step.kinds) else UNKNOWN


def _gather(step: PairedStep) -> ValueKind:
    """Rows of a table by indices, or one value of each row."""
    numbers = step.small.params["dimension_numbers"]
    if not step.same("dimension_numbers", "mode", "fill_value"):
        return UNKNOWN
    table, indices = step.kinds[0], step.kinds[1]
    if is_free(table) and indices in BY_ROWS:
        if step.axis(1) == len(step.small.invars[1].aval.shape) - 1 or not step.same("slice_sizes"):
            return UNKNOWN
        return ROWS
    if table in BY_ROWS and indices in BY_ROWS:
        along = dict(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))
        return ROWS if step.axis(0) in along and along[step.axis(0)] == step.axis(1) else UNKNOWN
    if table in BY_ROWS and is_free(indices):
        axis = step.axis(0)  # whole rows, of each of them the same places
        moved = axis in numbers.start_index_map or axis in numbers.collapsed_slice_dims
        full = all(
            eqn.params["slice_sizes"][axis] == eqn.invars[0].aval.shape[axis] for eqn in (step.small, step.large)
        )
        return ROWS if full and not moved and axis not in numbers.operand_batching_dims else UNKNOWN
    return UNKNOWN


def _scatter_add(step: PairedStep) -> ValueKind:
    """Additions to a table, which zeros do not change; or to one place of each row."""
    numbers = step.small.params["dimension_numbers"]
    if not step.same("dimension_numbers", "mode"):
        return UNKNOWN
    table, indices, updates = step.kinds
    if is_free(table):
        return CLEAN if updates is ZEROED else UNKNOWN
    if table in BY_ROWS and indices in BY_ROWS and updates in BY_ROWS:
        along = dict(zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True))
        if step.axis(0) not in along or along[step.axis(0)] != step.axis(1):
            return UNKNOWN
        return ZEROED if table is ZEROED and updates is ZEROED else ROWS
    return UNKNOWN


def _window(step: PairedStep) -> ValueKind:
    """Windows inside of each row, such as pooling."""
    axis = step.axis(0)
    if axis is None or axis != step.out:
        return UNKNOWN
    for eqn in (step.small, step.large):
        params = eqn.params
        if params["window_dimensions"][axis] != 1 or params["window_strides"][axis] != 1:
            return UNKNOWN
        if tuple(params["padding"][axis]) != (0, 0):
            return UNKNOWN
    names = [name for name in step.small.params if name not in ("jaxpr", "consts", "out_sharding")]
    return ROWS if step.same(*names) else UNKNOWN


_RULES: dict[str, Callable[[PairedStep], ValueKind]] = {
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    **dict.fromkeys(_REDUCTIONS, _reduction),
    **dict.fromkeys(_CUMULATIVE, _cumulative),
    "broadcast_in_dim": _moved,
    "concatenate": _concatenate,
    "conv_general_dilated": _convolution,
    "dot_general": _dot,
    "expand_dims": _moved,
    "gather": _gather,
    "pad": _pad,
    "reduce_window_max": _window,
    "reduce_window_sum": _window,
    "reshape": _moved,
    "rev": _moved,
    "scatter-add": _scatter_add,
    "slice": _slice,
    "sort": _sort,
    "split": _split,
    "squeeze": _moved,
    "transpose": _moved,
}
