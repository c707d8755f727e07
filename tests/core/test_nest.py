# SPDX-License-Identifier: Apache-2.0
"""A nest is its structure and its leaves: what is taken apart comes together again, whatever it is made of."""

import pickle
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.values.nest import LEAF, NONE, Structure, flatten, map_leaves, structure_of, tuple_of

Pair = namedtuple("Pair", ["left", "right"])  # noqa: PYI024 - as users write it


@dataclass(frozen=True)
class Record:
    x: Any
    y: Any


def inside(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keys = st.one_of(st.text("abc", max_size=2), st.integers(0, 3))
    dicts = st.dictionaries(keys, children, max_size=3)
    return st.one_of(
        st.lists(children, max_size=3).map(tuple),
        dicts,
        dicts.map(OrderedDict),
        st.tuples(children, children).map(lambda pair: Pair(*pair)),
        st.tuples(children, children).map(lambda pair: Record(*pair)),
    )


NESTS = st.recursive(st.one_of(st.integers(), st.none()), inside, max_leaves=8)


@given(NESTS)
def test_a_nest_is_built_again_from_its_leaves(nest: Any) -> None:
    structure = structure_of(nest)
    leaves = structure.flatten(nest)
    assert structure.num_leaves == len(leaves) == len(structure.paths)
    assert len(set(structure.paths)) == len(leaves)
    built = structure.build(leaves)
    assert built == nest
    assert type(built) is type(nest)
    if isinstance(nest, dict):
        assert list(built) == list(nest)  # in its own order, though leaves are sorted by key
    assert pickle.loads(pickle.dumps(structure)).build(leaves) == nest


@given(NESTS)
def test_leaves_are_those_found_by_hand_in_sorted_order(nest: Any) -> None:
    def found(at: Any) -> list[int]:
        if at is None:
            return []
        if isinstance(at, dict):
            keys = (
                sorted(at)
                if len({type(key) for key in at}) < 2
                else sorted(at, key=lambda k: (type(k).__name__, str(k)))
            )
            return [leaf for key in keys for leaf in found(at[key])]
        if isinstance(at, tuple):
            return [leaf for child in at for leaf in found(child)]
        if isinstance(at, Record):
            return found(at.x) + found(at.y)
        return [at]

    assert flatten(nest) == found(nest)


@given(NESTS)
def test_a_function_over_the_leaves_keeps_the_structure(nest: Any) -> None:
    doubled = map_leaves(lambda a, b: a + b, nest, nest)
    assert structure_of(doubled) == structure_of(nest)
    assert flatten(doubled) == [2 * leaf for leaf in flatten(nest)]


@given(NESTS)
def test_a_structure_says_which_leaf_is_where(nest: Any) -> None:
    structure = structure_of(nest)
    for path, leaf in zip(structure.paths, structure.flatten(nest), strict=True):
        assert eval(f"nest{path}", {"nest": nest}) == leaf  # noqa: S307 - a path is Python


def test_structures_of_the_same_keys_are_equal_in_any_order_and_mapping() -> None:
    assert structure_of({"a": 1, "b": 2}) == structure_of(OrderedDict(b=3, a=4))
    assert structure_of((1, 2)) != structure_of([1, 2], lists=True)
    assert structure_of((1, 2)) != structure_of(Pair(1, 2))


def test_mappings_that_cannot_be_made_again_become_dicts() -> None:
    nest = MappingProxyType({"a": 1})
    assert structure_of(nest).build([5]) == {"a": 5}
    made = structure_of(defaultdict(list, a=1)).build([5])
    assert made["other"] == []


def test_a_list_is_a_leaf_unless_it_is_asked_for() -> None:
    assert structure_of([1, 2]) == LEAF
    assert flatten([1, [2, 3]], lists=True) == [1, 2, 3]
    assert structure_of([1, [2]], lists=True).build([3, 4]) == [3, [4]]
    assert structure_of((1, 2), is_leaf=lambda x: isinstance(x, tuple)) == LEAF


def test_leaves_are_replaced_by_structures() -> None:
    pair = tuple_of([LEAF, LEAF])
    grafted = structure_of({"a": 0, "b": None}).graft([pair])
    assert grafted.build([1, 2]) == {"a": (1, 2), "b": None}
    assert LEAF.graft([pair]) == pair
    assert NONE.graft([]) == NONE


@pytest.mark.parametrize(
    "like, other, says",
    [
        ((0, 0), (0,), "expected a tuple of 2, got a tuple of 1"),
        ((0, 0), 5, "expected a tuple of 2, got a int"),
        ({"a": 0}, {"b": 0}, r"expected a dict with keys \['a'\], got a dict with keys \['b'\]"),
        ({"a": 0}, 3, r"expected a dict with keys \['a'\], got a int"),
        (None, 3, "expected None, got int"),
        (Record(0, 0), (0, 0), "expected .*Record.*, got a tuple of 2"),
    ],
)
def test_a_value_of_another_structure_is_told(like: Any, other: Any, says: str) -> None:
    with pytest.raises(TypeError, match=f"the structures differ: {says}"):
        structure_of(like).flatten(other)


@pytest.mark.parametrize(
    "nest, flat", [(0, False), ((0, 0), True), ((), False), ((0, (0,)), False), ([0], False), (Pair(0, 0), False)]
)
def test_flat_tuples_are_known(nest: Any, flat: bool) -> None:
    assert structure_of(nest, lists=True).is_flat_tuple is flat


def test_a_structure_prints_as_the_nest_with_dots() -> None:
    assert str(structure_of({"b": (1, None), "a": Pair(1, 2)})) == "{'b': (., None), 'a': Pair(left=., right=.)}"
    assert isinstance(structure_of(1), Structure)


@pytest.mark.parametrize("kind", ["dict", "list", "tuple"])
@pytest.mark.parametrize("levels", [59, 60, 61, 62, 130, 260])
def test_a_nest_has_as_many_levels_as_python_lets_it(kind: str, levels: int) -> None:
    made: Any = 0
    for level in range(levels):
        made = (
            {"below": made, "beside": (1, level)}
            if kind == "dict"
            else (made, level)
            if kind == "tuple"
            else [made, level]
        )
    structure = structure_of(made, lists=True)
    assert structure.build([*_leaves(made)]) == made


def _leaves(nest: Any) -> Any:
    if isinstance(nest, int):
        yield nest
        return
    for each in nest.values() if isinstance(nest, dict) else nest:
        yield from _leaves(each)
