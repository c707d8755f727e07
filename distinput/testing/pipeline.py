# SPDX-License-Identifier: Apache-2.0
"""A drawn pipeline: its recipe, its dataset, and the plain list that it must give."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

from hypothesis import strategies as st

from distinput.core.spec import Spec, TensorSpec
from distinput.data.dataset import Dataset
from distinput.plan.node import Node
from distinput.plan.seeds import drawn_seeds, with_drawn_seeds

__all__ = ["DrawFrom", "Ingredient", "Pipeline", "PipelineStep", "assembled"]

PipelineStep = tuple[str, dict[str, Any]]
"""The name of an ingredient and its arguments."""

DrawFrom = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True)
class Ingredient:
    """A source or an op of random pipelines.

    Args:
      name: the word for it in recipes.
      covers: classes of nodes that it makes.
      build: (dataset so far, arguments) -> dataset. A source is given None.
      model: (pipeline so far, arguments) -> the elements as a list. A source is given None.
      draw: (draw, pipeline so far) -> arguments, JSON values.
      fits: whether the op can follow the pipeline so far.
      observed: the order is random; `model` is given the elements that a pass gave as its third argument, and checks them.
      settled: for an observed ingredient: whether every pass gives the same order with these arguments.
      weight: how much more often it is taken than others, where it fits.
    """

    name: str
    covers: tuple[type[Node], ...]
    build: Callable[[Any, dict[str, Any]], Dataset]
    model: Callable[..., list[Any]]
    draw: Callable[[DrawFrom, Any], dict[str, Any]]
    fits: Callable[["Pipeline"], bool] = lambda _: True
    observed: bool = False
    settled: Callable[[dict[str, Any]], bool] = lambda _: True
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
        source = table[name]
        step = (name, arguments)
        if not source.observed:
            return Pipeline((step,), source.model(None, arguments), True, table)
        seen = list(_seeded(source.build(None, arguments), 0))
        return Pipeline((step,), source.model(None, arguments, seen), source.settled(arguments), table)

    def then(self, name: str, arguments: dict[str, Any]) -> "Pipeline":
        """This pipeline with one more step."""
        ingredient = self.table[name]
        recipe = (*self.recipe, (name, arguments))
        if not ingredient.observed:
            return Pipeline(recipe, ingredient.model(self, arguments), self.exact, self.table)
        elements = ingredient.model(self, arguments, list(_seeded(assembled(recipe, self.table), 0)))
        return Pipeline(recipe, elements, self.exact and ingredient.settled(arguments), self.table)

    def build(self) -> Dataset:
        """A dataset of this recipe, made anew, with other seeds than the last one where the recipe names none."""
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
        loose = [leaf.ragged_rank is not None for leaf in self.leaves]
        if all(free or leaf.size is not None for leaf, free in zip(self.leaves, loose, strict=True)):
            return True
        return self.exact and len({_shapes(self.flat(e), loose) for e in self.elements}) <= 1

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
        loose = [leaf.ragged_rank is not None for leaf in self.leaves]
        if all(free or None not in (leaf.shape or ())[1:] for leaf, free in zip(self.leaves, loose, strict=True)):
            return True
        return self.exact and len({_shapes(self.flat(e), loose, 1) for e in self.elements}) <= 1

    def flat(self, element: Any) -> list[Any]:
        """The leaves of an element."""
        return self.spec.structure.flatten(element)

    def like(self, elements: Sequence[Sequence[Any]]) -> list[Any]:
        """Elements of this structure from their leaves."""
        return [self.spec.structure.build(list(leaves)) for leaves in elements]


def _seeded(dataset: Dataset, number: int) -> Dataset:
    """The same dataset; seeds that it drew are replaced, since a test must do the same each time."""
    drawn = drawn_seeds(dataset.node)
    return Dataset(with_drawn_seeds(dataset.node, [1000 * number + i for i in range(len(drawn))])) if drawn else dataset


def _shapes(leaves: Sequence[Any], loose: Sequence[bool], first: int = 0) -> tuple[tuple[int, ...], ...]:
    """The shapes of leaves from a dimension on, except for those that are ragged."""
    return tuple([getattr(leaf, "shape", ())[first:] for leaf, free in zip(leaves, loose, strict=True) if not free])


def assembled(recipe: Iterable[Sequence[Any]], table: Mapping[str, Ingredient]) -> Dataset:
    """The dataset of a recipe."""
    made: Any = None
    for name, arguments in recipe:
        made = table[name].build(made, arguments)
    return made  # type: ignore[no-any-return]
