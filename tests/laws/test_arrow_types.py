# SPDX-License-Identifier: Apache-2.0
"""A column of any Arrow type, in any layout, has the values that pyarrow tells, or is refused by its name and its type.

It is never called damaged, and it never takes the columns beside it along.
"""

import decimal
import itertools
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

import distinput as di
from tests.depth import cases

MOST_ROWS = 6

UNITS = ("s", "ms", "us", "ns")
TEXTS = [pa.string(), pa.large_string(), pa.string_view()]
BYTES = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(3), pa.binary(0)]
WHOLE = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
FLOATS = [pa.float16(), pa.float32(), pa.float64()]
TIMES = [
    *(pa.timestamp(unit, zone) for unit in UNITS for zone in (None, "UTC", "+05:30", "Europe/Berlin")),
    *map(pa.duration, UNITS),
    pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"), pa.date32(), pa.date64(),
]  # fmt: skip
DECIMALS = [pa.decimal32(5, 2), pa.decimal64(12, 3), pa.decimal128(20, 4), pa.decimal256(50, 6)]
OTHERS = [pa.null(), pa.month_day_nano_interval()]
HELD = [*TEXTS, *BYTES, *WHOLE, *FLOATS, *TIMES, pa.bool_()]
"""What arrays hold as it is; decimals are text, intervals three numbers, and what is of no type holds nulls alone."""
LEAVES = [*HELD, *DECIMALS, *OTHERS]


