# SPDX-License-Identifier: Apache-2.0
"""The parts of a strategy that libraries need and training loops do not."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from distinput.distribute.core.modes import UpdateMode, modes, require_cross_replica
from distinput.distribute.core.parts import missing
from distinput.distribute.core.values import DistributedValues, Mirrored, regroup, replica_leaves, select_replica

__all__ = ["StrategyExtended"]


class StrategyExtended:
    """The interface of a strategy for libraries; `Strategy.extended` returns it.

    Args:
      container_strategy: the strategy.

    Source: `tf.distribute.StrategyExtended`.
    """

    __slots__ = ("_strategy",)

    def __init__(self, container_strategy: Any) -> None:
        self._strategy = container_strategy

    if not TYPE_CHECKING:  # a type checker that saw this would accept every name

        def __getattr__(self, name: str) -> Any:
            return missing(self, name)

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The devices of this process's replicas."""
        devices: tuple[str, ...] = self._strategy._replicas.devices.local
        return devices

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The devices that variables live on."""
        devices: tuple[str, ...] = self._strategy._parameter_devices
        return devices

    @property
    def experimental_require_static_shapes(self) -> bool:
        """False: batches may differ in size."""
        return False

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """The same as `Strategy.run`."""
        return self._strategy.run(fn, args, kwargs)

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any = None) -> Any:
        """`Strategy.reduce` of one value with `axis=None`; in one process every destination is the host."""
        return self._strategy.reduce(reduce_op, value, axis=None)

    def batch_reduce_to(
        self, reduce_op: Any, value_destination_pairs: Sequence[tuple[Any, Any]], options: Any = None
    ) -> list[Any]:
        """`reduce_to` of several values."""
        return [self.reduce_to(reduce_op, value, where) for value, where in value_destination_pairs]

    def update(
        self,
        var: Any,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        group: bool = True,
    ) -> Any:
        """Call `fn(copy, *args, **kwargs)` for each copy of a variable, in cross-replica context.

        Args:
          var: a variable of this strategy.
          fn: called with the copy, and its components of distributed values; with distributed values as they are if the
            strategy keeps one value of a variable.
          args: positional arguments.
          kwargs: named arguments.
          group: False returns the nest with a tuple of local results in the place of each leaf.

        Returns:
          The results, each leaf a `Mirrored` unless it is the same object for all copies.

        Source: `tf.distribute.StrategyExtended.update`.
        """
        strategy = self._strategy
        stack = modes.stack
        context = stack[-1].replica if stack else None
        if context is not None:

            def merge(_: Any, *merged: Any, **named: Any) -> Any:
                return self.update(var, fn, merged, named, group)

            return context.merge_call(merge, args, kwargs)
        require_cross_replica(strategy)
        results = []
        if not hasattr(var, "_parts"):
            raise ValueError(f"You can not update `var` {var!r}. It must be a Variable.")
        parts = var._parts()
        if strategy._mirrors and not isinstance(var, DistributedValues):
            raise AssertionError(
                f"update: the strategy keeps a copy for each replica, but {var!r} is a single value, created outside of its "
                "scope; create it in the scope, or write to it directly"
            )
        given, named = tuple(args), dict(kwargs or {})
        for copy, part in enumerate(parts):
            with UpdateMode(strategy, copy):
                if strategy._mirrors:  # else values of several replicas stay together: there is one value to update
                    results.append(fn(part, *select_replica(copy, given), **select_replica(copy, named)))
                else:
                    results.append(fn(part, *given, **named))
        made = regroup(results, wrap=Mirrored) if len(parts) > 1 else results[0]
        if group:
            return made
        structure, leaves = replica_leaves(made)
        return structure.build([strategy.experimental_local_results(leaf) for leaf in leaves])

    def variable_created_in_scope(self, v: Any) -> bool:
        """Whether a variable was created under this strategy.

        Source: `tf.distribute.StrategyExtended.variable_created_in_scope`.
        """
        return getattr(v, "_strategy", None) is self._strategy

    @contextmanager
    def colocate_vars_with(self, colocate_with_variable: Any) -> Iterator[None]:
        """A scope in which variables are created on the devices of another variable.

        Raises:
          ValueError: the variable belongs to another strategy.

        Source: `tf.distribute.StrategyExtended.colocate_vars_with`.
        """
        if not self.variable_created_in_scope(colocate_with_variable):
            raise ValueError(
                "`colocate_vars_with` must only be passed a variable created in this tf.distribute.Strategy.scope(), not: "
                f"{colocate_with_variable!r}"
            )
        with self._strategy._beside(colocate_with_variable):
            yield

    def value_container(self, value: Any) -> Any:
        """The distributed variable that a copy belongs to; the value itself if there is none."""
        container = getattr(value, "_container", None)
        return value if container is None else container()
