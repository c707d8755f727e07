# SPDX-License-Identifier: Apache-2.0
"""Chooses how a run is carried out: by a compiled program, padded or not, or replica by replica."""

import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable
from threading import RLock
from typing import Any

import jax

from distinput.distribute.tpu.arguments import Constant, RunArguments, function_key
from distinput.distribute.tpu.mesh import ReplicaMesh
from distinput.distribute.tpu.padding import PaddedResults, padded_results
from distinput.distribute.tpu.program import Program, trace_function
from distinput.distribute.tpu.strategy import RunCounts

__all__ = ["Runner"]

_PROGRAMS = 256
"""Programs kept; the one that was used longest ago is dropped first."""
_MANY = 16
"""Programs of one function that differ in constants alone before a warning says so."""


class Runner:
    """Runs functions on the replicas of one strategy.

    A program is made for each function, structure, shape, dtype and constant of the arguments. Replicas with different
    numbers of rows use it too if it is proved that rows that are added change nothing; otherwise, each replica runs the
    function itself, without a program.

    Args:
      strategy: the strategy.
      mesh: its devices.
    """

    def __init__(self, strategy: Any, mesh: ReplicaMesh) -> None:
        self._strategy, self._mesh = strategy, mesh
        self._lock = RLock()
        self._programs: OrderedDict[Any, Program] = OrderedDict()
        self._sizes: dict[Any, list[int]] = {}
        self._proofs: dict[Any, PaddedResults | None] = {}
        self._variants: Counter[Any] = Counter()
        self._counts: Counter[str] = Counter()

    @property
    def counts(self) -> RunCounts:
        """What the runs so far took."""
        return RunCounts(**self._counts)

    def run(self, fn: Callable[..., Any], arguments: RunArguments) -> tuple[Any] | None:
        """The result of a program, in a tuple; None if no program can run these arguments, so each replica must."""
        with self._lock:
            which = (function_key(fn), bool(jax.config.jax_enable_x64))
            found = self._even(fn, which, arguments) if arguments.even else self._uneven(fn, which, arguments)
            if found is None:
                self._counts["uncompiled"] += 1
                return None
            program, data_rows, proof = found
            if not program.fits:
                self._forget()
                return self.run(fn, arguments)
            result = program.run(arguments, data_rows, None if proof is None else proof.cut)
            self._counts["compiled"] += 1
            self._counts["padded"] += data_rows is not None
            return (result,)

    def _forget(self) -> None:
        """Drop all programs and proofs: the shape of a variable is part of them."""
        self._programs.clear()
        self._sizes.clear()
        self._proofs.clear()

    def _even(self, fn: Callable[..., Any], which: Any, arguments: RunArguments) -> Any:
        """The program for these shapes; or a program for more rows, if that exists and gives the same."""
        key = which, arguments.key(None)
        program = self._programs.get(key)
        if program is None and arguments.rows is not None and arguments.rows[0]:
            found = self._larger(fn, which, arguments, arguments.rows)
            if found is not None:
                return found
        return (
            self._program(fn, key, which, arguments, None if arguments.rows is None else arguments.rows[0]),
            None,
            None,
        )

    def _uneven(self, fn: Callable[..., Any], which: Any, arguments: RunArguments) -> Any:
        """A program for at least as many rows as the largest part has, if it gives the same; else None."""
        rows = arguments.rows
        if rows is None or not any(rows):
            return None
        found = self._larger(fn, which, arguments, rows)
        if found is not None:
            return found
        widest = max(rows)
        if self._sizes.get((which, arguments.key(-1))):
            return None  # a program exists, and must not be used
        proof = self._proof(fn, which, arguments, widest)
        if proof is None:
            return None
        return self._program(fn, (which, arguments.key(widest)), which, arguments, widest), rows, proof

    def _larger(self, fn: Callable[..., Any], which: Any, arguments: RunArguments, rows: tuple[int, ...]) -> Any:
        least = max(rows)
        for size in sorted(self._sizes.get((which, arguments.key(-1)), ())):
            program = self._programs.get((which, arguments.key(size)))
            if size >= least and program is not None:
                proof = self._proof(fn, which, arguments, size)
                if proof is not None:
                    self._programs.move_to_end((which, arguments.key(size)))
                    return program, rows, proof
        return None

    def _proof(self, fn: Callable[..., Any], which: Any, arguments: RunArguments, rows: int) -> PaddedResults | None:
        """What may be kept of the results of parts that are padded to `rows`; None if padding might change them."""
        assert arguments.rows is not None
        key = which, arguments.key(rows)
        program = self._programs.get(key)
        traced = None if program is None else program.traced
        found: list[PaddedResults | None] = []
        for data_rows in sorted({n for n in arguments.rows if n != rows}):
            if (key, data_rows) not in self._proofs:
                if len(self._proofs) > _PROGRAMS:
                    self._proofs.clear()
                self._proofs[key, data_rows] = padded_results(
                    self._strategy, self._mesh, fn, arguments, rows, data_rows, traced
                )
            found.append(self._proofs[key, data_rows])
        return found[0] if all(proof is not None and proof == found[0] for proof in found) else None

    def _program(
        self, fn: Callable[..., Any], key: Any, which: Any, arguments: RunArguments, rows: int | None
    ) -> Program:
        found = self._programs.get(key)
        if found is not None:
            self._programs.move_to_end(key)
            return found
        traced = trace_function(self._strategy, self._mesh, fn, arguments, rows)
        program = self._programs[key] = Program(traced, arguments, self._mesh, rows)
        self._counts["programs"] += 1
        if rows is not None:
            self._sizes.setdefault((which, arguments.key(-1)), []).append(rows)
        if len(self._programs) > _PROGRAMS:
            self._programs.popitem(last=False)
        self._warn_of_constants(fn, arguments)
        return program

    def _warn_of_constants(self, fn: Callable[..., Any], arguments: RunArguments) -> None:
        code = getattr(fn, "__code__", fn)
        self._variants[code] += 1
        if self._variants[code] != _MANY:
            return
        constants = [repr(leaf.value) for leaf in arguments.leaves if isinstance(leaf, Constant)][:4]
        name = getattr(fn, "__name__", type(fn).__name__)
        warnings.warn(
            f"run: {name} has been compiled {_MANY} times. Python numbers among its arguments and in its closure are part of "
            f"the program ({', '.join(constants) or 'none among the arguments'}), so each new value compiles it again: give "
            "them as arrays, such as np.float32(x)",
            stacklevel=4,
        )