def texts(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if kind in TEXTS:
        return st.text(st.characters(codec="utf-8"), max_size=20)
    if pa.types.is_fixed_size_binary(kind):
        return st.binary(min_size=kind.byte_width, max_size=kind.byte_width)
    return st.binary(max_size=20)


def numbers(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_boolean(kind):
        return st.booleans()
    if pa.types.is_integer(kind):
        bounds = np.iinfo(kind.to_pandas_dtype())
        return st.integers(int(bounds.min), int(bounds.max))
    return st.sampled_from([0.0, -0.0, 1.5, -2.25, float("nan"), float("inf"), float("-inf"), 0.1])


def leaves(kind: pa.DataType, count: int, missing: bool) -> st.SearchStrategy[pa.Array]:
    """Arrays of `count` values of a type without parts."""
    if kind in TEXTS or kind in BYTES or pa.types.is_fixed_size_binary(kind):
        values = texts(kind)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        values = numbers(kind)
    elif pa.types.is_decimal(kind):
        values = st.integers(-(10**4), 10**4).map(lambda n: decimal.Decimal(n).scaleb(-2))
    elif pa.types.is_null(kind):
        return st.just(pa.nulls(count))
    elif pa.types.is_interval(kind):
        values = st.just(pa.MonthDayNano([1, 2, 3]))
    else:
        return times(kind, count, missing)
    values = st.one_of(st.none(), values) if missing else values
    return st.lists(values, min_size=count, max_size=count).map(lambda found: array_of(found, kind))


def array_of(found: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_float16(kind):
        found = [None if value is None else np.float16(value) for value in found]
    return pa.array(found, kind)


def times(kind: pa.DataType, count: int, missing: bool) -> st.SearchStrategy[pa.Array]:
    wide = kind.bit_width == 64
    most = {"time32[s]": 86_399, "time32[ms]": 86_399_999, "time64[us]": 86_399_999_999, "date32[day]": 100_000}
    high = most.get(str(kind), 86_399_999_999_999 if str(kind) == "time64[ns]" else 2**40)
    low = 0 if pa.types.is_time(kind) else -high
    values: st.SearchStrategy[Any] = st.integers(low, high)
    if str(kind) == "date64[ms]":
        values = st.integers(-(10**5), 10**5).map(lambda days: days * 86_400_000)
    values = st.one_of(st.none(), values) if missing else values
    stored = pa.int64() if wide else pa.int32()
    return st.lists(values, min_size=count, max_size=count).map(lambda found: pa.array(found, stored).view(kind))


@st.composite
def arrays(draw: st.DrawFn, count: int, deep: int, missing: bool) -> pa.Array:
    """Arrays of `count` values of any type, whose memory begins anywhere."""
    before, behind = draw(st.integers(0, 3)), draw(st.integers(0, 2))
    whole = draw(unsliced(before + count + behind, deep, missing))
    return whole.slice(before, count)


@st.composite
def unsliced(draw: st.DrawFn, count: int, deep: int, missing: bool) -> pa.Array:
    if deep == 0 or draw(st.booleans()):
        return draw(leaves(draw(st.sampled_from(HELD if draw(st.integers(0, 5)) else LEAVES)), count, missing))
    return draw(KINDS[draw(st.sampled_from(sorted(KINDS)))](count, deep - 1, missing))


def mask_of(draw: st.DrawFn, count: int, missing: bool) -> pa.Array | None:
    """Which of the values are null."""
    if not missing or not draw(st.booleans()):
        return None
    return pa.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), pa.bool_())


@st.composite
def lists(draw: st.DrawFn, count: int, deep: int, missing: bool) -> pa.Array:
    sizes = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    offsets = np.append(0, np.cumsum(sizes))
    values = draw(arrays(int(offsets[-1]), deep, missing))
    wide = draw(st.booleans())
    made, stored = (pa.LargeListArray, pa.int64()) if wide else (pa.ListArray, pa.int32())
    return made.from_arrays(pa.array(offsets, stored), values, mask=mask_of(draw, count, missing))


@st.composite
def list_views(draw: st.DrawFn, count: int, deep: int, missing: bool) -> pa.Array:
    held = draw(st.integers(0, 4))
    spans = [draw(st.tuples(st.integers(0, held), st.integers(0, held)).map(sorted)) for _ in range(count)]
    values = draw(arrays(held, deep, missing))
    wide = draw(st.booleans())
    made, stored = (pa.LargeListViewArray, pa.int64()) if wide else (pa.ListViewArray, pa.int32())
    starts, sizes = [a for a, _ in spans], [b - a for a, b in spans]
    return made.from_arrays(
        pa.array(starts, stored), pa.array(sizes, stored), values, mask=mask_of(draw, count, missing)
    )


@st.composite
def fixed_lists(draw: st.DrawFn, count: int, deep: int, missing: bool) -> pa.Array:
    size = draw(st.integers(0, 3))
    values = draw(arrays(count * size, deep, missing))
    mask = mask_of(draw, count, missing)
    if size == 0:
        return pa.nulls(0, pa.list_(values.type, 0)) if count == 0 else pa.array([[]] * count, pa.list_(pa.int64(), 0))
    return pa.FixedSizeListArray.from_arrays(values, size, mask=mask)


@st.composite
def structs(draw: st.DrawFn, count: int, deep: int, missing: bool) -> pa.Array:
    names = "ab"[: draw(st.integers(0, 2))]
    if not names:
        return pa.array([{}] * count, pa.struct([]))
    parts = [draw(arrays(count, deep, missing)) for _ in names]
    return pa.StructArray.from_arrays(parts, list(names), mask=mask_of(draw, count, missing))


@st.composite
def dictionaries(draw: st.DrawFn, count: int, deep: int, missing: bool) -> pa.Array:
    held = draw(st.integers(1, 3))
    values = draw(arrays(held, 0, missing))
    kind = draw(st.sampled_from(WHOLE))
    numbers = st.integers(0, held - 1)
    chosen = draw(st.lists(st.one_of(st.none(), numbers) if missing else numbers, min_size=count, max_size=count))
    return pa.DictionaryArray.from_arrays(pa.array(chosen, kind), values)


@st.composite
def runs(draw: st.DrawFn, count: int, deep: int, missing: bool) -> pa.Array:
    ends = sorted({*draw(st.lists(st.integers(1, max(1, count)), max_size=3)), count} - {0})
    values = draw(arrays(len(ends), deep, missing))
    kind = draw(st.sampled_from([pa.int16(), pa.int32(), pa.int64()]))
    return pa.RunEndEncodedArray.from_arrays(pa.array(ends, kind), values)


@st.composite
def maps(draw: st.DrawFn, count: int, deep: int, missing: bool) -> pa.Array:
    sizes = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    offsets = np.append(0, np.cumsum(sizes)).astype(np.int32)
    keys = pa.array([str(number) for number in range(int(offsets[-1]))], pa.string())
    return pa.MapArray.from_arrays(pa.array(offsets), keys, draw(arrays(int(offsets[-1]), 0, missing)))


@st.composite
def unions(draw: st.DrawFn, count: int, deep: int, missing: bool) -> pa.Array:
    which = pa.array(draw(st.lists(st.integers(0, 1), min_size=count, max_size=count)), pa.int8())
    parts = [draw(arrays(count, 0, missing)) for _ in range(2)]
    if draw(st.booleans()):
        return pa.UnionArray.from_sparse(which, parts)
    return pa.UnionArray.from_dense(which, pa.array(range(count), pa.int32()), parts)


@st.composite
def extensions(draw: st.DrawFn, count: int, deep: int, missing: bool) -> pa.Array:
    kind = draw(st.sampled_from(["uuid", "json", "bool8", "opaque", "tensor"]))
    if kind == "tensor":
        size = draw(st.integers(1, 2))
        stored = pa.FixedSizeListArray.from_arrays(
            draw(leaves(draw(st.sampled_from([*WHOLE, *FLOATS])), count * size * 2, False)), size * 2
        )
        return pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(stored.type.value_type, [2, size]), stored)
    made = {"uuid": pa.uuid(), "json": pa.json_(), "bool8": pa.bool8(), "opaque": pa.opaque(pa.int32(), "t", "v")}[kind]
    return pa.ExtensionArray.from_storage(made, draw(leaves(made.storage_type, count, missing)))


