# SPDX-License-Identifier: Apache-2.0
import pyarrow.compute as pc
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.testing import check_dataset

ROWS = di.data.Dataset.from_tensor_slices({"x": [1, 4, 5, 0], "name": ["a", "b", "c", "d"]})


def test_it_is_filter_with_an_expression() -> None:
    kept = ROWS.filter(pc.field("x") > 1)
    assert [row["x"] for row in kept] == [4, 5]
    assert kept.element_spec == ROWS.element_spec
    assert kept.cardinality() == di.data.UNKNOWN_CARDINALITY
    assert str(kept.node) == "filter(expression=(x > 1))"


def test_it_keeps_the_laws() -> None:
    assert "restart" in check_dataset(lambda: ROWS.filter(pc.field("x") > 0))
    assert "restart" in check_dataset(lambda: di.data.Dataset.range(9).filter(pc.field("value") < 7).batch(2))


def test_a_wrong_expression_is_refused_where_the_pipeline_is_built() -> None:
    with pytest.raises(InvalidArgumentError, match="the columns are x"):
        ROWS.filter(pc.field("y") > 1)


def test_a_wrong_expression_behind_a_function_is_refused_at_iteration() -> None:
    wrong = ROWS.map(lambda row: {"z": row["x"]}).filter(pc.field("x") > 1)
    with pytest.raises(InvalidArgumentError, match="the columns are z"):
        list(wrong)


def test_a_state_is_of_this_expression() -> None:
    it = iter(ROWS.filter(pc.field("x") > 0))
    next(it)
    assert [row["x"] for row in ROWS.filter(pc.field("x") > 0).restore(it.state())] == [4, 5]
    with pytest.raises(di.errors.StateError, match="has other arguments"):
        ROWS.filter(pc.field("x") > 1).restore(it.state())


def test_failures_keep_their_places() -> None:
    numbers = di.data.Dataset.from_tensor_slices([1, 0, 4]).map(lambda x: {"y": 8 // int(x)})
    assert numbers.filter(pc.field("y") > 1).ignore_errors().to_list() == [{"y": 8}, {"y": 2}]


def test_only_the_columns_that_it_reads_need_a_type_of_arrow() -> None:
    ds = di.data.Dataset.from_tensor_slices(
        {"x": [1, 2, 3], "wave": [1j, 2j, 3j], "inner": {"y": [4, 5, 6], "wave": [1j, 2j, 3j]}}
    )
    assert [row["inner"]["y"] for row in ds.filter(pc.field("x") > 1).to_list()] == [5, 6]
    with pytest.raises(
        InvalidArgumentError, match=r"filter: .* there is no column 'z'; the columns are x, wave, inner"
    ):
        ds.filter(pc.field("z") > 1)
    with pytest.raises(
        InvalidArgumentError, match=r"filter: .* column 'wave' is of dtype complex128, for which Arrow has no"
    ):
        ds.filter(pc.field("wave") > 1)
