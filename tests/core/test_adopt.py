# SPDX-License-Identifier: Apache-2.0
"""Tables and arrays of Arrow, pandas and polars become NumPy's, whatever nest they are in; other values stay what they are."""

import subprocess
import sys
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import distinput as di
from distinput.arrow.adopt import adopt, all_known
from distinput.columns.regroup import column_of_values
from distinput.values.leaves import as_leaf


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclass
class Both:
    a: Any
    b: Any


@pytest.mark.parametrize(
    "value",
    [
        1,
        "a",
        None,
        np.arange(3),
        [1, [2.0]],
        (np.arange(2), {"a": [1]}),
        Pair(1, (2,)),
        Both(1, None),
        OrderedDict(a=1),
        np.ma.array([1]),
        object(),
        bytearray(b"a"),
    ],
)
def test_values_of_python_and_numpy_are_themselves(value: Any) -> None:
    assert adopt(value) is value


@pytest.mark.parametrize(
    "nest",
    [
        lambda x: (1, x),
        lambda x: [x, 1],
        lambda x: {"a": {"b": x}},
        lambda x: Pair(x, 1),
        lambda x: Both((x,), 1),
        lambda x: OrderedDict(b=x, a=1),
    ],
)
def test_an_array_of_arrow_in_a_nest_is_one_of_numpy(nest: Any) -> None:
    adopted = adopt(nest(pa.array([1, 2])))
    assert type(adopted) is type(nest(None))
    wanted = nest(np.array([1, 2]))
    assert str(adopted) == str(wanted)


def test_a_table_is_a_dict_of_its_columns() -> None:
    table = pa.table({"x": [1, 2], "s": [{"a": 1.5}, {"a": 2.5}], "l": [[1], []]})
    adopted = adopt((table, 1))[0]
    assert adopted["x"].tolist() == [1, 2]
    assert adopted["s"]["a"].tolist() == [1.5, 2.5]
    assert adopted["l"].to_list() == [[1], []]


def test_arrow_arrays_of_lists_are_ragged() -> None:
    for lists in ([[1], [2, 3]], [[[1], []], [], [[2, 3]]]):
        assert as_leaf(pa.array(lists)).to_list() == lists


def test_text_of_arrow_becomes_bytes() -> None:
    assert as_leaf(pa.array(["a", "ä"])).tolist() == [b"a", "ä".encode()]


@pytest.mark.needs("pandas", "polars")
def test_lists_and_text_of_series_are_those_of_arrow() -> None:
    import pandas as pd
    import polars as pl

    assert as_leaf(pl.Series([[1], [2, 3]])).to_list() == [[1], [2, 3]]
    for given in (pl.Series(["a", "ä"]), pd.Series(["a", "ä"]), pd.Series(["a", "ä"], dtype=object)):
        assert as_leaf(given).tolist() == [b"a", "ä".encode()]


def test_ragged_tensors_and_specs_take_arrays_of_arrow() -> None:
    rows = di.RaggedTensor.from_row_lengths(pa.array([1, 2, 3]), pa.array([2, 1]))
    assert rows.to_list() == [[1, 2], [3]]
    assert di.TensorSpec.from_tensor(pa.array([1.5])) == di.TensorSpec([1], "float64")
    lists = di.RaggedTensor.from_row_lengths(pa.array([[1], [2, 3], []]), [2, 1])
    assert lists.to_list() == [[[1], [2, 3]], [[]]]
    of_one = di.RaggedTensor.from_row_splits(pa.scalar([1, 2, 3]), [0, 1, 3])
    assert of_one.to_list() == [[1], [2, 3]]
    assert di.TensorSpec.from_tensor(pa.scalar("a")) == di.TensorSpec([], "string")
    times = di.RaggedTensor.from_row_lengths(pa.array([0, 1], pa.timestamp("s", "Europe/Berlin")), [2, 0])
    assert times.flat_values.tolist() == np.array([0, 1], "datetime64[s]").tolist()


@pytest.mark.needs("pandas", "polars")
def test_ragged_tensors_and_specs_take_series() -> None:
    import pandas as pd
    import polars as pl

    lists = di.RaggedTensor.from_row_lengths(pl.Series([[1], [2, 3]]), [2])
    assert lists.to_list() == [[[1], [2, 3]]]
    times = pd.Series(pd.date_range("1970-01-01", periods=2, tz="UTC"))
    values = di.RaggedTensor.from_row_lengths(times, [1, 1]).flat_values
    assert values.tolist() == times.dt.tz_localize(None).to_numpy().astype(values.dtype).tolist()
    assert di.TensorSpec.from_tensor(times) == di.TensorSpec([2], values.dtype)
    with pytest.raises(TypeError, match="column 'of the array' has 1 nulls, the first in row 1"):
        di.TensorSpec.from_tensor(pl.Series([1, None]))


