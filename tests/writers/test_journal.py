# SPDX-License-Identifier: Apache-2.0
"""A journal goes through JSON; what is none is taken for none."""

import json
from typing import Any

import pytest

from distinput.values.spec_json import check_word
from distinput.writers.manifest import Journal, WrittenFile


def resealed(journal: dict[str, Any], **change: Any) -> dict[str, Any]:
    """A changed journal with the check word that it should have."""
    made = {name: value for name, value in {**journal, **change}.items() if name != "check"}
    return {**made, "check": check_word(made)}


JOURNAL = Journal(["key"], "run", (WrittenFile("a", 2, 3, 4), WrittenFile("b", 1, 1, 1)), {"at": 1}, ["range#1"])


def test_it_goes_through_json() -> None:
    assert Journal.of_json(json.loads(json.dumps(JOURNAL.to_json()))) == JOURNAL
    assert JOURNAL.rows == 3


@pytest.mark.parametrize("change", [{"version": 1}, {"files": [{"name": 1}]}, {"replaces": None}, {"more": 1}])
def test_what_is_no_journal_is_none(change: dict[str, Any]) -> None:
    assert Journal.of_json(resealed(JOURNAL.to_json(), **change)) is None
    assert Journal.of_json([]) is None


@pytest.mark.parametrize(
    "change",
    [
        {"run": "../../home/x"},
        {"run": ""},
        {"run": None},
        {"replaces": ["../victim"]},
        {"replaces": ["/etc/passwd"]},
        {"replaces": [3]},
        {"files": [{"name": "../a", "rows": 1, "bytes": 1, "crc32": 0}]},
        {"files": [{"name": "a", "rows": -1, "bytes": 1, "crc32": 0}]},
        {"files": [{"name": "a", "rows": "1", "bytes": 1, "crc32": 0}]},
        {"pipeline": [{"step": 3}]},
        {"pipeline": [3]},
        {"done": 1},
        {"key": 3},
        {"numbers": [-1]},
        {"pieces": ["1"]},
    ],
    ids=str,
)
def test_a_forged_journal_is_none(change: dict[str, Any]) -> None:
    whole = Journal(["key"], "0123abcd", (WrittenFile("a", 1, 2, 3),)).to_json()
    assert Journal.of_json(whole) is not None
    assert Journal.of_json(resealed(whole, **change)) is None


@pytest.mark.parametrize("change", [{"done": True}, {"files": []}, {"state": None}, {"order": "turns"}, {"check": 0}])
def test_a_journal_that_was_changed_is_none(change: dict[str, Any]) -> None:
    """Elements would be written twice, or not at all, where it went on from another place than the files say."""
    assert Journal.of_json({**JOURNAL.to_json(), **change}) is None
