# SPDX-License-Identifier: Apache-2.0
"""Options of a pipeline, with the names, nesting and type checks of `tf.data.Options`; among them, which errors are skipped."""

import enum
import os
from collections.abc import Callable
from dataclasses import field
from inspect import get_annotations
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_args, get_origin

import numpy as np

from distinput.columns.block import fault_of
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import dataclass, later
from distinput.plan.node import Node, walk

if TYPE_CHECKING:
    from distinput.names import words
else:
    words = later("distinput.names.words")  # for messages alone

# ----------------------------------------------------------------------------
# `SkipErrors`: how many elements that fail may be left out, and where they are written down.
# ----------------------------------------------------------------------------


MISTAKES = (AttributeError, ImportError, NameError, SyntaxError)
"""Errors of a program that is wrong, whatever the data: left out, they would leave an empty dataset and no word."""

_LEAST = 1000
"""Elements of which a share is at least taken: one error among the first three elements says nothing of a share."""


@dataclass(frozen=True)
class SkipErrors:
    """Leave out elements that fail, up to a budget, for `on_error=`.

    `on_error="skip"` is `SkipErrors()`. Each step has a budget of its own, counted from the beginning of each pass; each
    worker of a job counts what it reads itself.

    Args:
      max_errors: how many elements may fail: a number, or a share of all elements between 0 and 1 (of 1,000, as long as there
        were fewer); None: any number. One more ends the run with an error that lists the first ones.
      quarantine: a local file to which a line of JSON is appended for each element that fails; None: none. Several workers may
        share it. An element is written once, however many workers, passes and restarts meet it.
      max_quarantined: how many lines that file may have; what fails beyond them is counted and not written.
      also: a class of errors, or a tuple of them, to leave out although they are mostly mistakes of the program, which are
        raised whatever the budget: AttributeError, ImportError, NameError, SyntaxError, and their subclasses.

    Raises:
      InvalidArgumentError: a negative number, a share above 1, or a quarantine file that is not local.
      TypeError: `also` is no class of errors.

    >>> import distinput as di
    >>> import operator
    >>> ds = di.data.Dataset.from_tensor_slices([1.0, 2.0, 0.0, 4.0])
    >>> ds.map(lambda x: operator.truediv(1, float(x)), on_error=di.data.SkipErrors(max_errors=1)).to_list()
    [1.0, 0.5, 0.25]
    """

    max_errors: int | float | None = 0.01
    quarantine: str | bytes | os.PathLike[str] | None = None
    max_quarantined: int = 10_000
    also: type[Exception] | tuple[type[Exception], ...] = ()

    share_of_at_least: ClassVar[int] = _LEAST

    def __post_init__(self) -> None:
        for name in ("max_errors", "max_quarantined"):
            if isinstance(value := getattr(self, name), np.integer):
                object.__setattr__(self, name, int(value))
        most = self.max_errors
        if most is not None and not (
            (type(most) is int and most >= 0) or (isinstance(most, float) and 0.0 <= most <= 1.0)
        ):
            raise InvalidArgumentError(
                f"SkipErrors: max_errors must be a whole number from 0 on, a share between 0.0 and 1.0, or None, got {most!r}"
            )
        if type(self.max_quarantined) is not int or self.max_quarantined < 0:
            raise InvalidArgumentError(
                f"SkipErrors: max_quarantined must be a whole number from 0 on, got {self.max_quarantined!r}"
            )
        if self.quarantine is not None and "://" in os.fsdecode(self.quarantine):
            raise InvalidArgumentError(
                f"SkipErrors: quarantine must be a local file, to which lines can be appended, got {self.quarantine!r}"
            )

        object.__setattr__(self, "also", error_classes("SkipErrors", self.also))

    def exceeded(self, errors: int, elements: int) -> bool:
        """Whether so many errors exceed the budget, given the number of elements that did not fail.

        >>> SkipErrors(2).exceeded(3, 10**6), SkipErrors(0.01).exceeded(10, 50), SkipErrors(0.01).exceeded(11, 50)
        (True, False, True)
        """
        if self.max_errors is None:
            return False
        if isinstance(self.max_errors, float):
            return errors > self.max_errors * max(_LEAST, errors + elements)
        return errors > self.max_errors

    def __str__(self) -> str:
        return f"max_errors={self.max_errors}"


