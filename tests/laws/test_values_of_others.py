# SPDX-License-Identifier: Apache-2.0
"""Law: a value is the same element by whatever way it comes: its values, its shape and its dtype are those that NumPy sees.

What cannot be taken as it is, is refused with a cure, and never changed.
"""

import dataclasses
import enum
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import distinput as di

Dataset = di.data.Dataset


class Source:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> Any:
        return self.value


def by_generator(value: Any) -> Dataset:
    spec = Dataset.from_tensors(value).element_spec
    return Dataset.from_generator(lambda: iter([value]), output_signature=spec)


WAYS: dict[str, Callable[[Any], Dataset]] = {
    "from_tensors": Dataset.from_tensors,
    "from_source": lambda value: Dataset.from_source(Source(value)),
    "a list": lambda value: Dataset.from_source([value]),
    "from_generator": by_generator,
    "map": lambda value: Dataset.range(1).map(lambda _: value),
    "map, map": lambda value: Dataset.range(1).map(lambda _: value).map(lambda x: x),
    "in a dict": lambda value: Dataset.range(1).map(lambda _: {"a": value}).map(lambda x: x["a"]),
    "scan": lambda value: Dataset.range(1).scan(np.int64(0), lambda s, _: (s, value)),
    "whole blocks": lambda value: (
        Dataset.range(100).map(lambda x: (x * 2, value), vectorize=True).map(lambda _, y: y).take(1)
    ),
    "a batch": lambda value: Dataset.range(1).map(lambda _: value).batch(1).unbatch(),
}
MODES = ("RGB", "L", "RGBA", "P", "I", "F", "1", "LA", "CMYK", "I;16", "HSV", "YCbCr")


def image(mode: str) -> Any:
    module = pytest.importorskip("PIL.Image")
    rgb = module.fromarray(np.arange(36, dtype=np.uint8).reshape(3, 4, 3))
    return rgb.convert("L").convert(mode) if mode == "I;16" else rgb.convert(mode)


def tensors(make: Callable[[Any], Any]) -> Callable[[], tuple[Any, Any]]:
    def made() -> tuple[Any, Any]:
        value = make(pytest.importorskip("torch"))
        return value, value.detach().resolve_conj().resolve_neg().numpy()[()]

    return made


def of(name: str, make: Callable[[Any], Any], wanted: Any) -> Callable[[], tuple[Any, Any]]:
    return lambda: (make(pytest.importorskip(name)), wanted)


class Arrayed:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.arange(3, dtype=np.int16)


class Interfaced:
    """Shows its array to NumPy, and another view of it to Arrow."""

    def __init__(self) -> None:
        self.array = np.arange(6, dtype=np.int16).reshape(2, 3)

    @property
    def __array_interface__(self) -> Any:
        return self.array.__array_interface__

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        import pyarrow as pa

        return pa.array(self.array.reshape(-1)).__arrow_c_array__(requested_schema)


class Exchanged:
    def __init__(self) -> None:
        self.array = np.arange(3.0)

    def __dlpack__(self, **given: Any) -> Any:
        return self.array.__dlpack__(**given)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class Split(str, enum.Enum):  # noqa: UP042 - as programs write it
    TRAIN = "train"


class Level(enum.IntEnum):
    LOW = 3


class Flag(enum.IntFlag):
    SET = 4


class Text(str):
    __slots__ = ()

    def encode(self, *_: Any) -> Any:
        raise AssertionError


class Raw(bytes):
    def __bytes__(self) -> bytes:
        return b"another"


class Whole(int): ...


class Real(float): ...


