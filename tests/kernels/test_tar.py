# SPDX-License-Identifier: Apache-2.0
"""Samples in archives, as the compiled kernels find them."""

import sys
import tarfile
from typing import Any

import numpy as np
import pytest

from distinput.kernels import tar_samples as tar
from distinput.kernels.tar_samples import locate_members, locate_reference, scan_samples
from tests.archives import tar_bytes, with_checksum

NAMES = [b"cls", b"jpg", b"seg.png"]


def scanned(content: bytes, room: int = 99, ended: bool = True) -> tuple[list[tuple[int, int]], tuple[int, int, int]]:
    """The spans of samples; and where the next one begins, the status, and what is needed, or the place of the fault."""
    starts, sizes = np.empty((2, room), np.int64)
    count, *rest = scan_samples.compiled()(np.frombuffer(content, np.uint8), 0, starts, sizes, ended)
    return list(zip(starts[:count].tolist(), sizes[:count].tolist(), strict=True)), tuple(rest)  # type: ignore[return-value]


def located(
    content: bytes, strict: bool = False, room: int = 999
) -> tuple[list[dict[str, bytes]], tuple[int, int, int]]:
    """The members of samples; and the status, the place of the fault, and the bytes of keys."""
    spans, _ = scanned(content)
    starts, sizes = (np.array(each, np.int64) for each in zip(*spans, strict=True))
    n = len(spans)
    places, lengths, ends = np.zeros(3 * n, np.int64), np.full(3 * n, -1), np.zeros(n, np.int64)
    keys, texts = np.zeros(room, np.uint8), np.frombuffer(b"".join(NAMES), np.uint8)
    named = texts, np.cumsum([len(name) for name in NAMES]), np.arange(3)
    good, *rest = locate_members.compiled()(
        np.frombuffer(content, np.uint8), starts, sizes, *named, strict, places, lengths, keys, ends
    )
    found = []
    for row in range(good):
        sample = {"key": keys[ends[row - 1] if row else 0 : ends[row]].tobytes()}
        for column, name in enumerate(NAMES):
            at, size = int(places[column * n + row]), int(lengths[column * n + row])
            if size >= 0:
                sample[name.decode()] = content[at : at + size]
        found.append(sample)
    return found, tuple(rest)  # type: ignore[return-value]


def header(kind: bytes, name: str = "0.cls") -> Any:
    made = tarfile.TarInfo(name)
    made.type = kind
    return made


def test_samples_are_the_files_between_two_keys() -> None:
    content = tar_bytes({"0.cls": b"1", "0.jpg": b"x" * 513, "1.cls": b"2"})
    spans, rest = scanned(content)
    assert spans == [(0, 1024 + 1536), (2560, 1024)]
    assert rest == (3584, tar.OK, 0)
    assert scanned(content, room=1) == (spans[:1], (2560, tar.OK, 0))


def test_files_that_are_no_samples_are_passed_over() -> None:
    ignored = [
        (header(b"5", "train"), b""),
        (header(b"2", "link.jpg"), b""),
        ("README", b"text"),
        (".hidden.cls", b"1"),
        ("__meta__/0.cls", b"1"),
        ("__meta__", b"1"),
        (header(b"V", "label.cls"), b""),
        ("train/.0.cls", b"1"),
    ]
    found, _ = located(tar_bytes([*ignored, ("0.CLS", b"1"), *ignored, ("0.jpg", b"j"), *ignored]))
    assert found == [{"key": b"0", "cls": b"1", "jpg": b"j"}]


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_long_names(format: int) -> None:
    folder = "f" * 60 + "/" + "g" * 60 + "/"
    found, _ = located(tar_bytes({folder + "0.cls": b"1", folder + "0.seg.png": b"s", folder + "1.cls": b"2"}, format))
    key = folder.encode()
    assert found == [{"key": key + b"0", "cls": b"1", "seg.png": b"s"}, {"key": key + b"1", "cls": b"2"}]


def test_large_sizes_of_all_kinds() -> None:
    for told in (b"00000000003\0", b"         3\0 ", b"\x80" + bytes(10) + b"\3"):
        content = bytearray(tar_bytes({"0.cls": b"abc"}))
        content[124:136] = told
        with_checksum(content, 0)
        assert located(bytes(content))[0] == [{"key": b"0", "cls": b"abc"}]