def error_classes(who: str, given: object) -> tuple[type[Exception], ...]:
    """Classes of errors that an argument `also` names.

    Raises:
      TypeError: it names something else.
    """
    classes = given if isinstance(given, tuple) else (given,)
    for each in classes:
        if not (isinstance(each, type) and issubclass(each, Exception)):
            raise TypeError(
                f"{who}: also must be a class of errors, or a tuple of them, such as AttributeError, got {each!r}"
            )
    return classes


def is_mistake(error: BaseException, also: type[Exception] | tuple[type[Exception], ...]) -> bool:
    """Whether an error says that the program is wrong, and not an element; `also` names classes that say it of elements.

    The program is also wrong where a reader of this library raises an error of Python's own, and where a function takes other
    arguments than the components of an element; `also` does not change that.
    """
    return (isinstance(error, MISTAKES) and not isinstance(error, also)) or bool(fault_of(error))


def as_policy(op: str, given: object) -> SkipErrors | None:
    """What `on_error=` means: a policy, or None to raise errors.

    Raises:
      InvalidArgumentError: it is none of "raise", "skip" and `SkipErrors(...)`.
    """
    if isinstance(given, SkipErrors):
        return given
    if given == "skip":
        return SkipErrors()
    if given != "raise":
        raise InvalidArgumentError(f'{op}: on_error must be "raise", "skip" or SkipErrors(...), got {given!r}')
    return None


# ----------------------------------------------------------------------------
# Policies: how a pipeline is divided among workers, and the decision which policy is applied.
# ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Share:
    """Which worker's share of a pipeline is meant.

    Args:
      num_workers: W.
      index: the worker, from 0.
      num_replicas: replicas of all workers; None if batches are not cut for replicas.
    """

    num_workers: int
    index: int
    num_replicas: int | None = None


@dataclass(frozen=True)
class Policy:
    """A way to divide a pipeline among workers.

    Args:
      name: in capital letters, as in `AutoShardPolicy`.
      sentence: what each worker reads, for `ShardPlan`.
      shard: (tree, share) -> the tree of that worker. A pure function, the same on all workers. It may raise NotFoundError, or
        InvalidArgumentError, for a pipeline that it cannot divide.
      decide: (tree, workers) -> the decision, for a policy that must look at a pipeline to know whether it can divide it, or
        that leaves it to another policy. It raises what `shard` would raise; `shard` is called after it and need not check
        again. None: this policy is applied.
      divides: False if every worker reads all of its own data, which may differ from that of the others.
      reads_everything: True if workers may read what they do not deliver.
    """

    name: str
    sentence: str
    shard: Callable[[Node, Share], Node] = field(repr=False)
    decide: "Callable[[Node, int], Decision] | None" = field(default=None, repr=False)
    divides: bool = True
    reads_everything: bool = False

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Decision:
    """Which policy divides a pipeline among so many workers, and why.

    Args:
      asked: the policy in the options, or the one that was asked about.
      applied: the policy that divides the pipeline.
      reason: a code: "asked", or why another policy is applied.
      sentence: the same in words.
    """

    asked: Policy
    applied: Policy
    reason: str
    sentence: str


# ----------------------------------------------------------------------------
# The options, and how they are checked and put together.
# ----------------------------------------------------------------------------


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


class AutotuneAlgorithm(enum.Enum):
    """Algorithms of AUTOTUNE, accepted as TensorFlow's; there is one here; `tf.data.experimental.AutotuneAlgorithm`."""

    DEFAULT = 0
    HILL_CLIMB = 1
    GRADIENT_DESCENT = 2
    MAX_PARALLELISM = 3
    STAGE_BASED = 4


class ExternalStatePolicy(enum.Enum):
    """What to do with state outside of a dataset. Accepted, and changes nothing; `tf.data.experimental.ExternalStatePolicy`."""

    WARN = 0
    IGNORE = 1
    FAIL = 2


