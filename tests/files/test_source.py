# SPDX-License-Identifier: Apache-2.0
import gzip
import os
import subprocess
import sys
import threading
import zipfile
from contextlib import suppress
from pathlib import Path
from shutil import make_archive
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError, StateError
from distinput.files.compression import encoder_of
from distinput.files.paths import list_matching
from distinput.files.sink import Sink
from distinput.files.source import (
    EMPTY,
    Adjoining,
    FileStream,
    lying_in,
    open_binary,
    read_range,
    size_of,
    stamp_of,
    stamped,
)
from distinput.formats.fixed_length import FixedLengthRecords
from distinput.formats.text import TextLines
from distinput.values.buffers import ALIGNMENT, FEWEST_BYTES
from tests.formats.reading import check_positions, records
from tests.traced_memory import peak_memory


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(range(200)))
    return path


def test_size_and_ranges(file: Path) -> None:
    assert size_of(str(file)) == 200
    assert read_range(str(file), 3, 6) == b"\x03\x04\x05"
    assert read_range(str(file), 198, 300) == b"\xc6\xc7"
    assert read_range(str(file), 6, 3) == b""
    with open_binary(f"file://{file}") as opened:
        opened.seek(7)
        assert opened.read(1) == b"\x07"


def test_missing_files_are_named() -> None:
    for path in ("/nowhere/a", "memory://nowhere/a"):
        for call in (size_of, stamp_of, open_binary, FileStream, lambda name: read_range(name, 0, 1)):
            with pytest.raises(NotFoundError, match=f"{path}; No such file or directory"):
                call(path)


def test_other_errors_keep_their_type_and_name_the_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError) as caught:
        FileStream(str(tmp_path))
    assert caught.value.__notes__ == [
        f"while reading {str(tmp_path)!r}",
        f"in a list of files, '{tmp_path}/' stands for the files below a directory",
    ]
    with pytest.raises(NotADirectoryError):
        size_of(f"{__file__}/a")


@pytest.mark.parametrize("look", [open_binary, size_of])
def test_a_name_with_a_nul_is_of_no_file(look: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"'a\\x00b': no file has a name with a NUL in it"):
        look("a\0b")


def test_a_source_gives_what_was_kept_and_more(file: Path) -> None:
    with FileStream(str(file), start=10) as source:
        assert source.size == 200
        first, ended = source.more(EMPTY, 100)
        assert (first.tobytes(), ended, source.offset) == (bytes(range(10, 110)), False, 110)
        second, ended = source.more(first[-2:], 100)
        assert (second.tobytes(), ended, source.offset) == (bytes(range(108, 200)), True, 200)
        assert first.tobytes() == bytes(range(10, 110))
    with pytest.raises(DataLossError, match="has 200 bytes, but reading must continue at byte 201"):
        FileStream(str(file), start=201)


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_decompression_takes_little_memory(tmp_path: Path, compression: str) -> None:
    path = str(tmp_path / "zeros")
    with Sink(path, compression) as sink:  # type: ignore[arg-type]
        for _ in range(100):
            sink.write(bytes(1 << 20))
    assert size_of(path) < 1 << 18

    def read() -> None:
        with FileStream(path, compression) as source:  # type: ignore[arg-type]
            ended = False
            while not ended:
                data, ended = source.more(EMPTY, 1 << 16)
                assert not data.any()
            assert source.offset == 100 << 20

    assert peak_memory(read) < 4 << 20


def test_chunks_that_are_kept_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "large.bin"
    path.write_bytes(b"".join(bytes([number]) * 100_000 for number in range(20)))
    with FileStream(str(path)) as source:
        kept = [source.more(EMPTY, 100_000)[0][50_000:] for _ in range(20)]
    assert [set(chunk.tolist()) for chunk in kept] == [{number} for number in range(20)]


def test_chunks_that_nobody_keeps_are_one_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.bin"
    path.write_bytes(bytes(2_000_000))
    addresses = set()
    with FileStream(str(path)) as source:
        for size in range(100_000, 100_020):
            addresses.add(source.more(EMPTY, size)[0].ctypes.data)
    assert len(addresses) <= 2


def test_a_sink_is_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    sink = Sink(str(path))
    sink.write(b"n" * 300_000)
    assert path.read_bytes() == b"old"
    sink.close()
    sink.discard()
    assert path.read_bytes() == b"n" * 300_000
    with suppress(KeyError), Sink(str(path)) as sink:
        sink.write(b"x")
        raise KeyError
    assert os.listdir(tmp_path) == ["a"]
    assert len(path.read_bytes()) == 300_000
    with pytest.raises(ValueError, match="closed"):
        sink.write(b"x")


def test_a_sink_elsewhere_leaves_no_half_file() -> None:
    with suppress(KeyError), Sink("memory://sink/a") as sink:
        sink.write(b"x")
        raise KeyError
    with pytest.raises(NotFoundError):
        size_of("memory://sink/a")