VALUES: dict[str, Callable[[], tuple[Any, Any]]] = {
    **{f"an image of mode {mode}": (lambda mode=mode: (image(mode), np.asarray(image(mode)))) for mode in MODES},
    "a tensor": tensors(lambda torch: torch.arange(3)),
    "a tensor without axes": tensors(lambda torch: torch.tensor(2.5)),
    "a tensor with gradients": tensors(lambda torch: torch.ones(2, requires_grad=True)),
    "a parameter": tensors(lambda torch: torch.nn.Parameter(torch.ones(2))),
    "a conjugated tensor": tensors(lambda torch: torch.tensor([1 + 2j]).conj()),
    "a negated view": tensors(lambda torch: torch.tensor([1 + 2j]).conj().imag),
    "a scalar of Arrow": of("pyarrow", lambda pa: pa.scalar(300), np.int64(300)),
    "a small one": of("pyarrow", lambda pa: pa.scalar(3, pa.int8()), np.int8(3)),
    "text of Arrow": of("pyarrow", lambda pa: pa.scalar("abc"), b"abc"),
    "a list of Arrow": of("pyarrow", lambda pa: pa.scalar([1, 300]), np.array([1, 300])),
    "a truth value of Arrow": of("pyarrow", lambda pa: pa.scalar(True), np.True_),
    "an array of Arrow": of("pyarrow", lambda pa: pa.array([1, 2]), np.array([1, 2])),
    "a series": of("pandas", lambda pd: pd.Series([1, 2]), np.array([1, 2])),
    "an array of pandas": of("pandas", lambda pd: pd.array([1, 2]), np.array([1, 2])),
    "an index": of("pandas", lambda pd: pd.Index([1, 2]), np.array([1, 2])),
    "a series of polars": of("polars", lambda pl: pl.Series([1, 2]), np.array([1, 2])),
    "an array of JAX": of("jax.numpy", lambda jnp: jnp.arange(3, dtype=np.int32), np.arange(3, dtype=np.int32)),
    "an array of its own": lambda: (Arrayed(), np.arange(3, dtype=np.int16)),
    "one that shows Arrow something else": lambda: (Interfaced(), Interfaced().array),
    "one that exchanges memory": lambda: (Exchanged(), np.arange(3.0)),
    "a masked array without a mask": lambda: (np.ma.array([1, 2]), np.array([1, 2])),
    "a matrix": lambda: (np.array([[1, 2]]).view(np.matrix), np.array([[1, 2]])),
    "text of NumPy": lambda: (np.str_("é"), "é".encode()),
    "texts of NumPy": lambda: (
        np.array(["a", "é"], np.dtypes.StringDType()),  # type: ignore[attr-defined]
        np.array([b"a", "é".encode()], object),
    ),
    "a member of an Enum of texts": lambda: (Split.TRAIN, b"train"),
    "a member of an Enum of numbers": lambda: (Level.LOW, np.int32(3)),
    "a flag": lambda: (Flag.SET, np.int32(4)),
    "text of a class of its own": lambda: (Text("a"), b"a"),
    "bytes of a class of its own": lambda: (Raw(b"z"), b"z"),
    "an integer of a class of its own": lambda: (Whole(5), np.int32(5)),
    "a float of a class of its own": lambda: (Real(2.5), np.float32(2.5)),
    "a time of NumPy": lambda: (np.datetime64("2020-01-01"), np.datetime64("2020-01-01")),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", VALUES)
def test_the_same_by_every_way(kind: str, way: str) -> None:
    value, wanted = VALUES[kind]()
    (made,) = WAYS[way](value)
    assert type(made) is (bytes if isinstance(wanted, bytes) else type(wanted))
    assert np.array_equal(made, wanted)
    assert getattr(made, "dtype", None) == getattr(wanted, "dtype", None)


@pytest.mark.parametrize("kind", VALUES)
def test_the_same_among_the_members_of_a_list(kind: str) -> None:
    value, wanted = VALUES[kind]()
    (made,) = Dataset.from_tensors({"a": [value, value]})
    assert np.array_equal(made["a"], np.array([wanted, wanted], object if isinstance(wanted, bytes) else None))
    if not isinstance(value, int | float):  # which are those of Python
        assert made["a"].dtype == np.array([wanted, wanted], object if isinstance(wanted, bytes) else None).dtype
    if isinstance(wanted, bytes):
        assert {type(item) for item in made["a"]} == {bytes}


class Plain(enum.Enum):
    ONE = 1


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a masked array": (lambda: np.ma.array([1, 2], mask=[0, 1]), "1 masked values, .* fill them first: .filled"),
    "what is masked": (lambda: np.ma.masked, "fill them first"),
    "an array of pandas with a gap": (lambda: pytest.importorskip("pandas").array([1, None]), "1 nulls"),
    "a series with a gap": (lambda: pytest.importorskip("polars").Series([1, None]), "1 nulls"),
    "a null": (lambda: pytest.importorskip("pyarrow").scalar(None), "a null .*fill it first"),
    "a decimal": (lambda: Decimal(1), r"float\(...\) or str\(...\)"),
    "a time": (lambda: datetime(2020, 1, 1), "np.datetime64"),
    "a day": (lambda: date(2020, 1, 1), "np.datetime64"),
    "a difference of times": (lambda: timedelta(1), "np.timedelta64"),
    "a member of an Enum": (lambda: Plain.ONE, "the .value of a member"),
}


