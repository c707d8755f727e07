# SPDX-License-Identifier: Apache-2.0
import json
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.errors import InputWarning

Dataset = di.data.Dataset
INT = di.TensorSpec([], "int64")


def failing(bad: set[int]) -> Any:
    def function(x: Any) -> Any:
        if int(x) in bad:
            raise ValueError(f"bad {x}")
        return x

    return function


@given(st.integers(0, 40), st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)), st.data())
def test_exactly_the_others_come_and_follow_a_restart(
    n: int, bad: set[int], worse: set[int], data: st.DataObject
) -> None:
    def build() -> Any:
        mapped = Dataset.range(n).map(failing(bad), output_signature=INT).map(failing(worse), output_signature=INT)
        return mapped.filter(lambda x: failing({3, 5})(x) % 2 == 0).ignore_errors()

    expected = [x for x in range(n) if x not in bad | worse | {3, 5} and x % 2 == 0]
    assert [int(x) for x in build()] == expected
    at = data.draw(st.integers(0, len(expected)))
    with iter(build()) as iterator:
        for _ in range(at):
            next(iterator)
        state = json.loads(json.dumps(iterator.state()))
    assert [int(x) for x in build().restore(state)] == expected[at:]


@pytest.mark.parametrize("calls", [None, 2, di.data.AUTOTUNE])
def test_a_take_counts_the_elements_that_are_there(calls: Any) -> None:
    mapped = Dataset.range(9).map(failing({1, 2}), num_parallel_calls=calls, output_signature=INT)
    assert [int(x) for x in mapped.take(3).ignore_errors()] == [0, 3, 4]
    assert [int(x) for x in mapped.ignore_errors().take(3)] == [0, 3, 4]
    assert [int(x) for x in mapped.batch(2).unbatch().prefetch(2).ignore_errors()] == [4, 5, 6, 7, 8]


def test_errors_behind_it_are_raised() -> None:
    with pytest.raises(ValueError, match="bad 2"):
        list(Dataset.range(4).ignore_errors().map(failing({2}), output_signature=INT))


def test_errors_of_no_function_are_left_out(tmp_path: Any) -> None:
    (tmp_path / "bad").write_bytes(b"no records")
    ds = di.data.TFRecordDataset(str(tmp_path / "bad")).ignore_errors()
    assert list(ds) == []
    assert ds.stats()["2:ignore_errors"]["last_error"].startswith("DataLossError: ")


def test_errors_are_told_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "distinput"):
        assert list(Dataset.range(2).map(failing({1}), output_signature=INT).ignore_errors(log_warning=True)) == [0]
    assert "ValueError: bad 1" in caplog.text
    assert "on element np.int64(1)" in caplog.text


def test_the_cardinality_is_unknown_or_infinite() -> None:
    assert Dataset.range(3).ignore_errors().cardinality() == di.data.UNKNOWN_CARDINALITY
    assert Dataset.range(3).repeat().ignore_errors().cardinality() == di.data.INFINITE_CARDINALITY
    assert np.array_equal(list(Dataset.range(3).ignore_errors()), [0, 1, 2])


@pytest.mark.parametrize(
    "mistake, error",
    [
        (lambda x: pasre(x), NameError),  # type: ignore[name-defined]  # noqa: F821
        (lambda x: x.pasre(), AttributeError),
        (lambda x: __import__("no_such_module_of_ours"), ModuleNotFoundError),
        (lambda x: eval("1 +"), SyntaxError),  # noqa: S307
    ],
)
@pytest.mark.parametrize("calls", [None, 2])
def test_mistakes_of_the_program_are_no_bad_elements(mistake: Any, error: type[Exception], calls: Any) -> None:
    mapped = Dataset.range(3).map(mistake, num_parallel_calls=calls, output_signature=INT)
    with pytest.raises(error):
        list(mapped.ignore_errors())
    with pytest.raises(error):
        list(Dataset.range(3).filter(mistake).ignore_errors())
    skipping = Dataset.range(3).map(mistake, num_parallel_calls=calls, output_signature=INT, on_error="skip")
    with pytest.raises(error):
        list(skipping)
    assert list(mapped.ignore_errors(also=error)) == []
    named = di.data.SkipErrors(None, also=(error,))
    with pytest.warns(InputWarning, match="all 3 elements"):
        assert list(Dataset.range(3).map(mistake, output_signature=INT, on_error=named)) == []


