# SPDX-License-Identifier: Apache-2.0
"""The arguments of a run as a compiled program takes them, and the copies of variables on JAX devices."""

from collections.abc import Sequence
from functools import cached_property, partial
from threading import RLock
from types import CodeType, FunctionType, MethodType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

from distinput.distribute.core.values import DistributedValues, replica_leaves
from distinput.distribute.tpu.compiled_context import current_trace
from distinput.distribute.tpu.mesh import DeviceValues, ReplicaMesh, as_device_array, local_parts
from distinput.distribute.variables.store import UPDATES, refuse_pickling
from distinput.distribute.variables.variable import Reference, Variable
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import dataclass
from distinput.values.nest import Structure

# ----------------------------------------------------------------------------
# The arguments of a run as a compiled program takes them: arrays that are inputs, and everything else as constants.
# ----------------------------------------------------------------------------


_SCALARS = (bool, int, float, complex, str, bytes, type(None))
_FOLLOWED = (*_SCALARS, FunctionType, Variable)
"""Globals that are part of a program: another one of these under the same name is another program."""


@dataclass(frozen=True)
class Constant:
    """An argument that is part of the program: a Python number, text, or any object; another value is another program."""

    value: Any

    @cached_property
    def key(self) -> Any:
        """What tells programs apart."""
        return _constant_key(self.value)

    def select(self, replica: int, device: Any) -> Any:
        """The argument as a replica that is not compiled gets it."""
        return self.value


@dataclass(frozen=True)
class Shared:
    """An array that all replicas get.

    Args:
      given: the user's own array.
      value: the same with a dtype that JAX keeps.
    """

    given: Any
    value: Any

    @property
    def key(self) -> Any:
        """What tells programs apart."""
        dtype = self.value.dtype  # that of small floats of packages has the text of bytes
        weak = bool(getattr(self.value, "weak_type", False))
        return "shared", self.value.shape, dtype.str, dtype.name, weak

    def select(self, replica: int, device: Any) -> Any:
        """The argument as a replica that is not compiled gets it."""
        return jax.device_put(unshared(self.value), device)


@dataclass(frozen=True)
class Split:
    """An array for each replica.

    Args:
      parts: the replicas' arrays, those of this process; None if they are one array over all devices.
      whole: that array.
    """

    parts: tuple[Any, ...] | None
    whole: DeviceValues | None

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each replica's array."""
        if self.parts is not None:
            return tuple([part.shape for part in self.parts])
        assert self.whole is not None
        return (self.whole.part_shape,) * self.whole.count

    @property
    def dtype(self) -> Any:
        """The dtype of all parts."""
        return self.parts[0].dtype if self.parts is not None else self.whole.whole.dtype  # type: ignore[union-attr]

    @cached_property
    def even(self) -> bool:
        """True if all replicas' arrays have the same shape."""
        return len(set(self.shapes)) == 1

    @property
    def rows(self) -> tuple[int, ...] | None:
        """The rows of each replica's array; None for scalars."""
        return tuple([shape[0] for shape in self.shapes]) if self.shapes[0] else None

    def key_of(self, shape: tuple[int, ...]) -> Any:
        """What tells programs apart, for parts of this shape."""
        return "split", shape, self.dtype.str, self.dtype.name

    def select(self, replica: int, device: Any) -> Any:
        """The argument as a replica that is not compiled gets it."""
        part = (self.parts if self.parts is not None else self.whole.values)[replica]  # type: ignore[union-attr]
        return jax.device_put(unshared(part), device)

    def on_devices(self, mesh: ReplicaMesh, rows: int | None = None) -> Any:
        """One array over all devices, `[replicas * n, ...]`.

        Args:
          mesh: the devices.
          rows: pad each part to this many rows, by repeating a row of data.
        """
        shape = self.shapes[0]
        if self.whole is not None and (rows is None or not shape or shape[0] == rows):
            return self.whole.whole
        parts = list(self.parts if self.parts is not None else self.whole.values)  # type: ignore[union-attr]
        if rows is not None and shape:
            filler = next(part for part in parts if part.shape[0])[:1]
            parts = [_padded(part, filler, rows) for part in parts]
            shape = (rows, *shape[1:])
        parts = [unshared(part if part.shape else part.reshape(1)) for part in parts]
        return mesh.assemble(parts, shape or (1,))


