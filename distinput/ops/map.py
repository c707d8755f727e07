# SPDX-License-Identifier: Apache-2.0
"""`map`: call a function on every element."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from distinput.errors import InvalidArgumentError
from distinput.functions.chain import calling
from distinput.functions.claim import Claim
from distinput.functions.compiled import Compiled, compiled
from distinput.functions.executor_calls import check_executor
from distinput.functions.generators import WithGenerator
from distinput.functions.inference import infer
from distinput.kernels.row_loop import is_numba
from distinput.ops.map_calls import MapCalls
from distinput.ops.on_error import guarded
from distinput.ops.random_keys import RandomKeys
from distinput.plan.binding import take_functions
from distinput.plan.check import normalized, parallel_calls
from distinput.plan.families import Fused, Neighbours
from distinput.plan.node import Node
from distinput.plan.skip_errors import SkipErrors
from distinput.run.processes import check_sendable
from distinput.values.spec import Spec

__all__ = ["FusedMap", "Map", "fused"]


@dataclass(frozen=True, eq=False)
class Map(MapCalls):
    """Call `map_func` on every element.

    Shapes: whatever `map_func` returns: any nest; a list becomes a tuple. Order: unchanged.
    State: where the next element stands in the input.

    A function compiled with numba (`njit`) that takes and returns numbers, or tuples of them, is called in compiled code, a
    block at a time; its results have the types that numba infers.

    Args:
      map_func: called with the components of a tuple as arguments, with anything else as one argument.
      num_parallel_calls: threads that call it, useful when `map_func` releases the GIL; AUTOTUNE measures whether they are.
      deterministic: accepted as TensorFlow's; the order is kept either way, so that a state stays one position.
      synchronous: accepted as TensorFlow's, for a map without `num_parallel_calls`: it is called in the iterator's thread.
      use_unbounded_threadpool: accepted as TensorFlow's; there are `num_parallel_calls` threads.
      output_signature: a nest of `TensorSpec` for what it returns. Elements are checked against it, and integers become as wide
        as it says. Without it, the spec is found by calling `map_func`: on the first element if it has text, bytes or unknown
        dimensions, otherwise on some numbers. Elements are checked against that spec too.
      processes: call it in `num_parallel_calls` worker processes (one for each core if that is None or AUTOTUNE) instead of
        threads, for a `map_func` that holds the GIL. It must be picklable: a function at the top level of a module, or
        anything if cloudpickle is installed. Workers are fresh interpreters, started by the first pass and kept for later ones
        until the dataset is dropped; arrays go through shared memory. Another worker takes the place of one that was killed,
        and gets its elements again.
      on_error: what happens when `map_func` raises: "raise" that error; "skip" the element, up to a budget; `SkipErrors(...)`,
        with the budget and a file for what was left out. None: as `Options.on_error` says, or "raise".
      rng: call it with a `numpy.random.Generator` of the element's own as last argument. Its numbers follow from the seed, the
        pass, the step and the position of the element, so they are the same on any number of threads, processes and workers
        and after a restart, and others in each pass. Files are not dealt to workers below this map (policy FILE).
      seed: with `rng`, any integer; None draws one, which a saved state remembers.
      executor: any `concurrent.futures.Executor` that calls it, such as those of Dask, mpi4py and `ProcessPoolExecutor`; or a
        function that makes one, which is called again when one has broken. Results come in order, `num_parallel_calls` parts
        are under way (two for each worker if that is None, as far as the executor tells how many it has), and a part whose
        worker was lost is sent again, up to four times. A `ProcessPoolExecutor` that broke is replaced by one like it.
      vectorize: whether a function of NumPy is called once for a whole block where its results stay the same to the bit; what
        the function returns never depends on it. "auto": for small elements, by rules that are exact by construction. True:
        for all elements, also by rules that are found exact when they are measured. False: never. `explain()` says what
        happens, and why.

    Raises:
      InvalidArgumentError: both `synchronous` and `num_parallel_calls` are given.
      TypeError: `map_func` cannot be called, or cannot be sent to worker processes; at iteration, a result does not fit
        `output_signature`, or is of another kind than the other results.
      UnavailableError: at iteration, worker processes died each time that they had the same elements, or `executor` is broken.
      DataLossError: at iteration, more elements failed than `on_error` allows.

    >>> import distinput as di
    >>> list(di.data.Dataset.range(3).map(lambda x: x * 10).as_numpy_iterator())
    [np.int64(0), np.int64(10), np.int64(20)]

    Source: `tf.data.Dataset.map`.
    """

    by_element: ClassVar[bool] = True
    tolerant: ClassVar[bool] = True
    # Whether there are random numbers is what the input says.
    indifferent: ClassVar[frozenset[str]] = MapCalls.indifferent | {"executor", "rng", "seed", "vectorize"}
    map_func: Callable[..., Any]
    num_parallel_calls: int | None = None
    deterministic: bool | None = None
    synchronous: bool | None = field(default=None, repr=False)
    use_unbounded_threadpool: bool = field(default=False, repr=False)
    output_signature: Any = field(default=None, kw_only=True)
    processes: bool = field(default=False, kw_only=True)
    claim: Claim = field(default_factory=Claim, kw_only=True, repr=False)
    on_error: str | SkipErrors | None = field(default=None, kw_only=True)
    rng: bool = field(default=False, kw_only=True)
    seed: int | None = field(default=None, kw_only=True)
    executor: Any = field(default=None, kw_only=True)
    vectorize: bool | str = field(default="auto", kw_only=True)

    def __post_init__(self) -> None:
        take_functions(self, "map", "map_func")
        if self.vectorize not in (True, False, "auto"):
            raise InvalidArgumentError(f'map: vectorize must be True, False or "auto", got {self.vectorize!r}')
        if self.rng and not isinstance(self.map_func, WithGenerator):
            normalized(self, "map_func", WithGenerator(self.map_func))
            normalized(self, "input", RandomKeys(self.input, self.seed, origin=self.origin))
        elif self.seed is not None and not self.rng:
            raise InvalidArgumentError(f"map: seed goes with rng=True, got seed={self.seed} without it")
        parallel_calls("map", self.num_parallel_calls)
        if self.synchronous and self.num_parallel_calls is not None:
            raise InvalidArgumentError(
                "map: synchronous=True does not go with num_parallel_calls, got num_parallel_calls="
                f"{self.num_parallel_calls}; leave one of them out"
            )
        if self.processes:
            check_sendable("map", self.map_func)
        if self.executor is not None:
            if self.processes or self.synchronous:
                raise InvalidArgumentError(
                    "map: executor goes neither with processes nor with synchronous; leave one out"
                )
            check_executor(self.executor)

    @cached_property
    def call(self) -> Callable[[Any], Any]:
        """The function of one element."""
        return calling(self.map_func)

    @cached_property
    def compiled(self) -> Compiled | None:
        """The function as compiled code over blocks, if possible."""
        return compiled(self.map_func, self.input.spec) if is_numba(self.map_func) else None

    def added(self) -> Node:
        return guarded(self, self.on_error)

    @property
    def spec_given(self) -> bool:
        return self.output_signature is not None

    @cached_property
    def signature(self) -> Spec | None:
        """The spec that the user gave, with which elements are compared."""
        return None if self.output_signature is None else Spec.of(self.output_signature)

    @cached_property
    def spec(self) -> Spec:
        if self.compiled is not None:
            return self.signature or self.compiled.spec
        return self.signature or self.claim.asked("map", lambda: infer("map", self.call, self.input, self.map_func))

    @property
    def maps(self) -> tuple["Map", ...]:
        return (self,)


@dataclass(frozen=True, eq=False)
class FusedMap(MapCalls, Fused[Map]):
    """Neighbouring maps that run as one: each element goes through all functions before the next one begins.

    Shapes: those of the last map. State: where the next element stands in the input.

    Args:
      functions: the maps, the first one first; all have the same number of threads or processes.
    """

    @property
    def maps(self) -> tuple[Map, ...]:
        return self.functions.steps


def fused(first: Map | FusedMap, then: Map) -> FusedMap | None:
    """`then` over `first` as one node; None if they are not called in the same way."""
    maps = first.maps
    if is_numba(maps[0].map_func) or is_numba(then.map_func):
        return None  # these run over blocks
    if then.on_error not in (None, "raise"):
        return None  # errors of the first function are not errors of the second
    if maps[-1].output_signature is not None:
        return None  # its elements are checked before the next function gets them
    if _way(maps[0]) != _way(then):
        return None
    return FusedMap(first.input, Neighbours((*maps, then)), origin=then.origin)


def _way(step: Map) -> tuple[Any, ...]:
    """How its function is called."""
    return step.num_parallel_calls, step.processes, step.vectorize, id(step.executor)