KINDS: dict[str, Callable[[int, int, bool], st.SearchStrategy[pa.Array]]] = {
    "dictionary": dictionaries,
    "extension": extensions,
    "fixed_size_list": fixed_lists,
    "list": lists,
    "list_view": list_views,
    "map": maps,
    "run_end_encoded": runs,
    "struct": structs,
    "union": unions,
}


class Refused(Exception):
    """No array holds it."""


def refused(kind: pa.DataType) -> bool:
    """Whether arrays cannot hold a type, whatever its values."""
    if isinstance(kind, pa.BaseExtensionType):
        return refused(kind.storage_type)
    if pa.types.is_struct(kind):
        return any(refused(field.type) for field in kind)
    if pa.types.is_run_end_encoded(kind) and pa.types.is_nested(kind.value_type):
        return True
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return refused(kind.value_type)
    if is_list(kind):
        return refused(kind.value_type)
    if pa.types.is_map(kind):
        return refused(kind.key_type) or refused(kind.item_type)
    return not is_leaf(kind)


def is_leaf(kind: pa.DataType) -> bool:
    """Whether values of a type have no parts; Parquet files give decimals of other widths than were written."""
    return kind in LEAVES or bool(pa.types.is_fixed_size_binary(kind) or pa.types.is_decimal(kind))


def is_list(kind: pa.DataType) -> bool:
    of_any_size = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return bool(of_any_size or pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))


def fields(kind: pa.DataType) -> dict[str, Any] | None:
    """The components that values of a type are handed out as, with those inside; None: one array."""
    if isinstance(kind, pa.BaseExtensionType):
        return None if isinstance(kind, pa.FixedShapeTensorType) else fields(kind.storage_type)
    if pa.types.is_struct(kind):
        return {field.name: fields(field.type) for field in kind}
    if pa.types.is_interval(kind):
        return dict.fromkeys(("months", "days", "nanoseconds"))
    if pa.types.is_map(kind):
        return {"key": fields(kind.key_type), "value": fields(kind.item_type)}
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return fields(kind.value_type)
    return fields(kind.value_type) if is_list(kind) else None


