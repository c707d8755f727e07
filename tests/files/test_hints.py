# SPDX-License-Identifier: Apache-2.0
"""Hints hold on one thread, within one `with` block."""

from threading import Thread

from distinput.files.range_requests import FileMetadata
from distinput.files.source import HINTS, beginning_with, stamped, telling, wanted_until


def test_hints_end_with_their_blocks() -> None:
    begun = FileMetadata(3), b"abc"
    with stamped("a", "1"), beginning_with("a", begun), wanted_until(7), telling(len):  # type: ignore[arg-type]
        assert (HINTS.stamp, HINTS.begun, HINTS.until, HINTS.requested) == (("a", "1"), ("a", begun), 7, len)
        with stamped("b", "2"), wanted_until(None), telling(None):
            assert (HINTS.stamp, HINTS.until, HINTS.requested) == (("b", "2"), None, None)
        assert (HINTS.stamp, HINTS.until, HINTS.requested) == (("a", "1"), 7, len)
    assert (HINTS.stamp, HINTS.begun, HINTS.until, HINTS.requested) == (None, None, None, None)


def test_where_nothing_is_known_the_hint_before_holds() -> None:
    with stamped("a", "1"), stamped("b", None), beginning_with("a", (FileMetadata(0), b"")), beginning_with("a", None):
        assert HINTS.stamp == ("a", "1")
        assert HINTS.begun == ("a", (FileMetadata(0), b""))


def test_another_thread_knows_nothing() -> None:
    found: list[object] = []
    with stamped("a", "1"):
        other = Thread(target=lambda: found.append(HINTS.stamp))
        other.start()
        other.join()
    assert found == [None]
