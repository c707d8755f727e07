# SPDX-License-Identifier: Apache-2.0
import gzip
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError
from distinput.files.sink import Sink
from distinput.files.source import FileStream
from distinput.formats.text import TextLines
from tests.formats.reading import check_positions, cut_short, flipped, records, records_until_error, small_pieces

COMPRESSIONS = [None, "GZIP", "ZLIB", "ZSTD", "AUTO"]


def write(path: str, content: bytes, compression: str | None = None) -> str:
    with Sink(path, compression or "") as sink:  # type: ignore[arg-type]
        sink.write(content)
    return path


def lines_of(content: bytes) -> list[bytes]:
    """The rule in Python: cut at every newline, one return before it goes, nothing after the last one is no line."""
    *whole, last = content.split(b"\n")
    lines = [line.removesuffix(b"\r") for line in whole]
    return [*lines, last.removesuffix(b"\r")] if last.removesuffix(b"\r") else lines


@pytest.mark.parametrize(
    "content, lines",
    [
        (b"", []),
        (b"\n", [b""]),
        (b"a", [b"a"]),
        (b"a\nb", [b"a", b"b"]),
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"a\r\r\nb\r", [b"a\r", b"b"]),
        (b"x\n\ny\n", [b"x", b"", b"y"]),
        (b"\r\n\r\n", [b"", b""]),
        (b"a\n\r", [b"a"]),
        (b"\x00\xff\n\xe2\x82\n", [b"\x00\xff", b"\xe2\x82"]),
    ],
)
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_lines_are_read_from_every_position(
    tmp_path: Path, content: bytes, lines: list[bytes], compression: str | None
) -> None:
    path = write(str(tmp_path / "a.txt"), content, compression)
    with small_pieces():
        check_positions(TextLines(compression), path, lines)


@given(
    content=st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"a", b"bc" * 20])).map(b"".join), chunk=st.integers(1, 70)
)
def test_any_text_in_any_chunks(content: bytes, chunk: int) -> None:
    path = write("memory://text/any.txt", content)
    with small_pieces(chunk):
        check_positions(TextLines(), path, lines_of(content))


def test_lines_longer_than_chunks(tmp_path: Path) -> None:
    lines = [b"a" * 300_000, b"", b"b" * 2_000_000, b"c"]
    path = write(str(tmp_path / "a.txt"), b"\n".join(lines))
    check_positions(TextLines(), path, lines)


def test_blocks_stay_as_they_were(tmp_path: Path) -> None:
    lines = [b"%d" % i * (i % 50) for i in range(60_000)]
    path = write(str(tmp_path / "a.txt"), b"\n".join(lines) + b"\n")
    blocks = [block for block, _ in TextLines().read(path)]
    assert len(blocks) > 3
    assert [line for block in blocks for line in block.elements()] == lines


def test_the_first_block_is_small(tmp_path: Path) -> None:
    path = write(str(tmp_path / "a.txt"), b"0123456789\n" * 500_000)
    block, _ = next(TextLines().read(path))
    assert block.size < 10_000


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_position_behind_the_end_is_an_error(tmp_path: Path, compression: str | None) -> None:
    path = write(str(tmp_path / "a.txt"), b"a\nb\n", compression)
    with pytest.raises(DataLossError, match=r"a\.txt: has .* the file has changed"):
        records(TextLines(compression), path, {"row": 3} if compression else {"byte": 5, "row": 3})


def test_a_row_is_enough_of_a_position(tmp_path: Path) -> None:
    path = write(str(tmp_path / "a.txt"), b"a\nb\nc\n")
    assert records(TextLines(), path, {"row": 2}) == [b"c"]


def test_a_missing_file() -> None:
    with pytest.raises(NotFoundError, match=r"/nowhere/a\.txt; No such file or directory"):
        records(TextLines(), "/nowhere/a.txt")
    with pytest.raises(NotFoundError, match=r"memory://nowhere/a\.txt"):
        records(TextLines(), "memory://nowhere/a.txt")


def test_an_unknown_compression() -> None:
    with pytest.raises(
        InvalidArgumentError, match="Unsupported compression_type: 'gzip'; known are '' for none, 'GZIP', 'ZLIB'"
    ):
        TextLines("gzip")


def test_damaged_text_is_other_text(tmp_path: Path) -> None:
    content = b"one\r\ntwo\n\nthree"
    for damaged in (*cut_short(content), *flipped(content)):
        path = write(str(tmp_path / "a.txt"), damaged)
        assert records(TextLines(), path) == lines_of(damaged)


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_damaged_compression_is_an_error(tmp_path: Path, compression: str) -> None:
    packed = (gzip if compression == "GZIP" else zlib).compress(b"one\ntwo\n" * 3)
    file = tmp_path / "a.txt"
    for damaged in (*cut_short(packed), *flipped(packed)):
        file.write_bytes(damaged)
        found, error = records_until_error(TextLines(compression), file)
        if error is None:
            assert found == ([b"one", b"two"] * 3 if damaged else [])
        else:
            assert isinstance(error, DataLossError)
            assert str(file) in str(error)


def test_gzip_members_one_after_the_other(tmp_path: Path) -> None:
    file = tmp_path / "a.gz"
    file.write_bytes(gzip.compress(b"a\nb") + gzip.compress(b"c\n") + b"\0" * 70_000)
    assert records(TextLines("GZIP"), file) == [b"a", b"bc"]
    file.write_bytes(gzip.compress(b"a\n") + b"more")
    with pytest.raises(DataLossError, match="corrupted GZIP data"):
        records(TextLines("GZIP"), file)


def test_zlib_with_something_behind_it(tmp_path: Path) -> None:
    file = tmp_path / "a.z"
    file.write_bytes(zlib.compress(b"a\n") + zlib.compress(b"b\n"))
    with pytest.raises(DataLossError, match="something follows the end"):
        records(TextLines("ZLIB"), file)


def test_an_abandoned_reader_closes_its_file(tmp_path: Path) -> None:
    path = write(str(tmp_path / "a.txt"), b"a\nb\n")
    reader = TextLines().read(path)
    next(reader)
    reader.close()  # type: ignore[attr-defined]  # it is a generator
    with pytest.raises(StopIteration):
        next(reader)


def test_a_line_that_goes_on_behind_its_part_is_read_in_few_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * (4 << 20) + b"\nlast\n")
    steps: list[int] = []
    more = FileStream.more

    def counted(self: FileStream, kept: Any, size: int) -> Any:
        steps.append(size)
        return more(self, kept, size)

    monkeypatch.setattr(FileStream, "more", counted)
    format = TextLines()
    (part,) = [
        len(line) for block, _ in format.read_fragment(format.part(str(path), 0, 1000)) for line in block.elements()
    ]
    assert part == 4 << 20
    assert len(steps) < 20
