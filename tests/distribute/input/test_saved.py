# SPDX-License-Identifier: Apache-2.0
import json
from typing import Any

import pytest

from distinput.distribute.input.saved import opened_state, sealed_state
from distinput.errors import StateError

LAYOUT = {"replicas": 4, "workers": 2, "cut": "per_worker"}


def saved(**changes: Any) -> Any:
    state = sealed_state(LAYOUT, 3, False, [[2, 5]], [{"row": 7}])
    return {**json.loads(json.dumps(state)), **changes}


def test_what_is_saved_is_opened() -> None:
    found = opened_state(saved(), LAYOUT, 1)
    assert {name: found[name] for name in ("step", "ended", "seen", "inputs")} == {
        "step": 3, "ended": False, "seen": [[2, 5]], "inputs": [{"row": 7}],
    }  # fmt: skip


def test_another_division_says_what_differs() -> None:
    with pytest.raises(StateError, match="taken with workers=2, this dataset has workers=3; distribute with the same"):
        opened_state(saved(), {**LAYOUT, "workers": 3}, 1)


def test_a_changed_state_is_refused() -> None:
    with pytest.raises(StateError, match=r"DistributedDataset\.restore"):
        opened_state(saved(step=4), LAYOUT, 1)


@pytest.mark.parametrize("state", [{"version": 3, "inputs": []}, {"version": 3, "kind": "dataset"}])
def test_the_state_of_a_dataset_is_none_of_an_iterator(state: Any) -> None:
    with pytest.raises(StateError, match=r"no state of a distributed iterator; take it with iterator\.state\(\)"):
        opened_state(state, LAYOUT, 1)


def test_a_state_of_another_number_of_pipelines_is_damaged() -> None:
    with pytest.raises(StateError, match="the state is damaged"):
        opened_state(saved(), LAYOUT, 2)
