# SPDX-License-Identifier: Apache-2.0
"""A replica function, traced once and compiled for all replicas."""

import itertools
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec

from distinput.distribute.core.contexts import Mode
from distinput.distribute.core.replica_reducer import has_slices
from distinput.distribute.core.values import PerReplica, is_number, replica_leaves
from distinput.distribute.tpu.arguments import RunArguments, Shared, Split, is_array, unshared
from distinput.distribute.tpu.compiled_context import CompiledReplicaContext, VariableTrace
from distinput.distribute.tpu.mesh import REPLICA, DeviceValues, ReplicaMesh, as_device_array, in_turn
from distinput.distribute.variables.kinds import ResourceVariable
from distinput.names.lazy import dataclass
from distinput.values.nest import Structure

_CALLBACKS = frozenset({"io_callback", "pure_callback", "debug_callback", "infeed", "outfeed"})


@dataclass(frozen=True)
class Traced:
    """What tracing a replica function found.

    Args:
      jaxpr: the program of one replica: number of rows of data, arrays of the arguments -> arrays of the result, new
        values of the variables written.
      trace: which variables it uses.
      structure: of the result.
      places: for each leaf of the result, the number of its output; None for a leaf that is not an array.
      constants: for each leaf of the result, the leaf if it is not an array; else None.
      shared: for each array of the result, whether it is one value for all replicas, as merge functions return them.
    """

    jaxpr: Any
    trace: VariableTrace
    structure: Structure
    places: tuple[int | None, ...]
    constants: tuple[Any, ...]
    shared: tuple[bool, ...]

    @cached_property
    def num_results(self) -> int:
        """How many arrays the result has."""
        return sum([place is not None for place in self.places])


def trace_function(
    strategy: Any, mesh: ReplicaMesh, fn: Callable[..., Any], arguments: RunArguments, rows: int | None
) -> Traced:
    """Trace a function as one replica would run it.

    Args:
      strategy: the strategy that is current meanwhile.
      mesh: the devices.
      fn: the function.
      arguments: its arguments.
      rows: how many rows each replica's arrays have; None: each array has the rows that it has.

    Raises:
      TypeError: the function cannot be traced, because it looks at values.
    """
    record: dict[str, Any] = {}

    def replica(data_rows: Any, *arrays: Any) -> list[Any]:
        trace = VariableTrace(mesh, arguments.rows[0] if rows is None and arguments.rows else rows, data_rows)
        given = iter(arrays)
        leaves = [next(given) if isinstance(x, Shared | Split) else x.value for x in arguments.leaves]
        args, kwargs = arguments.structure.build(leaves)
        with trace.active(), Mode(strategy, CompiledReplicaContext(strategy, trace)):
            result = fn(*args, **kwargs)
            structure, parts = replica_leaves(result)
            if has_slices(parts):
                raise TypeError(
                    "run: a compiled function returns arrays, not IndexedSlices; return their `values` and `indices`, or make "
                    "the strategy with compile=False"
                )
            # A copy of a variable, as writes return it, stands for that of each replica.
            parts = [part.value() if isinstance(part, ResourceVariable) else part for part in parts]
            # An array that all replicas were given comes back as it was given, not as a copy for each replica.
            same = {
                id(x): leaf.given for x, leaf in zip(leaves, arguments.leaves, strict=True) if isinstance(leaf, Shared)
            }
            parts = [
                same.get(id(part), part) if isinstance(part, jax.core.Tracer) else _result(part, same) for part in parts
            ]
        returned = [part for part in parts if isinstance(part, _RETURNED)]
        merged = {id(part) for part in trace.shared}
        counter = itertools.count()
        record.update(
            trace=trace,
            structure=structure,
            places=tuple([next(counter) if isinstance(part, _RETURNED) else None for part in parts]),
            constants=tuple([None if isinstance(part, _RETURNED) else part for part in parts]),
            shared=tuple([id(part) in merged for part in returned]),
        )
        return [part.value if isinstance(part, _New) else part for part in returned] + trace.final()

    shapes = [_input(leaf, rows) for leaf in arguments.arrays]
    try:
        jaxpr = jax.make_jaxpr(replica, axis_env=[(REPLICA, mesh.replicas)])(
            jax.ShapeDtypeStruct((), np.int32), *shapes
        )
    except Exception as error:
        name = getattr(fn, "__name__", type(fn).__name__)
        error.add_note(f"in run({name}), traced once for all {mesh.replicas} replicas")
        if isinstance(error, _LOOKS):
            raise TypeError(
                f"run: {name} cannot be compiled, because it looks at the value of an array, which is known only when the "
                "program runs; use jax.numpy instead of NumPy, and jax.numpy.where or jax.lax.cond instead of if, or make "
                f"the strategy with compile=False ({_first_line(error)})"
            ) from error
        raise
    return Traced(jaxpr, **record)


