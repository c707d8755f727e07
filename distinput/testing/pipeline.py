# SPDX-License-Identifier: Apache-2.0
"""Random pipelines, from ingredients: what one is, the arguments of ops, and the functions that ops are given."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from distinput.data.dataset import Dataset
from distinput.names.lazy import dataclass
from distinput.plan.families import drawn_seeds, with_drawn_seeds
from distinput.plan.options import AutoShardPolicy, Options
from distinput.values.nest import flatten, map_leaves
from distinput.values.ragged_tensor import RaggedTensor
from distinput.values.spec import RaggedTensorSpec, Spec, TensorSpec

# ----------------------------------------------------------------------------
# A drawn pipeline: its recipe, its dataset, and the plain list that it must give.
# ----------------------------------------------------------------------------


PipelineStep = tuple[str, dict[str, Any]]
"""The name of an ingredient and its arguments."""

DrawFrom = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True)
class Ingredient:
    """A source or an op of random pipelines.

    Args:
      name: the word for it in recipes.
      build: (dataset so far, arguments) -> dataset. A source is given None.
      model: (pipeline so far, arguments) -> the elements as a list; by default they are as they were. A source is given None.
      draw: (draw, pipeline so far) -> arguments, JSON values; by default there are none.
      fits: whether the op can follow the pipeline so far.
      settled: for an ingredient whose order is random: whether every pass gives the same order with these arguments. Its
        `model` is given the elements that a pass gave as its third argument, and checks them.
      weight: how much more often it is taken than others, where it fits.
    """

    name: str
    build: Callable[[Any, dict[str, Any]], Dataset]
    model: Callable[..., list[Any]] = lambda p, _: p.elements
    draw: Callable[[DrawFrom, Any], dict[str, Any]] = lambda *_: {}
    fits: Callable[["Pipeline"], bool] = lambda _: True
    settled: Callable[[dict[str, Any]], bool] | None = None
    weight: int = 1

    def __repr__(self) -> str:
        return f"Ingredient({self.name!r})"


@dataclass(frozen=True)
class Pipeline:
    """A drawn pipeline.

    Args:
      recipe: its steps, the source first.
      elements: what a pass gives, in order.
      exact: False after an op that gives every pass another order: then `elements` is one of these passes.
      table: the ingredients by name.
    """

    recipe: tuple[PipelineStep, ...]
    elements: list[Any]
    exact: bool
    table: Mapping[str, Ingredient]

    @staticmethod
    def of(name: str, arguments: dict[str, Any], table: Mapping[str, Ingredient]) -> "Pipeline":
        """The pipeline of a source alone."""
        return _extended(None, ((name, arguments),), table)

    def then(self, name: str, arguments: dict[str, Any]) -> "Pipeline":
        """This pipeline with one more step."""
        return _extended(self, (*self.recipe, (name, arguments)), self.table)

    def build(self) -> Dataset:
        """A dataset of this recipe, made again, with other seeds than the last one where the recipe names none."""
        return _seeded(assembled(self.recipe, self.table), next(self._numbers))

    @cached_property
    def _numbers(self) -> Iterator[int]:
        return count()

    def __repr__(self) -> str:
        return f"Pipeline({list(self.recipe)})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How Hypothesis shows it."""
        printer.text(repr(self))

    # --- what ops ask for

    @cached_property
    def spec(self) -> Spec:
        """What an element looks like."""
        return self.build().node.spec

    @cached_property
    def tensors(self) -> bool:
        """No leaf is a dataset."""
        return all(isinstance(leaf, TensorSpec) for leaf in self.spec.leaves)

    @cached_property
    def leaves(self) -> tuple[TensorSpec, ...]:
        """The leaf specs of a pipeline of tensors."""
        return self.spec.tensors("pipelines")

    @cached_property
    def sparse(self) -> bool:
        """There are sparse tensors in it, which no op stacks or takes apart."""
        return bool(self.spec.structure.sparse)

    @cached_property
    def ranked(self) -> bool:
        """All leaves are tensors of known rank, and none of them is part of a sparse tensor."""
        return self.tensors and not self.sparse and all(leaf.shape is not None for leaf in self.leaves)

    @cached_property
    def static(self) -> bool:
        """All shapes are known."""
        return self.ranked and all(leaf.size is not None for leaf in self.leaves)

    @cached_property
    def stackable(self) -> bool:
        """Any elements can be stacked: they have one shape."""
        if not self.tensors or self.sparse:
            return False
        known = all(leaf.ragged_rank is not None or leaf.size is not None for leaf in self.leaves)
        return known or (self.exact and len({_shapes(self, e) for e in self.elements}) <= 1)

    @cached_property
    def batched(self) -> bool:
        """Every element can be taken apart along its first axis."""
        if not self.ranked or any(leaf.shape == () for leaf in self.leaves):
            return False
        firsts = {leaf.shape[0] for leaf in self.leaves if leaf.shape}
        if len(firsts - {None}) > 1:
            return False
        if len(self.leaves) == 1 or (len(firsts) == 1 and None not in firsts):
            return True
        return self.exact and all(len({len(leaf) for leaf in self.flat(element)}) == 1 for element in self.elements)

    @cached_property
    def regular(self) -> bool:
        """Batches whose rows can be put together in any way: beyond the first axis, all of one shape."""
        if not self.batched:
            return False
        known = all(leaf.ragged_rank is not None or None not in (leaf.shape or ())[1:] for leaf in self.leaves)
        return known or (self.exact and len({_shapes(self, e, 1) for e in self.elements}) <= 1)

    def flat(self, element: Any) -> list[Any]:
        """The leaves of an element."""
        return self.spec.structure.flatten(element)

    def like(self, elements: Sequence[Sequence[Any]]) -> list[Any]:
        """Elements of this structure from their leaves."""
        return [self.spec.structure.build(list(leaves)) for leaves in elements]