@dataclass(frozen=True)
class RunArguments:
    """The arguments of a run.

    Args:
      structure: of `(args, kwargs)`.
      leaves: in flattening order.
    """

    structure: Structure
    leaves: tuple[Constant | Shared | Split, ...]

    @classmethod
    def of(cls, args: tuple[Any, ...], kwargs: dict[str, Any], mesh: ReplicaMesh) -> "RunArguments":
        """Look at each argument.

        Raises:
          InvalidArgumentError: a replica's value is not a number, is too large for 32 bits, or has another dtype or rank than
            those of the others.
        """
        structure, leaves = replica_leaves((args, kwargs))
        return cls(structure, tuple([_leaf(leaf, structure, i, mesh) for i, leaf in enumerate(leaves)]))

    @cached_property
    def arrays(self) -> tuple[Shared | Split, ...]:
        """Those that a program takes."""
        return tuple([leaf for leaf in self.leaves if isinstance(leaf, Shared | Split)])

    @cached_property
    def splits(self) -> tuple[Split, ...]:
        """The arrays that differ from replica to replica."""
        return tuple([leaf for leaf in self.leaves if isinstance(leaf, Split)])

    @cached_property
    def even(self) -> bool:
        """True if each of them has the same shape on all replicas."""
        return all(split.even for split in self.splits)

    @cached_property
    def rows(self) -> tuple[int, ...] | None:
        """The rows of each replica, if all its arrays with rows agree on them; else None."""
        found = {split.rows for split in self.splits if split.rows is not None}
        return found.pop() if len(found) == 1 else None

    def key(self, rows: int | None) -> Any:
        """What tells programs apart: structure, constants, shapes and dtypes; parts count as having this many rows."""
        return self.structure, tuple(
            [
                leaf.key_of((rows, *leaf.shapes[0][1:]) if rows is not None and leaf.shapes[0] else leaf.shapes[0])
                if isinstance(leaf, Split)
                else leaf.key
                for leaf in self.leaves
            ]
        )

    def select(self, replica: int, device: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of one replica that is not compiled, its arrays on its device."""
        args, kwargs = self.structure.build([leaf.select(replica, device) for leaf in self.leaves])
        return args, kwargs


def is_array(value: Any) -> bool:
    """True for NumPy and JAX arrays and NumPy scalars of numbers."""
    if isinstance(value, jax.Array):
        return True
    return isinstance(value, np.ndarray | np.generic) and value.dtype.kind not in "SUOMm"


def unshared(array: Any) -> Any:
    """The array, or a copy if somebody may write to it: JAX reads host memory later, and may never copy it."""
    return array.copy() if isinstance(array, np.ndarray) and array.flags.writeable else array


def _leaf(value: Any, structure: Structure, place: int, mesh: ReplicaMesh) -> Constant | Shared | Split:
    if isinstance(value, DistributedValues) and not value.passed_whole:
        if isinstance(value, DeviceValues) and value.rows is None and value.is_on(mesh):
            return Split(None, value)
        return _split(value.values, f"args{structure.paths[place]}" if structure.paths[place] else "args")
    if is_array(value):
        on_device = isinstance(value, jax.Array)
        return Shared(value, value if on_device else as_device_array(value, f"args{structure.paths[place]}"))
    return Constant(value)


def _split(values: Sequence[Any], what: str) -> Split:
    parts = [value if isinstance(value, jax.Array) else as_device_array(value, what) for value in values]
    first = parts[0]
    for i, part in enumerate(parts):
        if part.dtype != first.dtype or part.ndim != first.ndim or part.shape[1:] != first.shape[1:]:
            raise InvalidArgumentError(
                f"run: {what} must have the same dtype and, but for the number of rows, the same shape on every replica, got "
                f"{first.dtype}{list(first.shape)} on replica 0 and {part.dtype}{list(part.shape)} on replica {i}; make the "
                "strategy with compile=False"
            )
    return Split(tuple(parts), None)


def _padded(part: Any, filler: Any, rows: int) -> Any:
    """`[n, ...] -> [rows, ...]`: the part, then one of its rows again and again, or `filler` if it has none."""
    there = part.shape[0]
    if there == rows:
        return part
    if isinstance(part, np.ndarray):
        made = np.empty((rows, *part.shape[1:]), part.dtype)
        made[:there] = part
        made[there:] = part[-1:] if there else np.asarray(filler)
        return made
    last = part[-1:] if there else jax.device_put(filler, part.device)
    return jax.numpy.concatenate([part, jax.numpy.broadcast_to(last, (rows - there, *part.shape[1:]))])


def _constant_key(value: Any) -> Any:
    kind = type(value)
    if kind in (float, complex):
        return kind, repr(value)  # 0.0 and -0.0 are two values, NaN is one
    if kind in _SCALARS:
        return kind, value
    return function_key(value) if isinstance(value, FunctionType | MethodType | partial) else Reference(value)


def function_key(function: Any, depth: int = 4) -> Any:
    """What tells functions apart: two lambdas of the same code that close over the same values are the same program.

    Numbers and text that a function closes over, or finds among the globals of its module, count by their value, so that
    another value is another program; so is another function or variable under the name of a global.

    >>> def scaled(factor):
    ...     return lambda x: x * factor
    >>> function_key(scaled(2)) == function_key(scaled(2)), function_key(scaled(2)) == function_key(scaled(3))
    (True, False)
    """
    if depth == 0:
        return Reference(function)
    if isinstance(function, MethodType):
        return "method", function_key(function.__func__, depth - 1), Reference(function.__self__)
    if isinstance(function, partial):
        pairs = tuple([(key, _inner_key(value, depth)) for key, value in sorted(function.keywords.items())])
        return "partial", function_key(function.func, depth - 1), *[_inner_key(v, depth) for v in function.args], pairs
    if not isinstance(function, FunctionType):
        return Reference(function)
    code: CodeType = function.__code__
    cells = tuple([_cell_key(cell, function, depth) for cell in function.__closure__ or ()])
    defaults = tuple([_inner_key(value, depth) for value in function.__defaults__ or ()])
    pairs = tuple([(key, _inner_key(value, depth)) for key, value in (function.__kwdefaults__ or {}).items()])
    known = function.__globals__
    named_globals = tuple(
        [_global_key(known[name]) for name in code.co_names if name in known and isinstance(known[name], _FOLLOWED)]
    )
    return code, Reference(known), cells, defaults, pairs, named_globals


def _global_key(value: Any) -> Any:
    return _constant_key(value) if type(value) in _SCALARS else Reference(value)


def _inner_key(value: Any, depth: int) -> Any:
    if isinstance(value, FunctionType | MethodType | partial):
        return function_key(value, depth - 1)
    return _constant_key(value)


def _cell_key(cell: Any, function: Any, depth: int) -> Any:
    try:
        value = cell.cell_contents
    except ValueError:  # a name that has no value yet
        return None
    return Reference(value) if value is function else _inner_key(value, depth)


# ----------------------------------------------------------------------------
# The copies of a variable on JAX devices, one for each replica.
# ----------------------------------------------------------------------------


class JaxStore:
    """Copies on the replicas' devices: one array over all of them for compiled programs, or one array for each.

    A compiled program takes the array over all devices and may use its memory for the result, so nobody else ever holds
    it: what `read` returns has memory of its own.

    Args:
      value: the first value of all copies.
      mesh: the devices.
    """

    def __init__(self, value: Any, mesh: ReplicaMesh) -> None:
        self._mesh = mesh
        self._lock = RLock()
        with jax.core.eval_context():
            first = np.array(as_device_array(value, "the initial value of a variable"))[None]
            if len(mesh.local) != mesh.replicas:  # all processes take the value of the first one
                first = np.array(multihost_utils.broadcast_one_to_all(first))
            self._whole: Any = mesh.assemble([first.copy() for _ in mesh.local], first.shape)
        self._parts: list[Any] = [None] * len(mesh.local)
        self.dtype: np.dtype[Any] = np.dtype(self._whole.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first copy."""
        if self._whole is not None:
            whole: tuple[int, ...] = self._whole.shape[1:]
            return whole
        shape: tuple[int, ...] = self._parts[0].shape
        return shape

    @property
    def copies(self) -> int:
        """How many copies this process can reach."""
        return len(self._parts)

    def read(self, copy: int) -> Any:
        """The value of a copy, on its device; while a function is traced, what stands for it there."""
        trace = current_trace(self._mesh)
        if trace is not None:
            return trace.read(self, copy)
        with self._lock, jax.core.eval_context():
            return self._part(copy)

    def update(self, copy: int, kind: str, *args: Any) -> Any:
        """Change a copy; see `Store.update`."""
        trace = current_trace(self._mesh)
        if trace is not None:
            return trace.update(self, copy, kind, args)
        with self._lock, jax.core.eval_context():
            for other in range(self.copies):
                self._part(other)
            device = self._mesh.devices[self._mesh.local[copy], 0]
            # The rows of a scatter stay on the host until it has checked them.
            checked = kind.startswith("scatter")
            placed = [
                unshared(arg) if checked and not isinstance(arg, jax.Array) else self._placed(arg, device)
                for arg in args
            ]
            with jax.default_device(device):
                made = jnp.asarray(UPDATES[kind](self._parts[copy], *placed), self.dtype)
            self._parts[copy] = jax.device_put(made, device)
            self._whole = None
            return self._parts[copy]

    def device(self, copy: int) -> str:
        """The name of the device that a copy is on."""
        return self._mesh.labels[copy]

    # ---- for compiled programs

    def stand_in(self) -> Any:
        """An array `[1, ...]` that stands for the replica's copy while a function is traced."""
        with self._lock, jax.core.eval_context():
            return local_parts(self.whole(), self._mesh)[0]

    def whole(self) -> Any:
        """The copies as one array over all devices, `[replicas, ...]`. It must not be kept."""
        with self._lock:
            if self._whole is None:
                with jax.core.eval_context():
                    parts = [part[None] for part in self._parts]
                    self._whole = self._mesh.assemble(parts, parts[0].shape)
            return self._whole

    def replace(self, whole: Any) -> None:
        """Take the array over all devices that a program returned."""
        with self._lock:
            self._whole = whole
            self._parts = [None] * self.copies

    def _part(self, copy: int) -> Any:
        if self._parts[copy] is None:
            # Taking the first axis away copies: a program may soon use the memory of the array over all devices.
            self._parts[copy] = local_parts(self._whole, self._mesh)[copy].reshape(self._whole.shape[1:])
        return self._parts[copy]

    def _placed(self, arg: Any, device: Any) -> Any:
        """An argument of an update on the device of the copy; indices and keys of slices stay as they are."""
        if isinstance(arg, jax.Array):
            return jax.device_put(arg, jax.sharding.SingleDeviceSharding(device))  # from memory of the host, too
        if isinstance(arg, np.ndarray | np.generic):
            return jax.device_put(unshared(as_device_array(arg, "a value for a variable")), device)
        return arg

    __reduce__ = refuse_pickling