@pytest.mark.parametrize("way", [way for way in WAYS if way != "from_generator"])
@pytest.mark.parametrize("kind", REFUSED)
def test_what_would_be_changed_is_refused(kind: str, way: str) -> None:
    make, words = REFUSED[kind]
    with pytest.raises(TypeError, match=words):
        list(WAYS[way](make()))


@pytest.mark.parametrize("kind", ["a masked array", "an array of pandas with a gap"])
def test_nor_where_a_generator_has_a_signature(kind: str) -> None:
    make, words = REFUSED[kind]
    spec = di.TensorSpec([None], "float64")
    with pytest.raises(TypeError, match=words):
        list(Dataset.from_generator(lambda: iter([make()]), output_signature=spec))


@dataclasses.dataclass
class Ids:
    ids: Any


LARGE, LARGEST = 2**63, 2**64 - 1
EXACT: dict[str, Callable[[Any], Dataset]] = {
    "from_tensor_slices": lambda ids: Dataset.from_tensor_slices(ids).batch(len(ids)),
    "a dict of slices": lambda ids: Dataset.from_tensor_slices({"a": ids}).map(lambda x: x["a"]).batch(len(ids)),
    "from_tensors": Dataset.from_tensors,
    "a nested list": lambda ids: Dataset.from_tensors([ids, ids]).map(lambda x: x[1]),
    "a dict": lambda ids: Dataset.range(1).map(lambda _: {"a": ids}).map(lambda x: x["a"]),
    "a dataclass": lambda ids: Dataset.range(1).map(lambda _: Ids(ids)).map(lambda x: x.ids),
    "from_source": lambda ids: Dataset.from_source([{"a": ids}]).map(lambda x: x["a"]),
    "scan": lambda ids: Dataset.range(1).scan(np.int64(0), lambda s, _: (s, ids)),
    "from_generator": lambda ids: Dataset.from_generator(
        lambda: iter([ids]), output_signature=di.TensorSpec([None], "uint64")
    ),
}


@pytest.mark.parametrize("way", EXACT)
@pytest.mark.parametrize(
    "ids",
    [
        [LARGE, 5],
        [5, LARGEST],
        [LARGE, LARGEST],
        [np.uint64(LARGE), 5],
        [np.uint64(LARGEST), np.int64(7)],
        [LARGE, np.int8(1)],
    ],
)
def test_no_integer_is_changed_by_an_inferred_dtype(way: str, ids: list[Any]) -> None:
    (made,) = EXACT[way](ids)
    assert made.dtype == np.uint64
    assert made.tolist() == [int(x) for x in ids]


