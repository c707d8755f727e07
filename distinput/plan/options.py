# SPDX-License-Identifier: Apache-2.0
"""Options of a pipeline, with the names, nesting and type checks of `tf.data.Options`."""

import enum
from typing import Any, ClassVar, Self

from distinput.plan.node import Node

__all__ = [
    "AutoShardPolicy",
    "AutotuneOptions",
    "DistributeOptions",
    "OptimizationOptions",
    "Options",
    "ThreadingOptions",
    "options_of",
]


class AutoShardPolicy(enum.IntEnum):
    """How a distributed dataset is divided among workers; `tf.data.experimental.AutoShardPolicy`.

    OFF: every worker reads everything. AUTO: FILE where the sources are files, else DATA. FILE: whole files. DATA: every
    n-th element. HINT: where the pipeline says `shard(SHARD_HINT, SHARD_HINT)`. BALANCED, which TensorFlow does not have:
    parts of files and ranges of rows, so that all workers read equally much.
    """

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3
    BALANCED = 4


class _Settings:
    """A group of settings with declared types; a setting that was never made is None or its default."""

    FIELDS: ClassVar[dict[str, tuple[type, Any]]] = {}
    GROUPS: ClassVar[dict[str, type["_Settings"]]] = {}

    def __init__(self) -> None:
        self.__dict__["_values"] = {}
        self.__dict__["_groups"] = {name: group() for name, group in self.GROUPS.items()}

    def __getattr__(self, name: str) -> Any:
        if name in self.GROUPS:
            return self.__dict__["_groups"][name]
        if name in self.FIELDS:
            return self.__dict__["_values"].get(name, self.FIELDS[name][1])
        raise AttributeError(
            f"{type(self).__name__} has no option {name!r}; it has {sorted([*self.FIELDS, *self.GROUPS])}"
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.GROUPS:
            if not isinstance(value, self.GROUPS[name]):
                raise TypeError(f"option {name!r} must be a {self.GROUPS[name].__name__}, got {value!r}")
            self.__dict__["_groups"][name] = value
            return
        if name not in self.FIELDS:
            raise AttributeError(
                f"{type(self).__name__} has no option {name!r}; it has {sorted([*self.FIELDS, *self.GROUPS])}"
            )
        kind = self.FIELDS[name][0]
        if value is not None and (not isinstance(value, kind) or (kind is not bool and isinstance(value, bool))):
            raise TypeError(f"option {name!r} must be of type {kind.__name__}, got {value!r}")
        self.__dict__["_values"][name] = value

    def is_set(self, name: str) -> bool:
        """True when the option was given a value."""
        return self.__dict__["_values"].get(name) is not None

    def merge(self, later: Self) -> Self:
        """These options with those of `later` that were set taking precedence.

        As in TensorFlow, a setting equal to the default counts as not made: AUTO does not override an earlier OFF.
        """
        made = type(self)()
        given = {k: v for k, v in later.__dict__["_values"].items() if v is not None and v != self.FIELDS[k][1]}
        made.__dict__["_values"] = {**self.__dict__["_values"], **given}
        for name in self.GROUPS:
            made.__dict__["_groups"][name] = self.__dict__["_groups"][name].merge(later.__dict__["_groups"][name])
        return made

    def to_dict(self) -> dict[str, Any]:
        """The options that were set."""
        found = {k: v for k, v in sorted(self.__dict__["_values"].items()) if v is not None}
        for name, group in self.__dict__["_groups"].items():
            inner = group.to_dict()
            if inner:
                found[name] = inner
        return found

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.to_dict().items())})"


class DistributeOptions(_Settings):
    """How the pipeline is distributed; `tf.data.experimental.DistributeOptions`."""

    FIELDS: ClassVar[dict[str, tuple[type, Any]]] = {
        "auto_shard_policy": (AutoShardPolicy, AutoShardPolicy.AUTO),
        "num_devices": (int, None),
    }


class AutotuneOptions(_Settings):
    """Limits for what AUTOTUNE chooses; `tf.data.experimental.AutotuneOptions`."""

    FIELDS: ClassVar[dict[str, tuple[type, Any]]] = {
        "enabled": (bool, None),
        "cpu_budget": (int, None),
        "ram_budget": (int, None),
    }


class OptimizationOptions(_Settings):
    """Which rewrites are applied; `tf.data.experimental.OptimizationOptions`."""

    FIELDS: ClassVar[dict[str, tuple[type, Any]]] = {
        "apply_default_optimizations": (bool, None),
        "filter_fusion": (bool, None),
        "filter_parallelization": (bool, None),
        "inject_prefetch": (bool, None),
        "map_and_batch_fusion": (bool, None),
        "map_and_filter_fusion": (bool, None),
        "map_fusion": (bool, None),
        "map_parallelization": (bool, None),
        "noop_elimination": (bool, None),
        "parallel_batch": (bool, None),
        "seq_interleave_prefetch": (bool, None),
        "shuffle_and_repeat_fusion": (bool, None),
    }


class ThreadingOptions(_Settings):
    """Thread counts; `tf.data.ThreadingOptions`."""

    FIELDS: ClassVar[dict[str, tuple[type, Any]]] = {
        "max_intra_op_parallelism": (int, None),
        "private_threadpool_size": (int, None),
    }


class Options(_Settings):
    """Options of a dataset; the counterpart of `tf.data.Options`.

    Options of a pipeline are merged from its sources down; the later setting wins.

    >>> import distinput as di
    >>> options = di.data.Options()
    >>> options.experimental_distribute.auto_shard_policy = di.data.experimental.AutoShardPolicy.DATA
    >>> di.data.Dataset.range(4).with_options(options).options().experimental_distribute.auto_shard_policy.name
    'DATA'

    `run_ahead`, which TensorFlow does not have, bounds how far functions and generators go ahead of the elements that were
    asked for: after `k` elements of `map(f)`, `f` was called at most `k + run_ahead` times. Without it a block of elements is
    made at a time, thousands where they are quick. With it `prefetch`, AUTOTUNE and `interleave` read nothing ahead on threads;
    what `batch` and `shuffle` need for an element counts as asked for.

    >>> options = di.data.Options()
    >>> options.run_ahead = 0
    >>> calls = []
    >>> first = next(iter(di.data.Dataset.range(9).map(lambda x: calls.append(x) or x).with_options(options)))
    >>> len(calls)
    1
    """

    FIELDS: ClassVar[dict[str, tuple[type, Any]]] = {
        "run_ahead": (int, None),
        "deterministic": (bool, None),
        "experimental_deterministic": (bool, None),
        "experimental_slack": (bool, None),
        "experimental_symbolic_checkpoint": (bool, None),
        "experimental_warm_start": (bool, None),
        "dataset_name": (str, None),
        "framework_type": (list, None),
    }
    GROUPS: ClassVar[dict[str, type[_Settings]]] = {
        "autotune": AutotuneOptions,
        "experimental_distribute": DistributeOptions,
        "experimental_optimization": OptimizationOptions,
        "threading": ThreadingOptions,
    }

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "run_ahead" and isinstance(value, int) and value < 0:
            raise ValueError(f"option 'run_ahead' must be at least 0, got {value}")
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        return super().__getattr__({"experimental_threading": "threading"}.get(name, name))


def options_of(node: Node) -> Options:
    """The options that hold for a tree: those of later inputs over earlier ones, the node's own over all.

    Source: the merging of `tf.data.Dataset.options`.
    """
    merged = Options()
    for source in node.inputs:
        merged = merged.merge(options_of(source))
    own = getattr(node, "options", None)
    return merged.merge(own) if isinstance(own, Options) else merged