def _extended(before: Pipeline | None, recipe: tuple[PipelineStep, ...], table: Mapping[str, Ingredient]) -> Pipeline:
    """The pipeline of a recipe, whose last step comes after another pipeline or is a source."""
    name, arguments = recipe[-1]
    ingredient, exact = table[name], before is None or before.exact
    if ingredient.settled is None:
        return Pipeline(recipe, ingredient.model(before, arguments), exact, table)
    elements = ingredient.model(before, arguments, list(_seeded(assembled(recipe, table), 0)))
    return Pipeline(recipe, elements, exact and ingredient.settled(arguments), table)


def _seeded(dataset: Dataset, number: int) -> Dataset:
    """The same dataset; seeds that it drew are replaced, since a test must do the same each time."""
    drawn = drawn_seeds(dataset.node)
    return Dataset(with_drawn_seeds(dataset.node, [1000 * number + i for i in range(len(drawn))])) if drawn else dataset


def _shapes(p: Pipeline, element: Any, first: int = 0) -> tuple[tuple[int, ...], ...]:
    """The shapes of the leaves of an element from a dimension on, except for those that are ragged."""
    pairs = zip(p.flat(element), p.leaves, strict=True)
    return tuple([getattr(leaf, "shape", ())[first:] for leaf, spec in pairs if spec.ragged_rank is None])


def assembled(recipe: Iterable[Sequence[Any]], table: Mapping[str, Ingredient]) -> Dataset:
    """The dataset of a recipe."""
    made: Any = None
    for name, arguments in recipe:
        made = table[name].build(made, arguments)
    return made  # type: ignore[no-any-return]


# ----------------------------------------------------------------------------
# User functions for random pipelines: they take elements of any structure, and their results depend on the element alone.
# ----------------------------------------------------------------------------


class Point(NamedTuple):
    """A namedtuple element."""

    x: Any
    y: Any


@dataclass
class NamedRecord:
    """A dataclass element."""

    id: Any
    name: Any


def applied(function: Callable[..., Any], element: Any) -> Any:
    """`function` called with an element as TensorFlow does."""
    result = function(*element) if type(element) is tuple else function(element)
    return tuple(result) if type(result) is list else result


def whole(args: tuple[Any, ...]) -> Any:
    """The element again, from the arguments that a function was called with."""
    return args[0] if len(args) == 1 else args


def length(*args: Any) -> int:
    """A small number that an element decides."""
    return digest(*args) % 4


def token_count(*args: Any) -> Any:
    """The number of tokens that an element is taken to have."""
    return np.int64(digest(*args) % 10)


def digest(*args: Any) -> int:
    """A number that an element decides, by its values and shapes."""
    return sum(place * _digest(leaf) for place, leaf in enumerate(flatten(whole(args)), 1)) % 1_000_003


def _digest(leaf: Any) -> int:
    if isinstance(leaf, bytes):
        return sum(leaf) + len(leaf)
    if isinstance(leaf, np.ndarray | np.generic):
        if leaf.dtype == object:
            return sum(map(_digest, leaf.reshape(-1).tolist())) + leaf.size
        return int(np.asarray(leaf).astype(np.int64).sum()) + 3 * leaf.size
    if isinstance(leaf, RaggedTensor):
        return _digest(leaf.flat_values) + sum(map(_digest, leaf.nested_row_splits))
    return sum(1 for _ in leaf)


def predicate(modulus: int, rest: int) -> Callable[..., Any]:
    """A predicate: true for elements whose digest modulo `modulus` is not `rest`."""
    return lambda *args: np.bool_(digest(*args) % modulus != rest)


def _change_leaf(leaf: Any) -> Any:
    if isinstance(leaf, bytes):
        return b"<" + leaf
    if isinstance(leaf, RaggedTensor):
        return leaf.with_flat_values(_change_leaf(leaf.flat_values))
    if not isinstance(leaf, np.ndarray | np.generic):
        return leaf  # a dataset stays
    if leaf.dtype == object:
        made = np.empty(leaf.shape, object)
        made.reshape(-1)[:] = [b"<" + item for item in leaf.reshape(-1).tolist()]
        return made
    return np.logical_not(leaf) if leaf.dtype == np.bool_ else np.add(leaf, leaf.dtype.type(1))


