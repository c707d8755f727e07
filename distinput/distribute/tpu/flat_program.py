# SPDX-License-Identifier: Apache-2.0
"""A traced program as one list of steps, without functions inside of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.extend.core

__all__ = ["FlatProgram", "flattened", "is_literal"]

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
        values: dict[Any, Any] = dict(zip(program.invars, inputs, strict=True))
        values.update(zip(program.constvars, constants, strict=True))

        def at(x: Any) -> Any:
            return x if is_literal(x) else values[x]

        for eqn in program.eqns:
            operands = tuple([at(x) for x in eqn.invars])
            inner = eqn.params.get(_CALLS.get(eqn.primitive.name, ""))
            if inner is not None and eqn.params.get("name") != keep:
                results = walk(getattr(inner, "jaxpr", inner), operands, placed(getattr(inner, "consts", ())))
            else:
                results = [_Place(x.aval) for x in eqn.outvars]
                steps.append(FlatStep(eqn.primitive, eqn.params, operands, tuple(results)))
            values.update(zip(eqn.outvars, results, strict=True))
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
