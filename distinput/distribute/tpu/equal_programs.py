# SPDX-License-Identifier: Apache-2.0
"""Whether programs, parameters and constants of two traces are equal."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from distinput.distribute.tpu.flat_program import is_literal

__all__ = ["equal_arrays", "equal_literals", "equal_parameters"]


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