class _Settings:
    """A group of options: the annotated fields of a subclass. A field that was not set has its default."""

    LEAST: ClassVar[dict[str, int]] = {}
    """Smallest allowed values."""

    if not TYPE_CHECKING:  # a type checker that saw these would accept every name

        def __setattr__(self, name: str, value: Any) -> None:
            if not isinstance(getattr(type(self), name, None), property):
                self._check(name, value)
            super().__setattr__(name, value)

        def __getattr__(self, name: str) -> Any:
            raise self._unknown(name)

    def merge(self, options: Self) -> Self:
        """These options with those of `options` that were set taking precedence.

        As in TensorFlow, a setting that equals the default counts as not set: AUTO does not override an earlier OFF.
        """
        made = type(self)()
        found = vars(made)
        found.update(vars(self))
        for name, value in vars(options).items():
            if isinstance(value, _Settings):
                found[name] = found[name].merge(value)
            elif value is not None and value != getattr(type(self), name):
                found[name] = value
        return made

    def to_dict(self) -> dict[str, Any]:
        """The options that were set."""
        found: dict[str, Any] = {}
        groups: dict[str, Any] = {}
        for name, value in sorted(vars(self).items()):
            if isinstance(value, _Settings):
                inner = value.to_dict()
                if inner:
                    groups[name] = inner
            elif value is not None:
                found[name] = value
        return {**found, **groups}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.to_dict().items())})"

    @classmethod
    def _check(cls, name: str, value: Any) -> None:
        """Refuse a value that the annotation of field `name` does not allow.

        Raises:
          AttributeError: there is no such option.
          TypeError: the value is of another type.
          ValueError: it is too small.
        """
        allowed = cls._fields().get(name)
        if allowed is None:
            raise cls._unknown(name)
        if isinstance(allowed, type) and issubclass(allowed, _Settings):
            if not isinstance(value, allowed):
                raise TypeError(f"option {name!r} must be a {allowed.__name__}, got {value!r}")
            return
        kinds = [get_origin(kind) or kind for kind in get_args(allowed) or (allowed,) if kind is not NoneType]
        flag = isinstance(value, bool) and bool not in kinds  # a bool is an int, but no number of threads
        if value is not None and (flag or not isinstance(value, tuple(kinds))):
            raise TypeError(f"option {name!r} must be of type {kinds[0].__name__}, got {value!r}")
        if isinstance(value, int) and name in cls.LEAST and value < cls.LEAST[name]:
            raise ValueError(f"option {name!r} must be at least {cls.LEAST[name]}, got {value}")

    @classmethod
    def _unknown(cls, name: str) -> AttributeError:
        return AttributeError(
            f"{cls.__name__} has no option {name!r}; {words.meant(name, sorted(cls._fields()), 'it has')}"
        )

    @classmethod
    def _fields(cls) -> dict[str, Any]:
        """The annotations of the options by name."""
        return {name: allowed for name, allowed in get_annotations(cls).items() if name.islower()}


class DistributeOptions(_Settings):
    """How the pipeline is distributed; `tf.data.experimental.DistributeOptions`."""

    auto_shard_policy: AutoShardPolicy | Policy = AutoShardPolicy.AUTO
    num_devices: int | None = None


class AutotuneOptions(_Settings):
    """Limits for what AUTOTUNE chooses; `tf.data.experimental.AutotuneOptions`.

    `autotune_algorithm`, `initial_parallelism` and `min_parallelism` are accepted as TensorFlow's: calls begin one at a time,
    and what is measured decides.
    """

    autotune_algorithm: AutotuneAlgorithm | None = None
    cpu_budget: int | None = None
    enabled: bool | None = None
    initial_parallelism: int | None = None
    min_parallelism: int | None = None
    ram_budget: int | None = None


class OptimizationOptions(_Settings):
    """Which rewrites are applied; `tf.data.experimental.OptimizationOptions`."""

    apply_default_optimizations: bool | None = None
    filter_fusion: bool | None = None
    filter_parallelization: bool | None = None
    inject_prefetch: bool | None = None
    map_and_batch_fusion: bool | None = None
    map_and_filter_fusion: bool | None = None
    map_fusion: bool | None = None
    map_parallelization: bool | None = None
    noop_elimination: bool | None = None
    parallel_batch: bool | None = None
    seq_interleave_prefetch: bool | None = None
    shuffle_and_repeat_fusion: bool | None = None


class ServiceOptions(_Settings):
    """Options of TensorFlow's data service. They are accepted, and change nothing; `tf.data.experimental.ServiceOptions`."""

    pinned: bool | None = None