@pytest.mark.fresh_process
def test_the_reader_of_others_is_loaded_when_it_is_needed() -> None:
    program = (
        "import sys, distinput as di\n"
        "assert 'numpy' not in sys.modules\n"
        "di.RaggedTensor.from_row_lengths([1, 2], [1, 1]), di.TensorSpec.from_tensor(1)\n"
        "assert 'distinput.arrow.adopt' not in sys.modules\n"
        "import pyarrow as pa\n"
        "assert di.TensorSpec.from_tensor(pa.array([1])).shape == (1,)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    "values, expected",
    [
        ([1, 2.0, "a", None], True),
        ([(1, {"a": [np.arange(2)]})] * 2, True),
        ([{"a": 1}, {"a": (1, 2)}], True),
        ([[1], [pa.array([1])]], False),
        ([{"a": 1}, {"a": pa.scalar(1)}], False),
        ([Pair(1, 2)], False),
        ([[[[[[1]]]]]], False),
        ([], True),
    ],
)
def test_values_are_known_by_a_look_at_all_of_them(values: list[Any], expected: bool) -> None:
    assert all_known(values) == expected
    if expected:
        assert all(adopt(value) is value for value in values)


@pytest.mark.parametrize("value", [pa.array([1, None]), pa.array([True, None]), pa.array(["a", None])])
def test_nulls_are_no_values_of_a_leaf(value: Any) -> None:
    with pytest.raises(TypeError, match="column 'of the array' has 1 nulls, the first in row 1"):
        as_leaf(value)


@pytest.mark.needs("pandas", "polars")
def test_series_that_no_array_can_hold_are_refused() -> None:
    import pandas as pd
    import polars as pl

    for given, message in ((pl.Series([1, None]), "has 1 nulls"), (pd.Series([1, "a"]), "Arrow cannot hold")):
        with pytest.raises(TypeError, match=message):
            as_leaf(given)


@pytest.mark.needs("pandas", "polars")
def test_a_table_is_no_element_of_its_own() -> None:
    import pandas as pd
    import polars as pl

    for table in (pd.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]}), pa.table({"a": [1]})):
        with pytest.raises(TypeError, match="which is a table; adopt it first"):
            column_of_values([table])
        assert di.data.Dataset.from_source([table, table]).to_list() == [{"a": [1]}] * 2
        assert di.data.Dataset.range(1).map(lambda _: table).map(lambda x: x["a"]).to_list() == [[1]]  # noqa: B023
        assert di.data.Dataset.from_tensors((table, 1)).to_list() == [({"a": [1]}, 1)]
        spec = {"a": di.TensorSpec([None], "int64")}
        given = di.data.Dataset.from_generator(lambda: iter([table]), output_signature=spec)  # noqa: B023
        assert given.to_list() == [{"a": [1]}]


@pytest.mark.needs("pandas")
def test_a_table_that_is_to_be_one_array_is_the_one_that_numpy_sees() -> None:
    import pandas as pd

    table = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
    assert as_leaf(table).tolist() == [[1, 3], [2, 4]]
    assert di.data.Dataset.from_tensors([table, table]).to_list() == [[[[1, 3], [2, 4]]] * 2]
    assert di.convert_to_tensor(table).tolist() == [[1, 3], [2, 4]]


def test_an_error_names_the_component() -> None:
    with pytest.raises(TypeError, match=r"component \['a'\]\[1\]: column 'of the array' has 1 nulls"):
        adopt({"a": (1, pa.array([1, None])), "b": pa.array([2])})


@pytest.mark.needs("pandas")
def test_sparse_columns_of_pandas_are_dense_arrays() -> None:
    import pandas as pd

    numbers = pd.Series(pd.arrays.SparseArray([0, 0, 3]))
    dataset = di.data.Dataset.from_tensor_slices
    assert dataset(numbers).to_list() == [0, 0, 3]
    assert dataset(pd.DataFrame({"a": numbers})).to_list() == [{"a": 0}, {"a": 0}, {"a": 3}]
    assert dataset([1]).map(lambda _: {"x": numbers}).to_list() == [{"x": [0, 0, 3]}]