def by_field(values: list[Any], names: dict[str, Any] | None) -> Any:
    """A list of structs as a struct of lists."""
    if names is None:
        return values
    return {name: by_field([value[name] for value in values], inner) for name, inner in names.items()}


def expected(array: pa.Array) -> list[Any]:
    """The values as datasets have them, told by pyarrow alone."""
    return [held(scalar, array.type) for scalar in array]


def held(scalar: Any, kind: pa.DataType, in_lists: bool = False) -> Any:
    if refused(kind):
        raise Refused(str(kind))
    if isinstance(kind, pa.BaseExtensionType):
        if isinstance(kind, pa.FixedShapeTensorType):
            if not scalar.is_valid:
                raise Refused(f"null of {kind}")
            values = [value_of(each, kind.value_type) for each in scalar.value.values]
            return [values[: kind.shape[1]], values[kind.shape[1] :]]
        stored = scalar.value if scalar.is_valid else pa.nulls(1, kind.storage_type)[0]
        return held(stored, kind.storage_type, in_lists)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        value = scalar.value if scalar.is_valid else pa.nulls(1, kind.value_type)[0]
        return held(value, kind.value_type, in_lists)
    if pa.types.is_struct(kind):
        if not scalar.is_valid and (in_lists or not kind.num_fields):
            raise Refused(f"null of {kind}")
        parts = {field: scalar[field.name] if scalar.is_valid else pa.nulls(1, field.type)[0] for field in kind}
        return {field.name: held(part, field.type, in_lists) for field, part in parts.items()}
    if pa.types.is_interval(kind):
        if not scalar.is_valid:
            raise Refused(f"null of {kind}")
        value = scalar.as_py()
        return {part: getattr(value, part) for part in ("months", "days", "nanoseconds")}
    if is_leaf(kind):
        return value_of(scalar, kind)
    if is_list(kind) and scalar.is_valid:
        return by_field([held(each, kind.value_type, True) for each in scalar.values], fields(kind.value_type))
    if pa.types.is_map(kind) and scalar.is_valid:
        types = kind.key_type, kind.item_type
        pairs = [[held(pair[at], types[at], True) for at in (0, 1)] for pair in scalar.values]
        return by_field([dict(zip(("key", "value"), pair, strict=True)) for pair in pairs], fields(kind))
    raise Refused(str(kind))


def value_of(scalar: Any, kind: pa.DataType) -> Any:
    if pa.types.is_temporal(kind):
        return None if not scalar.is_valid else int(scalar.value)
    if not scalar.is_valid:
        if pa.types.is_floating(kind):
            return "NaN"
        raise Refused(f"null of {kind}")
    value = scalar.as_py()
    if isinstance(value, str | Decimal):
        return str(value).encode()
    return "NaN" if isinstance(value, float | np.floating) and value != value else value


def told(value: Any) -> Any:
    """An element of a dataset in the same form."""
    if isinstance(value, dict):
        return {name: told(each) for name, each in value.items()}
    if isinstance(value, di.RaggedTensor):
        return [told(value[row]) for row in range(int(value.nrows()))]
    if isinstance(value, np.ndarray) and value.ndim:
        return [told(each) for each in value] if value.size else value.tolist()
    if isinstance(value, list):
        return [told(each) for each in value]
    value = value[()] if isinstance(value, np.ndarray) else value
    if isinstance(value, np.datetime64 | np.timedelta64):
        return None if np.isnat(value) else int(value.view(np.int64))
    value = value.item() if isinstance(value, np.generic) else value
    return "NaN" if isinstance(value, float) and value != value else value


