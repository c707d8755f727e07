# SPDX-License-Identifier: Apache-2.0
"""A nest is its structure and its leaves: what is taken apart comes together again, whatever it is made of."""

import pickle
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import InitVar, dataclass, field, fields, is_dataclass
from types import MappingProxyType
from typing import Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.values.nest import LEAF, NONE, Structure, flatten, maker, map_leaves, structure_of, tuple_of

Dataset = di.data.Dataset
Pair = namedtuple("Pair", ["left", "right"])  # noqa: PYI024 - as users write it


@dataclass(frozen=True)
class Record:
    x: Any
    y: Any


@dataclass
class Scaled:
    """Changes what it is given."""

    x: Any

    def __post_init__(self) -> None:
        self.x = (self.x, 1)


@dataclass(frozen=True, slots=True)
class Counted:
    """Has a field that the constructor does not take."""

    x: Any
    size: Any = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", 7)


@dataclass
class Told:
    """Takes what is no field, and refuses what it is not given by hand."""

    x: Any
    factor: InitVar[int]
    y: Any = None

    def __post_init__(self, factor: int) -> None:
        self.y = factor


@dataclass
class Written:
    """Its constructor is the user's."""

    x: Any

    def __init__(self, text: str) -> None:
        self.x = text


class Doubled(namedtuple("Doubled", ["left", "right"])):  # noqa: PYI024 - as users write it
    """Changes what it is given."""

    def __new__(cls, left: Any, right: Any = None) -> Self:
        return super().__new__(cls, (left, left), right)


def inside(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keys = st.one_of(st.text("abc", max_size=2), st.integers(0, 3))
    dicts = st.dictionaries(keys, children, max_size=3)
    return st.one_of(
        st.lists(children, max_size=3).map(tuple),
        dicts,
        dicts.map(OrderedDict),
        st.tuples(children, children).map(lambda pair: Pair(*pair)),
        st.tuples(children, children).map(lambda pair: Record(*pair)),
        children.map(Scaled),
        children.map(Counted),
        children.map(lambda child: Told(child, 3)),
        children.map(Written),
        children.map(Doubled),
    )


NESTS = st.recursive(st.one_of(st.integers(), st.none()), inside, max_leaves=8)


@given(NESTS)
def test_a_nest_is_built_again_from_its_leaves(nest: Any) -> None:
    structure = structure_of(nest)
    leaves = structure.flatten(nest)
    assert structure.num_leaves == len(leaves) == len(structure.paths)
    assert len(set(structure.paths)) == len(leaves)
    built = structure.build(leaves)
    assert built == structure.build_of(*leaves) == nest
    assert type(built) is type(nest)
    if isinstance(nest, dict):
        assert list(built) == list(nest)  # in its own order, though leaves are sorted by key
    assert pickle.loads(pickle.dumps(structure)).build(leaves) == nest


def test_what_a_class_derives_from_its_fields_is_there_where_it_leaves_them_as_they_are() -> None:
    @dataclass
    class Sentence:
        words: Any

        def __post_init__(self) -> None:
            self.length = len(self.words)

    @dataclass
    class Checked(Sentence):
        def __post_init__(self) -> None:
            if len(self.words) != 1:
                raise ValueError("one word only")

    assert maker(Sentence)(words="ab").length == 2
    assert maker(Checked)(words="ab").words == "ab"
    assert maker(Record) is Record
    assert maker(Pair) is Pair


def test_elements_keep_their_fields_through_steps_and_replicas() -> None:
    dataset = di.data.Dataset.from_source([Scaled(1), Scaled(2)]).map(lambda one: one)
    (batch,) = dataset.shuffle(2, seed=1).batch(2).unbatch().batch(2)
    assert sorted(batch.x[0].tolist()) == [1, 2]
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    steps = strategy.experimental_distribute_dataset(dataset.batch(2))
    parts = [strategy.experimental_local_results(one.x[0]) for one in steps]
    assert [part.tolist() for part in parts[0]] == [[1], [2]]


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
        if is_dataclass(at):
            return [leaf for each in fields(at) for leaf in found(getattr(at, each.name))]
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


def _holds_itself(kind: str) -> Any:
    if kind == "deep":
        made: Any = 1
        for _ in range(3000):
            made = (made,)
        return made
    made = {}
    made["a"] = made
    return made


@pytest.mark.parametrize("kind", ["deep", "itself"])
@pytest.mark.parametrize(
    "make",
    [
        structure_of,
        lambda value: Dataset.from_tensors(value),
        lambda value: Dataset.range(2).map(lambda _: value).to_list(),
        lambda value: Dataset.range(2).scan(value, lambda state, x: (state, x)).to_list(),
        lambda value: Dataset.range(2).scan(0, lambda state, _: (state, value)).to_list(),
        lambda value: Dataset.from_generator(
            lambda: iter([value]), output_signature=di.data.TensorSpec((), "int64")
        ).to_list(),
    ],
)
def test_a_nest_without_an_end_is_told_so(make: Any, kind: str) -> None:
    with pytest.raises((di.errors.InvalidArgumentError, TypeError), match="a nest has more levels than Python follows"):
        make(_holds_itself(kind))
