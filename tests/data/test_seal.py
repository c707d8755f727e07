# SPDX-License-Identifier: Apache-2.0
"""A state says which pipeline it is of, and a place is taken from it only for that one."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.columns.state import BOUND
from distinput.data.seal import Seal, place_in, sealed
from distinput.errors import StateError
from distinput.rewrite import Running

Dataset = di.data.Dataset
COUNTS = st.sampled_from([0, 1]) | st.integers(0, BOUND)


def double(x: Any) -> Any:
    return x * 2


def pipeline() -> di.data.Dataset:
    return Dataset.range(6).map(double).batch(2)


def place(dataset: di.data.Dataset) -> dict[str, Any]:
    with iter(dataset) as it:
        next(it)
        return it.place()


def test_a_sealed_place_is_opened_again() -> None:
    dataset = pipeline()
    running = Running.of(dataset.node)
    where = place(dataset)
    found, same = place_in(dataset.node, running, Seal(dataset.node, running)(where))
    assert {name: found[name] for name in where} == where
    assert same is running


def test_two_seals_of_the_same_pipeline_agree() -> None:
    first, second = pipeline(), pipeline()
    where = place(first)
    assert Seal(first.node, Running.of(first.node))(where) == Seal(second.node, Running.of(second.node))(where)


def test_a_state_of_another_pipeline_is_refused() -> None:
    other = Dataset.range(7).map(double).batch(2)
    state = Seal(pipeline().node, Running.of(pipeline().node))(place(pipeline()))
    with pytest.raises(StateError, match=r"^restore: the state belongs to another pipeline: "):
        place_in(other.node, Running.of(other.node), state)


def test_a_state_of_a_distributed_iterator_names_the_cure() -> None:
    node = pipeline().node
    with pytest.raises(StateError, match="restore it with the distributed dataset"):
        place_in(node, Running.of(node), {"kind": "distributed"})


@pytest.mark.parametrize("value", [None, 3, {}, [], {"version": 2}])
def test_what_is_no_state_is_refused(value: Any) -> None:
    node = pipeline().node
    with pytest.raises(StateError, match=r"^restore: "):
        place_in(node, Running.of(node), value)


def test_the_text_of_a_state_is_its_json_and_its_check_word_is_that_of_the_whole() -> None:
    def broken(x: Any) -> Any:
        if x == 4:
            raise ValueError
        return x

    pipelines = [
        Dataset.range(19).shuffle(4, seed=1).batch(2),
        Dataset.range(5).batch(1),
        Dataset.range(9).cache().repeat(2),
        Dataset.range(9).shuffle(4).repeat(2),
        Dataset.range(9).map(broken),
        Dataset.range(9).scan('\u00e9"', lambda kept, x: (kept, x)),
    ]
    for dataset in pipelines:
        with iter(dataset) as it:
            for _ in range(6):
                with contextlib.suppress(ValueError, StopIteration):
                    next(it)
                state = it.state()
                assert it.get_state() == json.dumps(state, sort_keys=True).encode()
                assert list(state) == ["version", "check", "plan", *it.place()]
                assert state == sealed(it.place(), state["plan"])


@given(
    st.lists(
        st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=3), min_size=1, max_size=3
    ),
    st.lists(st.tuples(COUNTS, st.integers(0, 2), COUNTS), min_size=1, max_size=8),
)
def test_one_position_after_another_is_sealed_as_each_alone(
    blocks: list[Any], positions: list[tuple[int, int, int]]
) -> None:
    node = pipeline().node
    seal = Seal(node, Running.of(node))
    for epoch, block, skip in positions:
        where = {"epoch": epoch, "at": blocks[block % len(blocks)], "skip": skip}
        state = seal(where)
        assert state == sealed(where, state["plan"])
        assert seal.text(state) == json.dumps(state, sort_keys=True)


def distributed(dataset: di.data.Dataset) -> Any:
    return di.distribute.MirroredStrategy(["CPU:0"]).experimental_distribute_dataset(dataset)


@pytest.mark.parametrize("made", [iter, lambda dataset: iter(distributed(dataset))], ids=["own", "distributed"])
@pytest.mark.parametrize(
    "text",
    [b"", b"no JSON", bytearray(b"no"), b"\xff", "{", b"3", "[" * 100_000, None, 1, []],
    ids=lambda text: f"{text!r:.12}",
)
def test_what_get_state_did_not_give_is_refused_as_a_state(text: Any, made: Any) -> None:
    iterator = made(di.data.Dataset.range(3))
    with pytest.raises(StateError, match=r"set_state: must be what get_state\(\) gave|expected a state"):
        iterator.set_state(text)
    assert [int(x) for x in iterator] == [0, 1, 2]