def write(path: Path, array: pa.Array, name: str) -> bool:
    """Write a column beside one of numbers; False where pyarrow cannot."""
    if name == "parquet" and "[0]" in str(array.type):  # which pyarrow writes, and cannot read or dies of
        return False
    table = pa.table({"n": pa.array(range(len(array)), pa.int64()), "x": array})
    try:
        if name == "parquet":
            pq.write_table(table, path, row_group_size=2)
            pq.read_table(path)
        else:
            opened = pa.ipc.new_file if name == "file" else pa.ipc.new_stream
            with pa.OSFile(str(path), "wb") as sink, opened(sink, table.schema) as writer:
                writer.write_table(table)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, OSError):
        return False
    return True


def check(path: Path, name: str, columns: list[str] | None) -> None:
    read = di.data.ParquetDataset if name == "parquet" else di.data.ArrowDataset
    stored = pq.read_table(path) if name == "parquet" else None
    if stored is None:
        with pa.OSFile(str(path)) as source:
            stored = (pa.ipc.open_file if name == "file" else pa.ipc.open_stream)(source).read_all()
    column = stored["x"]
    if not refused(column.type) and "struct<>" not in str(
        column.type
    ):  # without arguments nulls are told, and come back from what is written
        default = read([str(path)])
        back = default.to_arrow()
        assert back.num_rows == stored.num_rows
        again = di.data.Dataset.from_arrow(back).to_arrow()
        if "[0]" not in str(column.type):  # lists of no items become lists of any number, whose text shows the type
            assert str(again["x"].combine_chunks()) == str(back["x"].combine_chunks()), column.type
    try:
        wanted = [value for chunk in column.chunks for value in expected(chunk)]
    except Refused:
        wanted = None
    try:
        dataset = read([str(path)], columns=columns, nulls="error")
        found = [told(element["x"]) for element in dataset]
        by_number = [told(element["x"]) for element in dataset.shuffle(stored.num_rows + 1, seed=1)]
    except (di.errors.InvalidArgumentError, di.errors.UnimplementedError) as error:
        text = str(error)
        assert "'x" in text, text
        assert "damaged" not in text, text
        assert wanted is None or refused(column.type), f"{column.type} of {column}: {text}"
        assert read([str(path)], columns=["n"]).map(lambda row: row["n"]).to_list() == list(range(stored.num_rows))
        return
    assert wanted is not None, f"{column.type}: {column} is read as {found}"
    assert found == wanted, column.type
    key = repr
    assert sorted(by_number, key=key) == sorted(wanted, key=key), column.type


@pytest.mark.parametrize("kind", DECIMALS, ids=str)
def test_words_that_are_decimals(kind: pa.DataType, tmp_path: Path) -> None:
    words = pa.array([Decimal("1.25").quantize(Decimal(1).scaleb(-kind.scale)), Decimal(0)], kind)
    path = tmp_path / "words.parquet"
    if write(path, pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.int8()), words), "parquet"):
        check(path, "parquet", None)


@pytest.mark.parametrize("name", ["file", "parquet", "stream"])
@pytest.mark.parametrize("kind", sorted({*KINDS, "leaf"}))
def test_a_column_of_any_type(name: str, kind: str, tmp_path: Path) -> None:
    number = itertools.count()

    @settings(max_examples=cases(8, 1000), deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def law(data: st.DataObject) -> None:
        count, missing = data.draw(st.integers(0, MOST_ROWS)), data.draw(st.booleans())
        if kind == "leaf":
            array = data.draw(arrays(count, 0, missing))
        else:
            array = data.draw(KINDS[kind](count + 2, 2, missing)).slice(data.draw(st.integers(0, 2)), count)
        array.validate(full=True)
        path = tmp_path / f"{next(number)}.{'parquet' if name == 'parquet' else 'arrow'}"
        if write(path, array, name):
            check(path, name, data.draw(st.sampled_from([None, ["x"], ["x", "n"]])))

    law()
