# SPDX-License-Identifier: Apache-2.0
"""A sealed state is opened as it was, in any order and by way of JSON, and refused when anything in it was changed."""

import copy
import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from distinput.columns.state import READABLE, VERSION
from distinput.data.seal import opened, sealed
from distinput.errors import StateError

VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=4,
)
PLACES = st.dictionaries(st.sampled_from(["input", "row", "seeds"]), VALUES, max_size=3)


@settings(max_examples=15)
@given(PLACES, VALUES)
def test_what_was_sealed_is_opened(place: dict[str, Any], plan: Any) -> None:
    state = sealed(place, plan)
    assert state["version"] == VERSION
    for form in (state, json.loads(json.dumps(state)), dict(reversed(state.items()))):
        found = opened(form, "test", set(place))
        assert {key: found[key] for key in place} == place
        assert found["plan"] == plan
        assert "version" not in found
        assert "check" not in found


@settings(max_examples=15)
@given(PLACES, VALUES, VALUES, st.sampled_from(["input", "row", "seeds", "plan"]))
def test_what_was_changed_is_refused(place: dict[str, Any], plan: Any, value: Any, key: str) -> None:
    state = sealed(place, plan)
    assume(json.dumps({key: value}, sort_keys=True) != json.dumps({key: state.get(key)}, sort_keys=True))
    changed = {**state, key: value}
    with pytest.raises(StateError, match="test: the state is not as it was saved"):
        opened(changed, "test", set())


def test_a_copy_is_opened_not_the_state_itself() -> None:
    state = sealed({"input": {"row": [1]}}, ["plan"])
    before = copy.deepcopy(state)
    opened(state, "test", {"input"})["input"]["row"].append(2)
    assert state == before


@pytest.mark.parametrize(
    "state, message",
    [
        (None, "expected a state as iterator.state\\(\\) gives it, got NoneType"),
        ([1], "got list"),
        ({"input": {}}, "got dict"),
        ({"version": 1, "check": 0}, "has version 1, this distinput reads versions 2 and 3; restore it with"),
        ({"version": VERSION + 1}, f"has version {VERSION + 1}"),
        ({"version": float(VERSION), "check": 0}, f"has version {VERSION}.0"),
        ({"version": True, "check": 0}, "has version True"),
        ({"version": "x" * 500}, "has version x{77}\\.\\.\\.,"),
        ({"version": VERSION, 3: 4}, "the state lacks \\['check', 'input'\\]"),
        ({"version": VERSION, "check": 0, "input": {1, 2}}, "holds nothing but JSON values"),
        ({"version": VERSION, "check": 0, "input": {(1, 2): 3}}, "holds nothing but JSON values"),
    ],
)
def test_what_is_no_state_is_refused(state: Any, message: str) -> None:
    with pytest.raises(StateError, match=f"load: .*{message}"):
        opened(state, "load", {"input"})


def test_a_state_within_itself_is_refused() -> None:
    state = sealed({"input": {}})
    state["input"]["again"] = state
    with pytest.raises(StateError, match="holds nothing but JSON values"):
        opened(state, "load", {"input"})


@pytest.mark.parametrize("check", [None, "1", True, 1.5])
def test_a_checksum_of_another_type_is_refused(check: Any) -> None:
    with pytest.raises(StateError, match="not as it was saved"):
        opened({**sealed({"input": 1}), "check": check}, "load", {"input"})


def test_the_version_that_is_written_can_be_read() -> None:
    assert max(READABLE) == VERSION