def change(*args: Any) -> Any:
    """Another value in every leaf, of the same dtype and shape."""
    return map_leaves(_change_leaf, whole(args), lists=False)


def wrap(*args: Any) -> Any:
    """The element in a dict."""
    return {"k": whole(args)}


def twice(*args: Any) -> Any:
    """The element and itself."""
    return whole(args), whole(args)


def first(*args: Any) -> Any:
    """The first leaf."""
    return flatten(whole(args))[0]


def several(*args: Any) -> Any:
    """A list, which becomes a tuple."""
    return [np.int64(digest(*args)), str(digest(*args)).encode()]


def number(*args: Any) -> Any:
    """An int64 scalar."""
    return np.int64(digest(*args))


def few(*args: Any) -> Any:
    """One of a few int32 scalars."""
    return np.int32(digest(*args) % 5)


def ragged(*args: Any) -> Any:
    """A vector whose length differs."""
    return np.arange(length(*args), dtype=np.int64) + digest(*args)


def raggeds(*args: Any) -> Any:
    """Two vectors of one differing length, and text."""
    size = length(*args)
    words = np.empty(size, object)
    words[:] = [b"w%d" % i for i in range(size)]
    return {"n": np.full(size, digest(*args), np.int32), "w": words}


def rows(*args: Any) -> Any:
    """A ragged tensor."""
    lengths = np.arange(length(*args)) % 3
    return RaggedTensor.from_row_lengths(np.arange(lengths.sum()) + digest(*args), lengths)


def matrix(*args: Any) -> Any:
    """Rows that differ in number."""
    return np.full((length(*args), 2), digest(*args), np.float32)


def uneven(*args: Any) -> Any:
    """An array that differs in both dimensions."""
    return np.full((length(*args), digest(*args) % 3), 7, np.int64)


def point(*args: Any) -> Any:
    """A namedtuple."""
    return Point(np.int64(digest(*args)), (b"p", np.arange(3, dtype=np.int32)))


def record(*args: Any) -> Any:
    """A dataclass."""
    return NamedRecord(np.int64(digest(*args)), b"r%d" % length(*args))


def vector(*args: Any) -> Any:
    """Three numbers."""
    return np.arange(3, dtype=np.int64) + digest(*args)


def pairs(*args: Any) -> Any:
    """Two leaves with a first axis of four."""
    return (np.arange(4, dtype=np.float32) + length(*args), np.full((4, 2), digest(*args), np.int64))


MAPS: dict[str, Callable[..., Any]] = {
    made.__name__: made
    for made in (
        change, few, first, matrix, number, pairs, point, ragged, raggeds, record, rows, several, twice, uneven, vector,
        wrap,
    )
}  # fmt: skip
"""Functions for `map`, by name."""

SIGNATURES: dict[str, Any] = {
    "matrix": TensorSpec((None, 2), np.float32),
    "ragged": TensorSpec((None,), np.int64),
    "raggeds": {"n": TensorSpec((None,), np.int32), "w": TensorSpec((None,), object)},
    "rows": RaggedTensorSpec((None, None), np.int64),
    "uneven": TensorSpec((None, None), np.int64),
}
"""Signatures of the functions whose results differ in shape from element to element."""


def row_pair(*args: Any) -> Any:
    """The rows of the first leaf, twice."""
    rows = flatten(whole(args))[0]
    return {"rows": rows, "same": rows}


ROW_MAPS: dict[str, Callable[..., Any]] = {"change": change, "pair": row_pair}
"""Functions for `map_rows`, by name."""


# ----------------------------------------------------------------------------
# What the ops of random pipelines share: how arguments are drawn, and what an op fits behind.
# ----------------------------------------------------------------------------


OpArguments = dict[str, Any]
"""The arguments of an op or a source in a recipe: JSON values."""

SMALL = st.integers(1, 5)
EITHER = st.booleans()
COUNTS = st.sampled_from([3, 1, 2, 5, 8, 13, 0, -1])
PARALLEL = st.sampled_from([None, None, None, 1, 2, -1])


def drawing(**arguments: st.SearchStrategy[Any]) -> Callable[[DrawFrom, Any], OpArguments]:
    """What draws arguments one after another, whatever they are for."""
    return lambda draw, _: {name: draw(strategy) for name, strategy in arguments.items()}


def each(function: Callable[..., Any], then: Callable[[Any], Any] = lambda made: made) -> Callable[..., list[Any]]:
    """A model: what a function makes of each element, and a further one of that."""
    return lambda p, _: [then(applied(function, element)) for element in p.elements]


def tensors(p: Pipeline) -> bool:
    """Whether no leaf is a dataset."""
    return p.tensors


def with_policy(name: str) -> Options:
    """Options with this policy for sharding."""
    options = Options()
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy[name]
    return options
