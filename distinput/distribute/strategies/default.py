# SPDX-License-Identifier: Apache-2.0
"""The strategy that is current outside all scopes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from distinput.distribute.input.checks import check_dataset_function
from distinput.distribute.input.input_context import InputContext
from distinput.distribute.input.options import InputOptions, RunOptions
from distinput.distribute.modes import outside, require_cross_replica
from distinput.distribute.run import wrong_arguments
from distinput.distribute.strategies.one_device import SingleReplica

__all__ = ["DefaultStrategy"]


class DefaultStrategy(SingleReplica):
    """One replica, every method the identity, so that code written for a strategy runs without one; see `get_strategy`.

    >>> import distinput as di
    >>> di.distribute.get_strategy().run(lambda x: x + 1, args=(1,))
    2

    Source: the default strategy of `tf.distribute.get_strategy`.
    """

    is_default = True
    per_replica_input = "ignored"

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        options: RunOptions | None = None,
    ) -> Any:
        """Call `fn` here and now; see `Strategy.run`."""
        if not isinstance(args, tuple | list):
            raise wrong_arguments(args)
        require_cross_replica(self)
        return fn(*args, **(kwargs or {}))

    def experimental_distribute_dataset(self, dataset: Any, options: InputOptions | None = None) -> Any:
        """The dataset itself; see `Strategy.experimental_distribute_dataset`."""
        return dataset

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Any], options: InputOptions | None = None
    ) -> Any:
        """The result of `dataset_fn`; see `Strategy.distribute_datasets_from_function`."""
        check_dataset_function(dataset_fn, options or InputOptions(), self._consumer())
        return dataset_fn(InputContext())

    def __deepcopy__(self, memo: dict[int, Any]) -> "DefaultStrategy":
        raise RuntimeError("the default strategy cannot be copied: there is only one")

    def __reduce__(self) -> tuple[Any, ...]:
        return _default, ()


def _default() -> Any:
    return outside.make()
