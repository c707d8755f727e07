# SPDX-License-Identifier: Apache-2.0
"""A null that the first file does not have there is an error that names the file, or what tells it is in its place.

NaN tells one among floats, and in each field of a struct outside of lists; all others need a mark.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

import distinput as di
from tests.depth import cases

LEAVES = {pa.float64(): 0.5, pa.int64(): 1, pa.string(): "a", pa.bool_(): True}


def write_json(table: pa.Table, path: str) -> None:
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


def write_arrow(table: pa.Table, path: str) -> None:
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


FORMATS = {
    "arrow": (write_arrow, di.data.ArrowDataset),
    "feather": (lambda table, path: pa.feather.write_feather(table, path, "zstd"), di.data.ArrowDataset),
    "jsonl": (write_json, di.data.JsonLinesDataset),
    "parquet": (pq.write_table, di.data.ParquetDataset),
}

KINDS = st.recursive(
    st.sampled_from([*LEAVES, pa.float64()]),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        st.lists(inner, min_size=1, max_size=2).map(lambda kinds: pa.struct(list(zip("xy", kinds, strict=False)))),
    ),
    max_leaves=4,
)


def whole(kind: pa.DataType) -> Any:
    """A value without nulls."""
    if pa.types.is_struct(kind):
        return {field.name: whole(field.type) for field in kind}
    return [whole(kind.value_type)] if pa.types.is_list(kind) else LEAVES[kind]


@st.composite
def values(draw: st.DrawFn, kind: pa.DataType) -> Any:
    """Values with nulls anywhere."""
    if not draw(st.integers(0, 3)):
        return None
    if pa.types.is_struct(kind):
        return {field.name: draw(values(field.type)) for field in kind}
    return draw(st.lists(values(kind.value_type), max_size=2)) if pa.types.is_list(kind) else LEAVES[kind]


def nan_tells(kind: pa.DataType) -> bool:
    return all(nan_tells(field.type) for field in kind) if pa.types.is_struct(kind) else pa.types.is_floating(kind)


def untold(kind: pa.DataType, value: Any, path: str = "c", in_lists: bool = False) -> Iterator[str]:
    """The paths of nulls that no NaN tells."""
    if value is None:
        if not nan_tells(kind) or (in_lists and pa.types.is_struct(kind)):
            yield path
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from untold(field.type, value[field.name], f"{path.rstrip('[]')}.{field.name}", in_lists)
    elif pa.types.is_list(kind):
        for item in value:
            yield from untold(kind.value_type, item, path + "[]", True)


def spread(kind: pa.DataType, value: Any, told: set[str], path: str = "c") -> Any:
    """A value in which a null struct that has no mark, and whose fields have some, is a struct of nulls."""
    inner = path.rstrip("[]")
    if value is None and (path in told or not any(each.startswith(f"{inner}.") for each in told)):
        return None
    if pa.types.is_struct(kind):
        return {
            field.name: spread(field.type, (value or {}).get(field.name), told, f"{inner}.{field.name}")
            for field in kind
        }
    return [spread(kind.value_type, item, told, path + "[]") for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=cases(40, 500), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_a_null_of_a_later_file_is_told_or_an_error(format: str, tmp_path: Path, data: st.DataObject) -> None:
    write, dataset = FORMATS[format]
    kind = data.draw(KINDS)
    first, later = data.draw(values(kind)), data.draw(values(kind))
    paths = [str(tmp_path / name) for name in ("a", "b", "both")]
    told = set(untold(kind, first))
    same = spread(kind, later, told)
    for path, rows in zip(paths, ([whole(kind), first], [later], [whole(kind), first, same]), strict=True):
        write(pa.table({"c": pa.array(rows, kind), "number": range(len(rows))}), path)
    if set(untold(kind, same)) <= told:
        assert repr(dataset(paths[:2]).to_list()[-1]["c"]) == repr(dataset(paths[2]).to_list()[-1]["c"])
    else:
        with pytest.raises(di.errors.InvalidArgumentError, match=rf"{paths[1]}.*'c"):
            dataset(paths[:2]).to_list()


_X = pa.struct([("x", pa.int64())])


@pytest.mark.parametrize("option", ["valid", "nulls"])
@pytest.mark.parametrize(
    "kind, value",
    [
        (pa.int64(), None),
        (pa.list_(pa.float64()), None),
        (pa.list_(pa.int64(), 2), [1, None]),
        (pa.list_(_X), None),
        (pa.list_(_X), [None]),
        (pa.list_(pa.struct([("x", pa.float64())])), [None]),
        (pa.list_(_X, 2), None),
        (pa.list_(_X, 2), [{"x": 1}, None]),
        (pa.map_(pa.string(), _X), None),
        (pa.struct([("x", _X)]), None),
        (pa.struct([]), None),
        (pa.list_(pa.struct([])), [{}, None]),
    ],
)
def test_what_the_message_says_to_do_is_taken(kind: pa.DataType, value: Any, option: str, tmp_path: Path) -> None:
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    for path, rows in zip(paths, ([], [value]), strict=True):
        write_arrow(pa.table({"c": pa.array(rows, kind)}), path)
    with pytest.raises(di.errors.InvalidArgumentError) as caught:
        di.data.ArrowDataset(paths).to_list()
    named = re.search(rf"{option}=(.*?)(?:, or|$)", str(caught.value), re.MULTILINE)
    if named is None:
        assert (option, kind.field(0).type if pa.types.is_list(kind) else kind) == ("nulls", pa.struct([]))
    else:
        given = eval(named[1], {"value": 7, "field": "x"})  # noqa: S307 - the message is the library's
        assert len(di.data.ArrowDataset(paths, **{option: given}).to_list()) == 1
