# SPDX-License-Identifier: Apache-2.0
"""What a web server sends is held to what it says, and an error of a server is not a missing file."""

import functools
import gzip
import http.server
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError, UnimplementedError
from distinput.files.retries import Retries
from distinput.files.source import FileStream
from distinput.testing.range_server import RangeServer
from tests.files.strange_server import Answer, StrangeServer
from tests.traced_memory import peak_memory

pytestmark = pytest.mark.needs("aiohttp")

LINES = [b"%d" % number for number in range(1000)]
CONTENT = b"".join(line + b"\n" for line in LINES)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
@pytest.mark.parametrize("on_error", [None, "skip"])
def test_a_hiccup_of_a_server_is_no_missing_file(status: int, on_error: Any) -> None:
    with StrangeServer(CONTENT, lambda answer: answer.number < 4 and answer.fail(status)) as server:
        assert di.data.TextLineDataset(f"{server.url}/a.txt", on_error=on_error).to_list() == LINES


@pytest.mark.parametrize("on_error", [None, "skip"])
def test_a_server_that_is_down_is_not_skipped(on_error: Any) -> None:
    with StrangeServer(CONTENT, lambda answer: answer.fail(503)) as server:
        di.io.mount(f"{server.url}/", storage_options={}, retries=Retries(deadline=0.5))
        try:
            with pytest.raises(OSError, match=r"503 Service Unavailable|was not answered") as caught:
                di.data.TextLineDataset(f"{server.url}/a.txt", on_error=on_error).to_list()
            assert not isinstance(caught.value, FileNotFoundError)
            with pytest.raises(OSError, match=r"503 Service Unavailable|was not answered"):
                di.data.TextLineDataset(f"{server.url}/{{a,b}}.txt").to_list()
        finally:
            di.io.unmount(f"{server.url}/")


STATUS = {401: PermissionError, 403: PermissionError, 404: NotFoundError, 410: NotFoundError, 418: OSError}


@pytest.mark.parametrize("status, kind", STATUS.items())
def test_what_will_not_pass_is_an_error_at_once(status: int, kind: type[Exception]) -> None:
    with StrangeServer(CONTENT, lambda answer: answer.fail(status)) as server:
        with pytest.raises(kind):
            di.data.TextLineDataset(f"{server.url}/a.txt").to_list()
        assert len(server.requests) < 8


def test_another_range_than_was_asked_for_is_not_taken() -> None:
    def shifted(answer: Answer) -> None:
        if answer.status == 206:
            answer.body = CONTENT[3 : 3 + len(answer.body)].ljust(len(answer.body), b"x")
            answer.headers["Content-Range"] = f"bytes 3-{len(answer.body) + 2}/{len(CONTENT)}"

    with (
        StrangeServer(CONTENT, shifted) as server,
        pytest.raises(
            OSError, match=r"bytes 0 to 3890 were asked for, and the answer has 3890, marked 'bytes 3-3892/3890'"
        ),
    ):
        di.data.TextLineDataset(f"{server.url}/a.txt").to_list()


def test_a_size_that_was_understated_is_noticed() -> None:
    def understated(answer: Answer) -> None:
        if answer.number == 0:  # so that the size is asked for
            answer.fail(503)
        if answer.method == "HEAD":
            answer.headers["Content-Length"] = "100"

    with (
        StrangeServer(CONTENT, understated) as server,
        pytest.raises(DataLossError, match=r"was '100 bytes.* is '3890 bytes"),
    ):
        di.data.TextLineDataset(f"{server.url}/a.txt").to_list()


def test_a_first_request_that_stalls_is_given_up() -> None:
    release, held = threading.Event(), list[bool]()

    def late(answer: Answer) -> None:
        if answer.number == 0:
            held.append(release.wait(60))

    with StrangeServer(CONTENT, late) as server:
        di.io.mount(f"{server.url}/", storage_options={}, retries=Retries(stall=0.2))
        try:
            assert di.io.read_file(f"{server.url}/a.txt") == CONTENT
            assert not held, "the first request has no answer yet"
        finally:
            release.set()
            di.io.unmount(f"{server.url}/")