class ThreadingOptions(_Settings):
    """Thread counts; `tf.data.ThreadingOptions`."""

    max_intra_op_parallelism: int | None = None
    private_threadpool_size: int | None = None


class Options(_Settings):
    """Options of a dataset; the counterpart of `tf.data.Options`.

    Options of a pipeline are merged from its sources down; later settings take precedence.

    >>> import distinput as di
    >>> options = di.data.Options()
    >>> options.experimental_distribute.auto_shard_policy = di.data.experimental.AutoShardPolicy.DATA
    >>> di.data.Dataset.range(4).with_options(options).options().experimental_distribute.auto_shard_policy.name
    'DATA'

    `run_ahead`, which TensorFlow does not have, bounds how far functions and generators run ahead of demand: after `k` elements
    of `map(f)`, `f` was called at most `k + run_ahead` times. Without it, elements are made a block at a time, thousands if
    they are quick. With it, `prefetch`, AUTOTUNE and `interleave` read nothing ahead on threads; what `batch` and `shuffle`
    need for an element counts as demand.

    >>> options = di.data.Options()
    >>> options.run_ahead = 0
    >>> calls = []
    >>> first = next(iter(di.data.Dataset.range(9).map(lambda x: calls.append(x) or x).with_options(options)))
    >>> len(calls)
    1

    `memory_budget`, which TensorFlow does not have, is how many bytes of what they read the readers of files may hold, all of
    them together. Mixtures divide it among their inputs, which are then read in smaller pieces; elements and states stay the
    same. Without it, more than four inputs share 8 MiB. A single record, a page of a Parquet file and a compressed record
    batch of an Arrow file may take more.

    >>> options = di.data.Options()
    >>> options.memory_budget = 16 << 20
    >>> sources = [di.data.Dataset.range(3)] * 100
    >>> len(di.data.Dataset.sample_from_datasets(sources, seed=1).with_options(options).to_list())
    300

    `on_error`, which TensorFlow does not have, says what readers of files, `map`, `map_rows` and `parse_example` do with an
    element that fails, where their own argument `on_error` does not say it: "raise", "skip" or `SkipErrors(...)`. It holds
    for the steps before `with_options` and for those that follow it.

    >>> options = di.data.Options()
    >>> options.on_error = "skip"
    >>> di.data.Dataset.from_tensor_slices(["1", "x"]).map(int).with_options(options).to_list()
    [1]
    """

    autotune: AutotuneOptions
    dataset_name: str | None = None
    deterministic: bool | None = None
    experimental_distribute: DistributeOptions
    experimental_external_state_policy: ExternalStatePolicy | None = None
    experimental_optimization: OptimizationOptions
    experimental_service: ServiceOptions
    experimental_slack: bool | None = None
    experimental_symbolic_checkpoint: bool | None = None
    experimental_warm_start: bool | None = None
    framework_type: list[str] | None = None
    memory_budget: int | None = None
    on_error: str | SkipErrors | None = None
    run_ahead: int | None = None
    threading: ThreadingOptions

    LEAST: ClassVar[dict[str, int]] = {"memory_budget": 1, "run_ahead": 0}

    def __init__(self) -> None:
        self.autotune = AutotuneOptions()
        self.experimental_distribute = DistributeOptions()
        self.experimental_optimization = OptimizationOptions()
        self.experimental_service = ServiceOptions()
        self.threading = ThreadingOptions()

    @property
    def experimental_deterministic(self) -> bool | None:
        """The older name of `deterministic`."""
        return self.deterministic

    @experimental_deterministic.setter
    def experimental_deterministic(self, value: bool | None) -> None:
        self.deterministic = value

    @property
    def experimental_threading(self) -> ThreadingOptions:
        """The older name of `threading`."""
        return self.threading

    @experimental_threading.setter
    def experimental_threading(self, value: ThreadingOptions) -> None:
        self.threading = value


def options_of(node: Node) -> Options:
    """The options that hold for a tree: those of later inputs take precedence over earlier ones, the node's own over all.

    Source: the merging of `tf.data.Dataset.options`.
    """
    merged = Options()
    for step in walk(node):
        if step.own_options is not None:
            merged = merged.merge(step.own_options)
    return merged
