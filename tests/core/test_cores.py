# SPDX-License-Identifier: Apache-2.0
import os

import pytest

from distinput.run.threads import cores


def test_there_is_a_core() -> None:
    assert 1 <= cores() <= (os.cpu_count() or 1)


def test_a_process_may_be_kept_to_some_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 3}, raising=False)
    assert cores() == 2