@pytest.mark.parametrize("content", [CONTENT, b"0\n", b""])
def test_a_server_that_sends_whole_files_is_told_from_others(content: bytes) -> None:
    def whole(answer: Answer) -> None:
        if answer.status == 206:
            answer.status, answer.body = 200, content
            answer.headers = {"Content-Length": str(len(content))}

    with StrangeServer(content, whole) as server:
        assert di.data.TextLineDataset(f"{server.url}/a.txt").to_list() == content.splitlines()
        assert di.io.read_file(f"{server.url}/a.txt") == content


NUMBERS = np.arange(20_000)


def contents(path: Path) -> bytes:
    """Of a file that has the numbers in the format of its suffix."""
    match path.suffix:
        case ".arrow":
            di.io.write_arrow(str(path), {"x": NUMBERS})
        case ".parquet":
            di.io.write_parquet(str(path), {"x": NUMBERS})
        case ".npz":
            np.savez(path, x=NUMBERS)
        case ".npy":
            np.save(path, NUMBERS)
        case ".tfrecord":
            with di.io.TFRecordWriter(str(path)) as writer:
                for number in NUMBERS:
                    writer.write(b"%d" % number)
        case ".csv":
            path.write_text("x,y\n" + "".join(f"{number},text of {number}\n" for number in NUMBERS))
        case _:
            path.write_text("".join(f'{{"x": {number}}}\n' for number in NUMBERS))
    return path.read_bytes()


def csv_tuples(path: str) -> Any:
    return di.data.CsvDataset(path, [np.int64(0), b""], header=True)


def sending_whole(answer: Answer, name: str, content: bytes) -> None:
    answer.status, answer.body = 200, content
    answer.headers = {"Accept-Ranges": "none", "Content-Length": str(len(content))}
    if not answer.path.endswith(name):  # such as a manifest in a folder of this name
        answer.fail(404)


@pytest.mark.parametrize(
    "name, reader",
    [
        ("a.csv", di.data.FileDataset),
        ("a.csv", csv_tuples),
        ("a.jsonl", di.data.JsonLinesDataset),
        ("a.txt", di.data.TextLineDataset),
        ("a.tfrecord", di.data.TFRecordDataset),
    ],
)
def test_a_server_without_ranges_sends_what_is_read_from_the_front(name: str, reader: Any, tmp_path: Path) -> None:
    content = contents(tmp_path / name)
    wanted = reader(str(tmp_path / name)).to_list()
    with StrangeServer(content, lambda answer: sending_whole(answer, name, content)) as server:
        remote = reader(f"{server.url}/{name}")
        assert remote.to_list() == wanted
        with iter(remote) as iterator:
            for _ in range(777):
                next(iterator)
            state = iterator.state()
        assert [*map(str, remote.restore(state))] == [*map(str, reader(str(tmp_path / name)).skip(777))]
        assert di.io.read_file(f"{server.url}/{name}") == content


@pytest.mark.parametrize("size", [0, 700])
def test_a_file_that_is_sent_whole_and_ends_before_a_position_is_told(size: int) -> None:
    def change(answer: Answer) -> None:
        answer.status, answer.headers = 200, {}  # nor does it say the size
        answer.body = bytes(size)

    with (
        StrangeServer(b"", change) as server,
        pytest.raises(
            DataLossError, match=f"a.txt: has {size} bytes, but reading must continue at byte 800; the file has"
        ),
    ):
        FileStream(f"{server.url}/a.txt", start=800)


def test_a_server_that_tells_no_size_is_told_where_the_end_of_a_file_is_needed(tmp_path: Path) -> None:
    def change(answer: Answer) -> None:
        answer.status, answer.headers, answer.body = 200, {}, contents(tmp_path / "a.parquet")
        if not answer.path.endswith("a.parquet"):
            answer.fail(404)

    with StrangeServer(b"", change) as server:
        for kind in (di.data.FileDataset, di.data.ParquetDataset):
            with pytest.raises(UnimplementedError, match=r"/a.parquet: its server ignores requests .*; copy the file"):
                kind(f"{server.url}/a.parquet").to_list()
        with pytest.raises(InvalidArgumentError, match=r"its server tells no size, so its last record .*; save it"):
            di.data.FixedLengthRecordDataset(f"{server.url}/a.parquet", 4).to_list()


@pytest.mark.parametrize("status", [200, 206])
def test_no_more_is_kept_of_an_answer_than_was_asked_for(status: int) -> None:
    """Of a file that is sent whole nobody knows how long it is, if its server does not say."""
    content = CONTENT * 16_000

    def change(answer: Answer) -> None:
        answer.status, answer.headers, answer.body = status, {}, content

    def first_record() -> None:
        with StrangeServer(b"", change) as server, iter(di.data.TextLineDataset(f"{server.url}/a.txt")) as lines:
            assert next(lines) == LINES[0]

    first_record()  # what is loaded for the web is no matter here
    assert peak_memory(first_record) < len(content) / 3