def test_keys_that_need_more_room_say_how_much() -> None:
    content = tar_bytes({"000.cls": b"1", "111.cls": b"2"})
    assert located(content, room=5) == ([{"key": b"000", "cls": b"1"}], (tar.NO_ROOM, 6, 3))


def test_an_unexpected_or_second_member_is_found() -> None:
    assert located(tar_bytes({"0.cls": b"1", "1.png": b"2"}), strict=True)[1][:2] == (tar.UNKNOWN, 1024)
    assert located(tar_bytes([("0.cls", b"1"), ("0.CLS", b"2")]))[1][:2] == (tar.TWICE, 1024)


def with_byte(at: int, value: int) -> bytes:
    content = bytearray(tar_bytes({"0.cls": b"1"}))
    content[at] = value
    with_checksum(content, 0)
    return bytes(content)


def pax(line: bytes) -> bytes:
    """An archive with an extended header of POSIX."""
    content = bytearray(tar_bytes([(header(b"x", "pax"), line), ("0.cls", b"1")]))
    return bytes(content)


@pytest.mark.parametrize(
    "content, status",
    [
        (with_byte(130, 57), tar.BAD_NUMBER),
        (with_byte(124, 255), tar.BAD_NUMBER),
        (tar_bytes({"0.cls": b"1"})[:5] + b"?" + tar_bytes({"0.cls": b"1"})[6:], tar.BAD_CHECKSUM),
        (with_byte(156, ord("S")), tar.UNSUPPORTED),
        (with_byte(156, ord("M")), tar.UNSUPPORTED),
        (tar_bytes({"/0.cls": b"1"}), tar.BAD_NAME),
        (tar_bytes({"a/../0.cls": b"1"}), tar.BAD_NAME),
        (tar_bytes({"..": b"1"}), tar.BAD_NAME),
        (pax(b"12 path=a.cls\n"), tar.BAD_EXTENSION),
        (pax(b"99 path=a.cls\n"), tar.BAD_EXTENSION),
        (pax(b"11 size=-1\n"), tar.BAD_EXTENSION),
        (pax(b"9 nothing"), tar.BAD_EXTENSION),
        (pax(b"22 GNU.sparse.major=1\n"), tar.UNSUPPORTED),
        (tar_bytes([(header(b"g", "pax"), b"14 path=a.cls\n")]), tar.BAD_EXTENSION),
        (tar_bytes({"0.cls": b"1"}) + b"\1", tar.AFTER_END),
    ],
)
def test_what_is_wrong(content: bytes, status: int) -> None:
    assert scanned(content)[1][1] == status


def test_a_name_and_a_size_in_an_extended_header() -> None:
    content = tar_bytes([(header(b"x", "pax"), b"14 path=a.cls\n10 size=2\n"), ("0.cls", b"1")])
    assert located(content)[0] == [{"key": b"a", "cls": b"1\0"}]


def test_a_sample_is_whole_only_when_what_is_behind_it_is_known() -> None:
    content = tar_bytes({"0.cls": b"1", "1.cls": b"2"})
    for size in range(len(content)):
        spans, (after, status, need) = scanned(content[:size])
        assert len(spans) == (size >= 1536) + (size >= 2560)
        if size < 2560:
            assert status == tar.INCOMPLETE
            assert need > size - after


def test_zeros_behind_the_end_are_passed_over_a_piece_at_a_time() -> None:
    content = tar_bytes({"0.cls": b"1"})
    assert scanned(content[:2000], ended=False)[1] == (1024, tar.OK, 0)
    assert scanned(bytes(2000), ended=False)[1] == (1024, tar.OK, 0)
    assert scanned(bytes(2000))[1] == (0, tar.OK, 0)


@pytest.mark.parametrize(
    "starts, columns, says", [(0, sys.maxsize, "a place for each sample"), (sys.maxsize, 0, "samples must be within")]
)
def test_numbers_whose_sums_overflow_are_refused(starts: int, columns: int, says: str) -> None:
    for function in (locate_members.compiled(), locate_reference):
        content, names = (np.frombuffer(data, np.uint8) for data in (tar_bytes({"0.cls": b"1"}), b"cls"))
        lengths, keys = np.full(1, -1), np.zeros(9, np.uint8)
        arrays = [np.array([each]) for each in (starts, 1024)], [np.array([each]) for each in (3, columns)]
        with pytest.raises(ValueError, match=says):
            function(
                content,
                *arrays[0],
                names,
                *arrays[1],
                False,
                np.zeros(1, np.int64),
                lengths,
                keys,
                np.zeros(1, np.int64),
            )
