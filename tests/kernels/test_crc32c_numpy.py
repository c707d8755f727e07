# SPDX-License-Identifier: Apache-2.0
"""CRC32C without kernels: with the package google-crc32c and without it, the values are the same."""

import struct
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import distinput as di
from distinput.kernels.checksums import (
    BAD_DATA,
    CHUNK,
    GROUP,
    OK,
    SHORT,
    crc32c,
    crc32c_library,
    crc32c_numpy,
    masked_crc32c,
    masked_crc32c_of_bytes,
    scan_records,
)
from tests.checksum import crc32c_of_bits, masked_checksum


@pytest.fixture
def _clear() -> Iterator[None]:
    crc32c_library.cache_clear()
    yield
    crc32c_library.cache_clear()


@pytest.fixture
def _absent(_clear: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where google-crc32c is not installed."""
    monkeypatch.setitem(sys.modules, "google_crc32c", None)


def bytes_of(size: int) -> bytes:
    return np.random.default_rng(size).integers(0, 256, size).astype(np.uint8).tobytes()


SHORT_SIZES = [*range(20), *range(SHORT - 1, SHORT + 6), CHUNK - 1, CHUNK, CHUNK + 1, CHUNK + 50]


@pytest.mark.parametrize("size", SHORT_SIZES)
def test_short_sums_are_those_of_the_definition(size: int) -> None:
    data = bytes_of(size)
    assert crc32c_numpy(np.frombuffer(data, np.uint8)) == crc32c_of_bits(data)


@pytest.mark.parametrize(
    "size", [2 * CHUNK, GROUP * CHUNK - 1, GROUP * CHUNK, GROUP * CHUNK + 1, 3 * GROUP * CHUNK + 700]
)
def test_long_sums_are_those_of_the_kernel(size: int) -> None:
    data = np.frombuffer(bytes_of(size), np.uint8)
    assert crc32c_numpy(data) == crc32c.compiled()(data)
    every_second = np.repeat(data, 2)[::2]
    assert crc32c_numpy(every_second) == crc32c.compiled()(data)


@pytest.mark.usefixtures("_absent")
def test_without_the_package_all_sums_are_the_same() -> None:
    assert crc32c_library() is None
    for size in (0, 1, 8, 100, 5000):
        data = bytes_of(size)
        array = np.frombuffer(data, np.uint8)
        assert crc32c.reference(array) == crc32c_of_bits(data)
        stored = int.from_bytes(masked_checksum(data), "little")
        assert masked_crc32c_of_bytes(data) == masked_crc32c.reference(array) == stored


@pytest.mark.usefixtures("_clear")
def test_the_package_is_taken_where_it_is_installed() -> None:
    pytest.importorskip("google_crc32c", reason="google-crc32c is not installed")
    library = crc32c_library()
    assert library is not None
    data = bytes_of(1000)
    assert library(data) == crc32c_of_bits(data)
    assert masked_crc32c_of_bytes(data).to_bytes(4, "little") == masked_checksum(data)


@pytest.mark.usefixtures("_clear")
def test_a_package_without_compiled_code_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = types.ModuleType("google_crc32c")
    slow.implementation, slow.value = "python", crc32c_of_bits  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "google_crc32c", slow)
    assert crc32c_library() is None


@pytest.mark.usefixtures("_clear")
def test_a_python_without_the_gil_does_not_load_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    monkeypatch.delitem(sys.modules, "google_crc32c", raising=False)
    assert crc32c_library() is None
    assert "google_crc32c" not in sys.modules


@pytest.mark.usefixtures("_absent")
def test_files_are_written_and_checked_without_the_package(tmp_path: Path) -> None:
    payloads = [bytes_of(size) for size in (0, 7, 3000)]
    path = tmp_path / "a.tfrecord"
    with di.io.TFRecordWriter(str(path)) as writer:
        for payload in payloads:
            writer.write(payload)
    framed = b""
    for payload in payloads:
        length = struct.pack("<Q", len(payload))
        framed += length + masked_checksum(length) + payload + masked_checksum(payload)
    assert path.read_bytes() == framed
    assert di.data.TFRecordDataset(str(path)).to_list() == payloads
    spoiled = bytearray(framed)
    spoiled[-100] ^= 1  # in the third record
    for scan in (scan_records.reference, scan_records.compiled()):
        for content, whole, status in ((framed, 3, OK), (bytes(spoiled), 2, BAD_DATA)):
            starts, lengths = np.zeros(4, np.int64), np.zeros(4, np.int64)
            found = scan(np.frombuffer(content, np.uint8), 0, starts, lengths)
            assert (found[0], found[2]) == (whole, status)
            assert lengths[:whole].tolist() == [0, 7, 3000][:whole]