_LOOKS = (
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerBoolConversionError,
    jax.errors.TracerIntegerConversionError,
)


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


@dataclass(frozen=True)
class _New:
    """An array that the function returned and that is not traced, such as a NumPy array that it made."""

    value: Any


_RETURNED = (jax.core.Tracer, _New)
"""What a program returns; other results are constants."""


def _result(part: Any, same: dict[int, Any]) -> Any:
    if is_array(part) and all(part is not given for given in same.values()):
        return _New(jnp.asarray(part))
    return part


def _input(leaf: Shared | Split, rows: int | None) -> Any:
    if isinstance(leaf, Shared):
        aval = jax.typeof(leaf.value)
        return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=getattr(aval, "weak_type", False))
    shape = leaf.shapes[0]
    return jax.ShapeDtypeStruct(shape if rows is None or not shape else (rows, *shape[1:]), leaf.dtype)


class Program:
    """A traced function, compiled over the mesh.

    Variables are inputs; those that it writes are outputs too, in the same memory.

    Args:
      traced: what tracing found.
      arguments: arguments of the shapes that it was traced with.
      mesh: the devices.
      rows: the rows of each replica's arrays; None if they have no common number of rows.
    """

    def __init__(self, traced: Traced, arguments: RunArguments, mesh: ReplicaMesh, rows: int | None) -> None:
        self.traced, self.rows = traced, rows
        self.family: Any = None
        """What programs of other numbers of rows have in common with this one."""
        self._mesh = mesh
        trace, jaxpr = traced.trace, traced.jaxpr
        self._written = trace.written
        self._read = [store for store in trace.stores if all(store is not other for other in trace.written)]
        places = {id(array): i for i, array in enumerate(trace.stand_ins + trace.host_stand_ins)}
        slots = [places.get(id(array)) for array in jaxpr.consts]
        order = {id(store): i for i, store in enumerate(self._written + self._read)}
        position = [order[id(store)] for store in trace.stores]
        stores = len(trace.stores)
        scalars = [isinstance(leaf, Split) and not leaf.shapes[0] for leaf in arguments.arrays]
        consts = [None if slot is not None else array for slot, array in zip(slots, jaxpr.consts, strict=True)]

        def replica(written: Any, read: Any, hosts: Any, data_rows: Any, *arrays: Any) -> tuple[list[Any], list[Any]]:
            values = [*written, *read]
            lifted = [values[position[i]] if i < stores else hosts[i - stores] for i in range(stores + len(hosts))]
            inputs = [const if slot is None else lifted[slot] for const, slot in zip(consts, slots, strict=True)]
            given = [array[0] if scalar else array for array, scalar in zip(arrays, scalars, strict=True)]
            made = jax.core.eval_jaxpr(jaxpr.jaxpr, inputs, data_rows[0], *given)
            results, after = made[: traced.num_results], made[traced.num_results :]
            return [x if x.ndim else x[None] for x in results], [x[None] for x in after]

        split, shared = PartitionSpec(REPLICA), PartitionSpec()
        kinds = [split if isinstance(leaf, Split) else shared for leaf in arguments.arrays]
        self._shapes = [(store, store.shape) for store in [*trace.stores, *[host for host, _ in trace.hosts]]]
        self._watched = has_callbacks(jaxpr.jaxpr)
        # Within a replica the compiler divides the work among its cores, as annotations ask.
        manual = {REPLICA} if mesh.cores > 1 else set(mesh.mesh.axis_names)
        mapped = jax.shard_map(
            replica,
            mesh=mesh.mesh,
            in_specs=(split, split, shared, split, *kinds),
            out_specs=(split, split),
            axis_names=manual,
            check_vma=False,
        )
        # A program that calls Python may fail after it began to write, so it does not write into memory in use.
        donated = () if self._watched or jax.config.jax_debug_nans else (0,)
        self._compiled = jax.jit(mapped, donate_argnums=donated, out_shardings=(mesh.per_replica, mesh.per_replica))
        self._scalar_results = [not x.aval.ndim for x in jaxpr.jaxpr.outvars[: traced.num_results]]
        self._full: dict[Any, Any] = {}

    @property
    def fits(self) -> bool:
        """False if a variable has another shape than when the function was traced."""
        return all(store.shape == shape for store, shape in self._shapes)

    def run(self, arguments: RunArguments, data_rows: Sequence[int] | None, cut: Sequence[bool] | None = None) -> Any:
        """Run the program; variables have their new values when it returns, results may still be computed.

        Args:
          arguments: of the shapes that it was compiled for, or with fewer rows, which are padded.
          data_rows: how many rows of each replica are data; None for all.
          cut: for each array of the result, whether only that many rows of it are to be kept.
        """
        rows = None if data_rows is None else self.rows
        arrays = [self._input(leaf, rows) for leaf in arguments.arrays]
        hosts = [np.array(as_device_array(store.read(c), "a variable"))[None] for store, c in self.traced.trace.hosts]
        counts = self._counts(data_rows)

        def start() -> Any:
            written = [store.whole() for store in self._written]
            return self._compiled(written, [store.whole() for store in self._read], hosts, counts, *arrays)

        results, after = in_turn(self._mesh, start)
        if self._watched:
            jax.block_until_ready((results, after))
        for store, whole in zip(self._written, after, strict=True):
            store.replace(whole)
        return self._built(results, data_rows, cut)

    def _input(self, leaf: Shared | Split, rows: int | None) -> Any:
        if isinstance(leaf, Split):
            return leaf.on_devices(self._mesh, rows)
        value = leaf.value
        if isinstance(value, jax.Array) and value.sharding == self._mesh.replicated:
            return value
        return jax.device_put(unshared(value), self._mesh.replicated)

    def _counts(self, data_rows: Sequence[int] | None) -> Any:
        """The number of rows of data of each replica, on its device."""
        key = None if data_rows is None else tuple(data_rows)
        found = self._full.get(key)
        if found is None:
            local = len(self._mesh.local)
            counts = [self.rows or 0] * local if data_rows is None else data_rows
            found = self._mesh.assemble([np.full(1, count, np.int32) for count in counts], (1,))
            if key is None:
                self._full[key] = found
        return found

    def _built(self, results: Sequence[Any], data_rows: Sequence[int] | None, cut: Sequence[bool] | None) -> Any:
        traced, mesh = self.traced, self._mesh
        leaves: list[Any] = []
        for place, constant in zip(traced.places, traced.constants, strict=True):
            if place is None:
                each = is_number(constant) and mesh.replicas > 1
                leaves.append(PerReplica((constant,) * len(mesh.local)) if each else constant)
                continue
            rows = data_rows if cut is not None and cut[place] else None
            value = DeviceValues(results[place], mesh, scalar=self._scalar_results[place], rows=rows)
            leaves.append(value.values[0] if mesh.replicas == 1 or traced.shared[place] else value)
        return traced.structure.build(leaves)


def has_callbacks(jaxpr: Any) -> bool:
    """True if the program calls Python, or does anything else than compute."""
    return any(eqn.primitive.name in _CALLBACKS or any(map(has_callbacks, _inner(eqn.params))) for eqn in jaxpr.eqns)


def _inner(params: dict[str, Any]) -> list[Any]:
    """The programs inside a step of a program."""
    values = [each for value in params.values() for each in (value if isinstance(value, tuple | list) else (value,))]
    return [jaxpr for each in values if hasattr(jaxpr := getattr(each, "jaxpr", each), "eqns")]