def test_a_local_variable_without_a_value_is_a_mistake_too() -> None:
    def function(x: Any) -> Any:
        if x > 5:
            y = x
        return y

    with pytest.raises(UnboundLocalError):
        list(Dataset.range(3).map(function, output_signature=INT).ignore_errors())


def test_errors_of_other_classes_are_still_left_out() -> None:
    def function(x: Any, error: type[Exception]) -> Any:
        if x == 1:
            raise error("of the data")
        return x

    for error in (AssertionError, KeyError, IndexError, TypeError, NotImplementedError, ValueError):
        mapped = Dataset.range(3).map(partial(function, error=error), output_signature=INT)
        assert list(mapped.ignore_errors()) == [0, 2]


def test_also_names_classes_of_errors() -> None:
    with pytest.raises(TypeError, match="ignore_errors: also must be a class of errors"):
        Dataset.range(3).ignore_errors(also="NameError")
    with pytest.raises(TypeError, match="SkipErrors: also must be a class of errors"):
        di.data.SkipErrors(also=(3,))  # type: ignore[arg-type]


def _two(a: Any, b: Any) -> Any:
    return a if b else b


MISCALLED: dict[str, Callable[[Dataset[Any]], Dataset[Any]]] = {
    "map": lambda ds: ds.map(_two),
    "map on threads": lambda ds: ds.map(_two, num_parallel_calls=2),
    "map in processes": lambda ds: ds.map(_two, num_parallel_calls=2, processes=True),
    "on workers": lambda ds: ds.map(_two).on_workers("threads:2"),
    "of a pair": lambda ds: Dataset.zip((ds, ds)).map(lambda x: x),
    "of C": lambda ds: Dataset.zip((ds, ds, ds)).map(int),
    "filter": lambda ds: ds.filter(_two),
    "flat_map": lambda ds: ds.flat_map(_two),
    "scan": lambda ds: ds.scan(0, lambda state: (state, state)),
    "group_by_window": lambda ds: ds.group_by_window(_two, lambda _, window: window.batch(1), 1),
    "bucket_by_sequence_length": lambda ds: ds.map(lambda x: [x]).bucket_by_sequence_length(_two, [2], [1, 1]),
}


@pytest.mark.parametrize("name", MISCALLED)
def test_a_function_that_takes_other_arguments_is_a_mistake(name: str) -> None:
    with pytest.raises(TypeError, match="argument") as caught:
        list(MISCALLED[name](Dataset.range(3)).ignore_errors())
    assert any("does not take the components of an element" in note for note in caught.value.__notes__)
    # A call within the function may fail for an element alone.
    assert list(Dataset.range(3).map(lambda x: x or _two(x), output_signature=INT).ignore_errors()) == [1, 2]


def not_every_fourth(x: int) -> int:
    return 12 // (int(x) % 4) and int(x)


BEHIND: list[Any] = [
    lambda ds: ds.skip(3),
    lambda ds: ds.take(8),
    lambda ds: ds.skip(3).take(3),
    lambda ds: ds.prefetch(1).skip(2),
    lambda ds: ds.repeat(2).skip(14),
    lambda ds: ds.skip(3).shuffle(4, seed=3),
    lambda ds: ds.concatenate(di.data.Dataset.range(100, 103)).skip(9),
    lambda ds: di.data.Dataset.zip((ds, di.data.Dataset.range(12))).skip(2),
]


@pytest.mark.parametrize("behind", BEHIND)
def test_shuffled_elements_of_which_some_fail_have_one_order_wherever_a_step_behind_begins(behind: Any) -> None:
    """Elements that are reached by position are shuffled as those that can only be read in turn."""
    signature = di.TensorSpec([], "int64")
    by_position, in_turn = (
        behind(source.map(not_every_fourth, output_signature=signature).shuffle(5, seed=1)).ignore_errors()
        for source in (
            di.data.Dataset.range(12),
            di.data.Dataset.from_generator(lambda: iter(range(12)), output_signature=signature),
        )
    )
    assert by_position.to_list() == in_turn.to_list()
    with iter(by_position) as iterator:
        next(iterator)
        assert list(by_position.restore(iterator.state())) == list(iterator)
