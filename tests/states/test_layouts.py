# SPDX-License-Identifier: Apache-2.0
"""What states look like changes only together with their version."""

import json
from pathlib import Path

import pytest

from distinput.columns.state import READABLE, VERSION
from tests.states.corpus import PIPELINES, put_data
from tests.states.keep import HERE, form, layouts, rule_names

CURE = (
    "raise VERSION in distinput/columns/state.py, keep the old version in READABLE and its states restorable, and run "
    "python -m tests.states.keep"
)


def test_the_layout_of_states_changes_only_with_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    golden = json.loads((HERE / "layouts" / f"v{VERSION}.json").read_text())["layouts"]
    found = layouts()
    changed = [name for name in found if name in golden and found[name] != golden[name]]
    shown = "\n".join(f"{name}: {golden[name]}\nnow: {found[name]}" for name in changed)
    assert not changed, f"the layout of states of {', '.join(changed)} has changed: {CURE}\n{shown}"
    assert found.keys() == golden.keys(), "run python -m tests.states.keep, and commit what it writes"


def test_the_rules_are_those_that_states_of_this_version_were_saved_with() -> None:
    golden = json.loads((HERE / "layouts" / f"v{VERSION}.json").read_text())["rules"]
    gone = sorted(set(golden) - set(rule_names()))
    assert not gone, f"states name the rules {', '.join(gone)}, which are not there any more: {CURE}"
    new = sorted(set(rule_names()) - set(golden))
    assert not new, (
        f"the rules {', '.join(new)} are new: add a pipeline that each of them changes to tests/states/corpus.py, and run "
        "python -m tests.states.keep; states that were saved before go on without them"
    )


def test_every_rule_fires_in_the_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    golden = json.loads((HERE / "layouts" / f"v{VERSION}.json").read_text())["layouts"]
    assert {rule for found in golden.values() for rule in found["rules"]} == set(rule_names())
    assert set(golden) == set(PIPELINES)


def test_every_version_that_is_read_has_kept_states() -> None:
    for version in READABLE:
        assert len(list((HERE / f"v{version}").glob("*.json"))) > 90


def test_the_form_of_states_has_keys_and_types() -> None:
    states = [{"row": 1, "in": None}, {"row": 2, "in": {"a": [1, "x"]}, "over": True}]
    assert form(states) == {"in": {"a": [["int", "str"]]}, "over": "bool", "row": "int"}
