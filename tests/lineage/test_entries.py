# SPDX-License-Identifier: Apache-2.0
"""Entries of a ledger: whatever a killed process has written can be read, and gone on with."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.lineage.history import MAGIC, Entry, LedgerFile, entries_of
from tests.depth import cases


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda file: None)


inputs = st.lists(
    st.fixed_dictionaries({"row": st.integers(0, 300), "passed": st.sampled_from(["", "E:1"])}), min_size=1, max_size=1
)
steps = st.lists(st.none() | inputs, max_size=8)


JOB = {"epoch": 0, "step": 0, "replicas": 1, "workers": 1, "keeps": True, "state": {}}


def written(path: Path, given_steps: list[Any], start: int = 0) -> list[Entry]:
    file = LedgerFile(str(path))
    told = {**JOB, "step": start, "inputs": [{"row": 0, "passed": ""}]}
    file.begin(told)
    for step in given_steps:
        file.step(step)
    file.close()
    return [Entry(begin=told), *[Entry(inputs=step) for step in given_steps]]


def read(path: Path) -> list[Entry]:
    return [entry for entry, _ in entries_of(path.read_bytes(), str(path))]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=cases(30, 2000))
@given(steps, steps, st.data())
def test_a_file_may_end_anywhere(tmp_path: Path, before: list[Any], after: list[Any], data: Any) -> None:
    path = tmp_path / "a.ledger"
    path.unlink(missing_ok=True)
    first = written(path, before)
    assert read(path) == first
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut] + data.draw(st.sampled_from([b"", b"\0", b"\0" * 9])))
    left = read(path)
    assert left == first[: len(left)]
    assert cut < len(whole) or left == first
    assert read(path) + written(path, after, 5) == read(path)


def test_a_step_takes_four_bytes_where_nothing_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    written(path, [])
    before = path.stat().st_size
    written(path, [])
    empty = path.stat().st_size - before
    written(path, [None] * 100)
    assert path.stat().st_size - before - 2 * empty == 400


def test_damage_before_the_end_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    written(path, [None, None])
    data = bytearray(path.read_bytes())
    data[len(MAGIC) + 5] ^= 1
    path.write_bytes(data)
    with pytest.raises(di.errors.DataLossError, match=r"a.ledger: the ledger is damaged at byte 19"):
        read(path)
    path.write_bytes(b"something else")
    with pytest.raises(di.errors.DataLossError, match="not a ledger"):
        LedgerFile(str(path))