@pytest.mark.parametrize("says_none_alone", [False, True])
@pytest.mark.parametrize("name", ["a.arrow", "a.npz", "a.parquet", "a.npy"])
def test_a_server_without_ranges_is_told_where_parts_of_a_file_are_needed(
    name: str, says_none_alone: bool, tmp_path: Path
) -> None:
    content = contents(tmp_path / name)

    def change(answer: Answer) -> None:
        answer.headers["Accept-Ranges"] = "none"
        if not says_none_alone or not answer.path.endswith(name):
            sending_whole(answer, name, content)

    with StrangeServer(content, change) as server:
        remote = di.data.FileDataset(f"{server.url}/{name}")
        if says_none_alone and name in ("a.npy", "a.parquet"):  # which ask for nothing but parts
            assert remote.to_list() == di.data.FileDataset(str(tmp_path / name)).to_list()
            return
        with pytest.raises(UnimplementedError, match=rf"/{name}: its server ignores requests .*; copy the file"):
            remote.to_list()


@pytest.mark.parametrize("filesystem", [None, "obstore"])
@pytest.mark.parametrize("signed_for", ["GET", "GET HEAD"])
def test_a_signed_url_is_read_with_its_signature(filesystem: Any, signed_for: str) -> None:
    def guarded(answer: Answer) -> None:
        if "?X-Amz-Expires=60&X-Amz-Signature=ab%2Bc" not in answer.path or answer.method not in signed_for:
            answer.fail(403)

    if filesystem is not None:
        pytest.importorskip("obstore")
    with StrangeServer(CONTENT, guarded) as server:
        url = f"{server.url}/data/a.txt?X-Amz-Expires=60&X-Amz-Signature=ab%2Bc"
        assert di.data.TextLineDataset(url, filesystem=filesystem).to_list() == LINES


def test_an_index_beside_a_file_of_the_web_asks_for_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1\n2\n")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/a.txt"
            with pytest.raises(di.errors.UnimplementedError, match="can be read, but not written") as caught:
                list(di.data.FileDataset(url, format="text", index=True))
            assert "name a folder for it with index=" in str(caught.value.__notes__)
            assert len(list(di.data.FileDataset(url, format="text", index=str(tmp_path / "indices")))) == 2
        finally:
            server.shutdown()


def test_a_server_that_compresses_what_it_sends_is_asked_not_to() -> None:
    content = b"".join(b"%d\n" % number for number in range(300_000))  # more than is asked for at first

    def compressing(answer: Answer) -> None:
        if "gzip" in answer.encodings:
            answer.status, answer.body = 200, gzip.compress(content, 1)
            answer.headers = {"Content-Encoding": "gzip", "Content-Length": str(len(answer.body))}

    with StrangeServer(content, compressing) as server:
        found = di.data.TextLineDataset(f"{server.url}/a.txt").to_list()
        assert b"".join(line + b"\n" for line in found) == content


def test_a_file_that_was_replaced_is_read_as_it_is_now(tmp_path: Path) -> None:
    with RangeServer(tmp_path) as server:
        for header in ("a,b", "b,a", "much_longer,c"):
            (tmp_path / "a.csv").write_text(f"{header}\n1,2\n")
            assert di.data.CsvDataset(f"{server.url}/a.csv").to_list() == [
                dict(zip(header.split(","), (1, 2), strict=True))
            ]
        for count in (3, 5):
            di.io.write_parquet(tmp_path / "a.parquet", {f"x{count}": np.arange(count)})
            found = di.data.ParquetDataset(f"{server.url}/a.parquet").to_list()
            assert found == [{f"x{count}": number} for number in range(count)]


def test_an_index_of_a_file_that_was_replaced_is_built_again(tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    with RangeServer(tmp_path / "served") as server:
        for text in ("aaa\nb\n", "a\nbbb\nc\n"):
            (tmp_path / "served" / "a.txt").write_text(text)
            lines = di.data.TextLineDataset(f"{server.url}/a.txt", index=str(tmp_path / "indices"))
            assert [lines[row].decode() for row in range(len(lines))] == text.split()
