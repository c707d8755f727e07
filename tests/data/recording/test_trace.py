# SPDX-License-Identifier: Apache-2.0
"""Notes keep to their bounds, and the memory of the process is about what it is."""

import pytest

from distinput.data import recording as module
from distinput.data.recording import Trace, resident_bytes


def test_spans_beyond_the_bound_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_SPANS", 3)
    trace = Trace()
    for i in range(5):
        trace.add("0:range", "step", float(i), i + 0.5, 1)
        trace.holds("1:prefetch", i)
    assert (len(trace.spans), trace.dropped) == (3, 2)
    assert len(trace.samples) <= 6


def test_memory_is_looked_at_now_and_then() -> None:
    trace = Trace()
    for i in range(100):
        trace.add("0:range", "step", i / 1000, i / 1000)
    looks = [sample.time for sample in trace.samples]
    assert 3 <= len(looks) <= 6
    assert looks == sorted(looks)


def test_memory_grows_with_what_is_kept() -> None:
    before = resident_bytes()
    kept = bytearray(64 << 20)
    kept[:: 1 << 12] = b"x" * len(range(0, len(kept), 1 << 12))  # every page is touched
    assert before > 1 << 20
    assert resident_bytes() >= before + (48 << 20) or resident_bytes() > 3 * len(kept)