def test_a_sink_follows_links_and_writes_to_pipes(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with Sink(str(tmp_path / "link")) as sink:
        sink.write(b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"x"
    with Sink(os.devnull) as sink:
        sink.write(b"x")
    with pytest.raises(IsADirectoryError):
        Sink(str(tmp_path))


def test_encoder_flushes() -> None:
    encoder = encoder_of("ZLIB", 1)
    assert len(encoder.encode(b"abc") + encoder.flush()) > 3
    assert encoder.finish()


@pytest.mark.fresh_process
def test_importing_formats_is_light() -> None:
    program = (
        "import sys, distinput.formats, distinput.formats.example, distinput.files.sink\n"
        "heavy = ('pyarrow', 'numba', 'fsspec')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert run.stdout.strip() == "[]"


def test_files_inside_archives(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.txt", b"one\ntwo\n")
        archive.writestr("b.txt", b"three")
    paths = list_matching(f"zip://*.txt::{tmp_path}/a.zip")
    assert paths == [f"zip://{name}.txt::{tmp_path}/a.zip" for name in "ab"]
    for path, want in zip(paths, ([b"one", b"two"], [b"three"]), strict=True):
        check_positions(TextLines(), path, want)


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_files_inside_archives_have_one_version(tmp_path: Path, kind: str) -> None:
    def archive_of(content: bytes) -> None:
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / "a.txt").write_bytes(content)
        make_archive(str(tmp_path / "a"), kind, tmp_path / "in", "a.txt")

    archive_of(b"one\ntwo\n")
    path = f"{kind}://a.txt::{tmp_path}/a.{kind}"
    version = stamp_of(path)
    assert stamp_of(path) == version
    with open_binary(path) as opened:
        assert opened.read() == b"one\ntwo\n"
    with iter(di.data.TextLineDataset(path)) as iterator:
        next(iterator)
        state = iterator.state()
    assert list(di.data.TextLineDataset(path).restore(state)) == [b"two"]
    archive_of(b"one\nothers\n")
    assert stamp_of(path) != version
    with pytest.raises(StateError, match="another size"):
        di.data.TextLineDataset(path).restore(state)


def test_pipes_are_read_from_front_to_back() -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, b"one\ntwo")
    os.close(write_end)
    try:
        assert records(TextLines(), f"/dev/fd/{read_end}") == [b"one", b"two"]
        with pytest.raises(InvalidArgumentError, match="a pipe has no size"):
            records(FixedLengthRecords(1), f"/dev/fd/{read_end}")
    finally:
        os.close(read_end)


def test_a_record_of_a_compressed_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distinput.files.source._MOST_INFLATED", 1 << 20)
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"short\n" + b"x" * (3 << 20)))
    with pytest.raises(
        DataLossError, match=r"a.gz: \d+ bytes of it expand to a record of more than 1048576 bytes, which beg"
    ):
        records(TextLines("GZIP"), str(path))
    path.write_bytes(gzip.compress(os.urandom(3 << 20).replace(b"\n", b" ")))  # which is as long as it seems
    assert [len(line) for line in records(TextLines("GZIP"), str(path))] == [3 << 20]


def test_a_known_stamp_is_that_of_one_file_on_one_thread() -> None:
    path, seen = "memory://nowhere/a", []

    def ask() -> None:
        try:
            stamp_of(path)
        except NotFoundError as error:
            seen.append(error)

    with stamped(path, "1"):
        with stamped(path, None):
            assert stamp_of(path) == "1"
        with stamped("memory://nowhere/b", "2"):
            assert stamp_of("memory://nowhere/b") == "2"
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        assert stamp_of(path) == "1"
    assert len(seen) == 1
    with pytest.raises(NotFoundError):
        stamp_of(path)


@given(st.lists(st.integers(1, 3 * FEWEST_BYTES), min_size=1, max_size=6))
def test_memory_of_files_that_are_wanted_together_adjoins_once_their_bytes_are_known(sizes: list[int]) -> None:
    memory = Adjoining()
    for known in (False, True):
        memory.part()
        made = [memory.empty(size) for size in sizes]
        assert [len(array) for array in made] == sizes
        for number, array in enumerate(made):
            array[:] = number
        assert all((array == number).all() for number, array in enumerate(made))
        if known:
            assert len({id(array.base) for array in made}) == 1
        if sum(sizes) >= FEWEST_BYTES and known:
            assert not any(array.__array_interface__["data"][0] % ALIGNMENT for array in made)


def test_a_stream_lies_where_it_is_told(file: Path) -> None:
    memory = Adjoining()
    with lying_in(memory):
        streams = [FileStream(str(file)) for _ in range(2)]
    first = streams[0].more(EMPTY, 300)[0]
    memory.part()
    near, more = (streams[1].more(EMPTY, 100)[0] for _ in range(2))
    assert (first.tobytes(), near.tobytes() + more.tobytes()) == (file.read_bytes(),) * 2
    assert near.base is more.base is not first.base
    for stream in streams:
        stream.close()
