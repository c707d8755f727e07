# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from distinput.kernels.tar_samples import END, FILE, INCOMPLETE, OK, OTHER, read_member
from tests.archives import tar_bytes

CONTENT = np.frombuffer(tar_bytes({"a.b/0.SEG.png": b"12", "README": b""}), np.uint8)


@pytest.mark.parametrize(
    "at, kind, after, key, extension",
    [(0, FILE, 1024, b"a.b/0", b"seg.png"), (1024, OTHER, 1536, b"", b""), (1536, END, 0, b"", b"")],
)
def test_members_one_after_the_other(at: int, kind: int, after: int, key: bytes, extension: bytes) -> None:
    member = read_member(CONTENT, at)
    assert (member.status, member.kind, member.after, member.key, member.extension) == (OK, kind, after, key, extension)


def test_a_member_that_is_not_there_yet_says_what_it_needs() -> None:
    assert read_member(CONTENT[:600], 0)[:2] == (INCOMPLETE, 1536)
    assert read_member(CONTENT[:300], 0)[:2] == (INCOMPLETE, 512)