@pytest.mark.parametrize("way", EXACT)
@pytest.mark.parametrize("ids", [[-1, LARGE], [LARGEST + 1, 1], [-LARGE - 1, 0], [np.int64(-1), np.uint64(LARGE)]])
def test_integers_that_no_dtype_holds_are_refused(way: str, ids: list[Any]) -> None:
    with pytest.raises((di.errors.InvalidArgumentError, TypeError), match=r"fit|hold"):
        list(EXACT[way](ids))


@pytest.mark.parametrize(
    "ids", [[2**24 + 1, 0.5], [0.5, -(2**53) - 1], [np.float64(0.5), 2**60 + 1], [np.float32(1), 2**63 + 1]]
)
def test_an_integer_beside_floats_that_would_change_is_refused(ids: list[Any]) -> None:
    with pytest.raises(
        di.errors.InvalidArgumentError, match=r"beside floats would become .*; give them as two components"
    ):
        Dataset.from_tensor_slices(ids)


def test_integers_beside_floats_that_hold_them_become_floats() -> None:
    assert Dataset.from_tensor_slices([1, 2.5, True]).element_spec.dtype == np.float32
    assert Dataset.from_tensor_slices([2**24, 2**30, 0.5]).to_list() == [2**24, 2**30, 0.5]
    assert Dataset.from_tensor_slices([np.float64(0.5), 2**53]).to_list() == [0.5, 2**53]


STATED: dict[str, Callable[[list[Any], Any], Dataset]] = {
    "map": lambda items, spec: Dataset.range(len(items)).map(lambda i: items[int(i)], output_signature=spec),
    "map on threads": lambda items, spec: Dataset.range(len(items)).map(
        lambda i: items[int(i)], num_parallel_calls=2, output_signature=spec
    ),
    "map in whole blocks": lambda items, spec: Dataset.range(len(items)).map(
        lambda i: items[int(i)], vectorize=True, output_signature=spec
    ),
    "from_source": lambda items, spec: Dataset.from_source(items, element_spec=spec),
    "from_source on threads": lambda items, spec: Dataset.from_source(items, element_spec=spec, num_parallel_calls=2),
    "from_generator": lambda items, spec: Dataset.from_generator(lambda: iter(items), output_signature=spec),
}


@pytest.mark.parametrize("way", STATED)
@pytest.mark.parametrize(
    "items, spec",
    [
        ([["a", "b"], [], ["c"]], di.TensorSpec([None], "string")),
        ([[], [1, 2], []], di.TensorSpec([None], "int64")),
        ([[], [[1, 2]]], di.TensorSpec([None, 2], "float64")),
        ([1, 2], di.TensorSpec([], "float32")),
        ([1.0, 2], di.TensorSpec([], "float64")),
        ([0.1, 0.2], di.TensorSpec([], "float64")),
        ([2**63, 1], di.TensorSpec([], "uint64")),
        ([True, False], di.TensorSpec([], "bool")),
    ],
)
@pytest.mark.parametrize("nest", [lambda x: x, lambda x: {"a": x}, lambda x: (x, x)])
def test_what_is_stated_holds_for_values_of_python(way: str, items: list[Any], spec: Any, nest: Any) -> None:
    made = list(STATED[way]([nest(item) for item in items], nest(spec)))
    for element, item in zip(made, items, strict=True):
        leaf = element["a"] if isinstance(element, dict) else element[1] if isinstance(element, tuple) else element
        assert getattr(leaf, "dtype", np.dtype(object)) == spec.dtype
        assert np.shape(leaf) == np.shape(
            np.array(item, spec.dtype).reshape((-1, *spec.shape[1:]) if spec.shape else ())
        )
        assert leaf.tolist() == ([x.encode() for x in item] if spec.dtype == object else item)


@pytest.mark.parametrize("way", STATED)
def test_a_value_that_does_not_fit_what_is_stated_is_refused(way: str) -> None:
    with pytest.raises((TypeError, di.errors.InvalidArgumentError), match="300"):
        list(STATED[way]([1, 300], di.TensorSpec([], "int8")))
