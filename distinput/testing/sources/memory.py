# SPDX-License-Identifier: Apache-2.0
"""Sources that read no file: numbers, arrays, generators, and objects that give items by position."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from distinput.data.dataset import Dataset
from distinput.names.lazy import dataclass
from distinput.testing.pipeline import EITHER, DrawFrom, Ingredient, NamedRecord, Point, drawing
from distinput.values.nest import structure_of
from distinput.values.ragged_tensor import RaggedTensor
from distinput.values.spec import TensorSpec

# ----------------------------------------------------------------------------
# Arrays of several kinds, as nests with a first axis.
# ----------------------------------------------------------------------------


def words(n: int, salt: int) -> Any:
    """Text of different lengths, empty among it."""
    made = np.empty(n, object)
    made[:] = [b"x" * ((i + salt) % 4) + (b"%d" % i if i % 5 else b"") for i in range(n)]
    return made


def ragged(n: int, salt: int, *, text: bool = False) -> RaggedTensor:
    """Rows of different lengths, empty ones among them."""
    lengths = (np.arange(n) * 3 + salt) % 4
    total = int(lengths.sum())
    return RaggedTensor.from_row_lengths(words(total, salt) if text else np.arange(total) * 2 + salt, lengths)


def _deep(n: int, salt: int) -> RaggedTensor:
    lengths = (np.arange(n) + salt) % 3
    return RaggedTensor.from_row_lengths(ragged(int(lengths.sum()), salt), lengths)


KINDS: dict[str, Callable[[int, int], Any]] = {
    "bool": lambda n, salt: (np.arange(n) + salt) % 3 == 0,
    "deep": lambda n, salt: {"x": ({"y": np.arange(n) * 2 + salt},), "z": (words(n, salt),)},
    "dict": lambda n, salt: {
        "b": np.arange(2 * n, dtype=np.float32).reshape(n, 2) + salt,
        "a": np.arange(n, dtype=np.int32),
    },
    "float": lambda n, salt: np.arange(n, dtype=np.float32) / 2 + salt,
    "int": lambda n, salt: np.arange(n) * 3 + salt,
    "int32": lambda n, salt: (np.arange(n, dtype=np.int32) + salt) % 7,
    "narrow": lambda n, salt: np.zeros((n, 0), np.int64) + salt,
    "pair": lambda n, salt: (np.arange(n) + salt, words(n, salt)),
    "point": lambda n, salt: Point(
        np.arange(n) + salt, (words(n, salt), np.arange(3 * n, dtype=np.int32).reshape(n, 3))
    ),
    "record": lambda n, salt: NamedRecord(np.arange(n) + salt, words(n, salt)),
    "rows": lambda n, salt: {
        "id": np.arange(n) + salt,
        "rows": ragged(n, salt),
        "words": ragged(n, salt + 1, text=True),
    },
    "rows_of_rows": lambda n, salt: _deep(n, salt),
    "single": lambda n, salt: (np.arange(n) + salt,),
    "str": words,
    "texts": lambda n, salt: words(2 * n, salt).reshape(n, 2),
    "wide": lambda n, salt: np.arange(4 * n).reshape(n, 4) + salt,
}
"""Arrays with a first axis of n, as nests of several kinds."""


def rows_of(arrays: Any) -> list[Any]:
    """The elements that slicing arrays gives."""
    structure = structure_of(arrays)
    leaves = structure.flatten(arrays)
    return [structure.build([leaf[i] for leaf in leaves]) for i in range(len(leaves[0]))]


COUNT = st.sampled_from([5, 8, 12, 3, 1, 2, 20, 0])
SALT = st.integers(0, 9)


# ----------------------------------------------------------------------------
# Sources that read no file: numbers, arrays, generators, and objects that give items by position.
# ----------------------------------------------------------------------------


_draw_kind = drawing(kind=st.sampled_from(sorted(KINDS)), n=COUNT, salt=SALT)


def _kind(arguments: dict[str, Any]) -> Any:
    return KINDS[arguments["kind"]](arguments["n"], arguments["salt"])


def _draw_range(draw: DrawFrom, _: Any) -> dict[str, Any]:
    step = draw(st.sampled_from([1, 1, 2, -1, 3]))
    start = draw(st.integers(-3, 9))
    dtype = draw(st.sampled_from(["int64", "int64", "int32", "float32"]))
    return {
        "start": start,
        "stop": start + step * draw(st.sampled_from([7, 4, 12, 25, 1, 2, 0, -1])),
        "step": step,
        "dtype": dtype,
    }


def _range_model(_: None, a: dict[str, Any]) -> list[Any]:
    return [np.dtype(a["dtype"]).type(i) for i in range(a["start"], a["stop"], a["step"])]


def _build_range(_: None, a: dict[str, Any]) -> Dataset:
    return Dataset.range(a["start"], a["stop"], a["step"], output_type=np.dtype(a["dtype"]))


_GENERATED = ("dict", "int", "pair", "ragged", "str", "uneven", "wide")


def generated(kind: str, n: int, salt: int) -> list[Any]:
    """Elements for a generator, some of which differ in shape."""
    if kind == "ragged":
        return [{"id": np.int64(i), "values": np.arange((i + salt) % 4) + i} for i in range(n)]
    if kind == "uneven":
        return [np.full((i % 3, (i + salt) % 2), i, np.int32) for i in range(n)]
    return rows_of(KINDS[kind](n, salt))


def signature(kind: str) -> Any:
    """The signature of a generated kind."""
    if kind == "ragged":
        return {"id": TensorSpec((), np.int64), "values": TensorSpec((None,), np.int64)}
    if kind == "uneven":
        return TensorSpec((None, None), np.int32)
    arrays = KINDS[kind](1, 0)
    structure = structure_of(arrays)
    return structure.build([TensorSpec(leaf.shape[1:], leaf.dtype) for leaf in structure.flatten(arrays)])


_FOR_GENERATORS = {"kind": st.sampled_from(_GENERATED), "n": COUNT, "salt": SALT}


def _build_generator(_: None, a: dict[str, Any]) -> Dataset:
    def elements() -> Any:
        yield from generated(a["kind"], a["n"], a["salt"])

    return Dataset.from_generator(elements, output_signature=signature(a["kind"]))


@dataclass
class Items:
    """Items by position.

    Args:
      items: all of them.
    """

    items: list[Any]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]


class ManyItems(Items):
    """Items by position, many in one call."""

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self.items[index] for index in indices]


_draw_source = drawing(many=EITHER, signed=EITHER, calls=st.sampled_from([None, None, 2, -1]), **_FOR_GENERATORS)


def _build_source(_: None, a: dict[str, Any]) -> Dataset:
    items = generated(a["kind"], a["n"], a["salt"])
    signed = a["signed"] or not items
    return Dataset.from_source(
        (ManyItems if a["many"] else Items)(items),
        element_spec=signature(a["kind"]) if signed else None,
        num_parallel_calls=a["calls"],
    )


_draw_counter = drawing(
    start=st.integers(-3, 126),
    step=st.sampled_from([1, 2, -1, 0, 100]),
    dtype=st.sampled_from(["int64", "int8", "uint16", "float32"]),
    n=COUNT,
)


def _counted(_: None, a: dict[str, Any]) -> list[Any]:
    numbers = [a["start"] + i * a["step"] for i in range(a["n"])]
    if a["dtype"] == "float32":
        return [np.float32(number) for number in numbers]
    return [np.int64(number).astype(a["dtype"]) for number in numbers]


_draw_random = drawing(
    seed=st.sampled_from([None, 0, 7, -1]), rerandomize=st.sampled_from([None, False, True]), n=COUNT
)


def _model_random(_: None, a: dict[str, Any], seen: list[Any]) -> list[Any]:
    if len(seen) != a["n"] or not all(type(x) is np.int64 and 0 <= x < 2**32 for x in seen):
        raise AssertionError(f"random: expected {a['n']} numbers of 32 bits as int64, got {seen!r}")
    return seen


MEMORY: tuple[Ingredient, ...] = (
    Ingredient("range", _build_range, _range_model, _draw_range),
    Ingredient(
        "slices",
        lambda _, a: Dataset.from_tensor_slices(_kind(a)),
        lambda _, a: rows_of(_kind(a)),
        _draw_kind,
    ),
    Ingredient("tensors", lambda _, a: Dataset.from_tensors(_kind(a)), lambda _, a: [_kind(a)], _draw_kind),
    Ingredient(
        "generator",
        _build_generator,
        lambda _, a: generated(a["kind"], a["n"], a["salt"]),
        drawing(**_FOR_GENERATORS),
    ),
    Ingredient("source", _build_source, lambda _, a: generated(a["kind"], a["n"], a["salt"]), _draw_source),
    Ingredient(
        "counter",
        lambda _, a: Dataset.counter(a["start"], a["step"], np.dtype(a["dtype"])).take(a["n"]),
        _counted,
        _draw_counter,
    ),
    Ingredient(
        "random",
        lambda _, a: Dataset.random(a["seed"], a["rerandomize"]).take(a["n"]),
        _model_random,
        _draw_random,
        settled=lambda a: a["seed"] is not None and not a["rerandomize"],
    ),
)
"""Sources that read no file; those without an end are cut off."""
