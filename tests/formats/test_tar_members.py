# SPDX-License-Identifier: Apache-2.0
import numpy as np

from distinput.columns.column import Strings
from distinput.formats.tar import MemberTable, as_members, as_missing, listed, name_at
from tests.archives import tar_bytes


def test_members_are_the_same_when_they_are_stated_again() -> None:
    made = as_members({"image": "JPG;png", "id": "__key__"})
    assert made == (("image", ("jpg", "png")), ("id", ("__key__",)))
    assert as_members(made) == made
    missing = as_missing({"image": b"?"}, made)
    assert as_missing(missing, made) == missing


def test_members_in_messages() -> None:
    assert listed(["b", "a"]) == "'a', 'b'"
    assert listed([]) == "no members"
    data = np.frombuffer(tar_bytes({"a/0.cls": b"1", "/bad": b""}), np.uint8)
    assert name_at(data, 0) == "'a/0.cls'"
    assert name_at(data, 1024) == "'/bad'"


def test_keys_longer_than_expected() -> None:
    keys = ["k" * 90, "l" * 95, "m" * 80]
    data = np.frombuffer(tar_bytes({f"{key}.cls": b"1" for key in keys}), np.uint8)
    spans = Strings(data, np.arange(3) * 1024, np.full(3, 1024))
    table = MemberTable(as_members(["cls", "__key__"]), True, "error")
    block, error = table.columns("a.tar", spans, {"row": 3})
    assert error is None
    assert list(block.elements()) == [{"cls": b"1", "__key__": key.encode()} for key in keys]
