# SPDX-License-Identifier: Apache-2.0
"""No text that the library makes has the secret of a URL in it, and a state does not know it."""

import contextlib
import errno
import io
import json
import logging
import pickle
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput.errors import NoMatchError
from distinput.files.paths import below, globbed
from distinput.files.retries import Retries, persistently
from distinput.url_secrets import public_url, scrub, without_secrets
from tests.files.strange_server import Answer, StrangeServer

SECRET = "5ecre7abcdef"
LINES = [b"1", b"two", b"3"]
SIGNED = f"X-Amz-Algorithm=AWS4&X-Amz-Credential={SECRET}&X-Amz-Expires=60&X-Amz-Signature={SECRET}"
QUERIES = [SIGNED, f"sv=2024&se=2030&sig={SECRET}", f"token={SECRET}", f"part=1&access_token={SECRET}"]


@pytest.mark.parametrize(
    "text, cut, public",
    [
        ("s3://b/a.txt", "s3://b/a.txt", "s3://b/a.txt"),
        ("http://h/a?versionId=3", "http://h/a?versionId=3", "http://h/a?versionId=3"),
        ("http://h/a?author=me&tokenizer=b&design=2&credits=3", None, None),
        ("http://h/?key=data/a.txt&code=", None, None),
        ("http://h/a?key=AIzaSyD-123456", "http://h/a?***", "http://h/a"),
        ("http://u:p@h/a", "http://***@h/a", "http://h/a"),
        ("https://ghp_token@h/a", "https://***@h/a", "https://h/a"),
        ("postgresql://u:p@h:5/db", "postgresql://***@h:5/db", "postgresql://h:5/db"),
        ("abfs://container@account/a", "abfs://container@account/a", "abfs://container@account/a"),
        ("http://h/a@b?x=1", None, None),
        (f"http://h/a?{SIGNED}", "http://h/a?***", "http://h/a"),
        ("http://h/a?f=1&sig=x&f2=2", "http://h/a?f=1&f2=2&***", "http://h/a?f=1&f2=2"),
        ("open('http://h/a?sig=x'): no", "open('http://h/a?***'): no", "open('http://h/a'): no"),
        ("at http://h/a?sig=x, http://h/b?sig=y.", "at http://h/a?***, http://h/b?***.", "at http://h/a, http://h/b."),
        ("simplecache::https://h/a?sig=x", "simplecache::https://h/a?***", "simplecache::https://h/a"),
        ("no url, user:pass@host?sig=x", None, None),
    ],
)
def test_what_is_cut_out(text: str, cut: str | None, public: str | None) -> None:
    assert without_secrets(text) == (text if cut is None else cut)
    assert public_url(text) == (text if public is None else public)
    assert without_secrets(without_secrets(text)) == without_secrets(text)


class FromElsewhere(Exception):
    def __str__(self) -> str:
        return f"403, url='http://h/a?sig={SECRET}'"


def test_errors_of_others_are_cleaned_with_what_caused_them() -> None:
    url = f"http://h/a?sig={SECRET}"
    error = OSError(13, "denied", url)
    error.add_note(f"while reading {url!r}")
    error.__cause__ = FileNotFoundError(url)
    error.__cause__.__cause__ = FromElsewhere(url)
    error.__cause__.__context__ = FromElsewhere(url)
    scrub(error)
    assert SECRET not in "".join(traceback.format_exception(error))
    assert error.filename == "http://h/a?***"
    assert error.errno == 13
    round_about = ValueError(url)
    round_about.__cause__ = KeyError(url)
    round_about.__cause__.__context__ = round_about
    scrub(round_about)
    assert SECRET not in repr(round_about) + repr(round_about.__cause__)


def test_errors_and_warnings_of_the_library() -> None:
    url = f"http://u:{SECRET}@h/a?sig={SECRET}"
    for kind in (di.errors.DataLossError, di.errors.NotFoundError, di.errors.StateError, di.errors.InputWarning):
        error = kind(f"{url}: no")
        error.add_note("plain")
        assert SECRET not in f"{error} {error!r} {error.args}"
        assert SECRET not in str(pickle.loads(pickle.dumps(error)))
    noted = di.errors.DataLossError("no")
    noted.add_note(f"in {url}")
    assert noted.__notes__ == ["in http://***@h/a?***"]


@pytest.fixture
def shown(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> Iterator[list[str]]:
    """What the library has shown; the secret must not be in it."""
    caplog.set_level(logging.DEBUG)
    texts: list[str] = []
    yield texts
    texts += [record.getMessage() for record in caplog.get_records("call")]
    texts += [logging.Formatter().format(record) for record in caplog.get_records("call")]
    texts += capsys.readouterr()
    assert texts
    assert [text for text in texts if SECRET in text] == []


def fails(shown: list[str], call: Any) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - each is another one
        call()
    error: BaseException | None = caught.value
    while error is not None:
        shown.append("".join(traceback.format_exception(error)))
        shown.append(f"{error!r} {error.args} {getattr(error, '__notes__', '')} {getattr(error, 'filename', '')}")
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("filesystem", [pytest.param(None, marks=pytest.mark.needs("aiohttp")), "obstore"])
def test_nothing_shows_a_secret(shown: list[str], tmp_path: Path, query: str, filesystem: Any) -> None:
    if filesystem is not None:
        pytest.importorskip("obstore")

    def guarded(answer: Answer) -> None:
        if "?" not in answer.path or "forbidden" in answer.path or "down" in answer.path or "gone" in answer.path:
            answer.fail(503 if "down" in answer.path else 404 if "gone" in answer.path else 403)

    with StrangeServer(b"\n".join(LINES), guarded) as server:
        url = f"{server.url}/a.txt?{query}"
        given: dict[str, Any] = {} if filesystem is None else {"filesystem": filesystem}
        dataset = di.data.TextLineDataset([url], **given)
        assert dataset.to_list() == LINES
        shown += [repr(dataset), dataset.explain(), dataset.explain(num_workers=2), str(dataset.node)]
        plan = di.data.experimental.shard_plan(dataset, num_workers=2)
        shown += [str(plan), repr(plan), json.dumps(plan.to_dict()), repr(list(plan.workers))]
        quarantine = tmp_path / "bad.jsonl"
        skip = di.data.SkipErrors(10, quarantine=str(quarantine))
        assert dataset.map(int, on_error=skip).to_list() == [1, 3]
        shown += [quarantine.read_text(), json.dumps(iter(dataset).state())]
        fails(shown, lambda: dataset.map(int).to_list())
        fails(
            shown, lambda: di.data.TextLineDataset([url + "&more=1"], **given).restore(iter(dataset.map(int)).state())
        )
        for name in ("forbidden", "gone"):
            fails(
                shown,
                lambda name=name: di.data.TextLineDataset([f"{server.url}/{name}.txt?{query}"], **given).to_list(),
            )
        fails(shown, lambda: di.data.FileDataset(url, **given).map(lambda x: 1 // 0).to_list())
        fails(shown, lambda: di.data.ParquetDataset([url], **given).to_list())
        fails(shown, lambda: di.data.TFRecordDataset([url], **given).to_list())


@pytest.mark.parametrize("ask", [globbed, below])
def test_a_file_system_without_open_files_left(ask: Any) -> None:
    class Web:  # as that of fsspec, which says of any failure that the file is missing
        def fails(self, path: str, **options: Any) -> Any:
            raise FileNotFoundError(path) from OSError(errno.EMFILE, "Too many open files")

        glob = find = fails

    with pytest.raises(OSError, match="Too many open files") as caught:
        ask(Web(), f"http://u:{SECRET}@h/a?sig={SECRET}")
    assert not isinstance(caught.value, FileNotFoundError)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_server_that_is_down(shown: list[str]) -> None:
    with StrangeServer(b"", lambda answer: answer.fail(503)) as server:
        di.io.mount(f"{server.url}/", storage_options={}, retries=Retries(deadline=0.3))
        try:
            fails(shown, lambda: di.data.TextLineDataset([f"{server.url}/a.txt?sig={SECRET}"]).to_list())
            fails(shown, lambda: di.io.read_file(f"{server.url}/a.txt?sig={SECRET}"))
            fails(shown, lambda: di.data.Dataset.list_files(f"{server.url}/a.txt?sig={SECRET}").to_list())
        finally:
            di.io.unmount(f"{server.url}/")


@pytest.mark.needs("aiohttp")
def test_a_server_that_is_down_is_no_missing_file() -> None:
    with StrangeServer(b"", lambda answer: answer.fail(503)) as server:
        di.io.mount(f"{server.url}/", storage_options={}, retries=Retries(deadline=0.3))
        try:
            with pytest.raises(OSError, match="answered") as caught:
                di.data.TextLineDataset(f"{server.url}/a.txt?sig={SECRET}")
            assert not isinstance(caught.value, FileNotFoundError)
        finally:
            di.io.unmount(f"{server.url}/")


@pytest.mark.needs("aiohttp")
def test_a_file_that_a_server_does_not_have_is_missing() -> None:
    with (
        StrangeServer(b"", lambda answer: answer.fail(404)) as server,
        pytest.raises(NoMatchError, match="No files matched pattern"),
    ):
        di.data.TextLineDataset(f"{server.url}/a.txt?sig={SECRET}")


def test_the_count_of_requests_shows_no_secret() -> None:
    failures = iter([OSError(errno.EIO, "broken"), PermissionError(errno.EACCES, "forbidden")])

    def ask() -> None:
        raise next(failures)

    with pytest.raises(PermissionError, match="forbidden") as caught:
        persistently(ask, f"http://h/a?sig={SECRET}", Retries(first_pause=0.001))
    (note,) = caught.value.__notes__
    assert "while reading 'http://h/a?***', request 2 in" in note


def test_errors_of_a_store_that_write_a_key_in_their_own_way(shown: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("obstore")
    with StrangeServer(b"", lambda answer: answer.fail(403)) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
            monkeypatch.setenv(name, "some")
        for query in QUERIES:
            url = f"s3://of-secrets/a.txt?{query}"
            di.io.mount("s3://of-secrets/", "obstore")
            try:
                fails(shown, lambda url=url: di.io.read_file(url))
                fails(shown, lambda url=url: di.data.FileDataset(url))
                fails(shown, lambda url=url: di.data.Dataset.list_files(url))
                fails(shown, lambda url=url: di.data.TextLineDataset(url).to_list())
                fails(shown, lambda url=url: di.data.Dataset.range(2).map(lambda n: {"n": n}).write(url, "csv"))
            finally:
                di.io.unmount("s3://of-secrets/")


def test_the_command_line(shown: list[str]) -> None:
    from distinput.cli.main import main

    with StrangeServer(b"", lambda answer: answer.fail(403)) as server:
        for command in ("head", "info", "count"):
            with contextlib.redirect_stderr(io.StringIO()) as err, contextlib.suppress(SystemExit):
                main([command, f"{server.url}/a.txt?sig={SECRET}"])
            shown.append(err.getvalue())


@pytest.mark.parametrize("filesystem", [pytest.param(None, marks=pytest.mark.needs("aiohttp")), "obstore"])
def test_a_state_is_of_the_file_whatever_its_signature(filesystem: Any) -> None:
    if filesystem is not None:
        pytest.importorskip("obstore")
    given: dict[str, Any] = {} if filesystem is None else {"filesystem": filesystem}
    with StrangeServer(b"\n".join(LINES)) as server:

        def read(query: str) -> Any:
            return di.data.TextLineDataset([f"{server.url}/a.txt?{query}"], **given)

        for first in QUERIES[:3]:
            iterator = iter(read(first))
            next(iterator)
            state = json.loads(json.dumps(iterator.state()))
            for then in (first.replace(SECRET, "another"), "token=third"):
                assert list(read(then).restore(state)) == LINES[1:]
                in_a_step = di.data.Dataset.from_tensors(0).flat_map(lambda _, then=then: read(then))
                assert in_a_step.to_list() == LINES
            with pytest.raises(di.errors.StateError, match="names other files"):
                list(read(f"part=2&{first}").restore(state))


@pytest.mark.needs("aiohttp")
@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.parquet"])
def test_commands_that_succeed(shown: list[str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from distinput.cli.main import main

    monkeypatch.chdir(tmp_path)
    di.io.write_parquet("a.parquet", {"x": [1, 2]})
    body = Path("a.parquet").read_bytes() if name == "a.parquet" else b"x,y\n1,2\n3,4\n"
    with StrangeServer(body) as server:
        url = f"{server.url}/{name}?{SIGNED}"
        with_user = url.replace("://", f"://me:{SECRET}@")
        Path("mine.py").write_text(
            f"import distinput as di\nds = di.data.FileDataset([{url!r}, {url + '&part=2'!r}]).batch(2)\n"
        )
        both = [url, url + "&part=2"]
        calls = [
            *[[command, *files] for command in ("count", "head", "info", "sample", "schema", "stats") for files in
              ([url], both, [with_user])],
            ["verify", url], ["verify", url, "--against", url + "&part=2"],
            ["verify", *both, "--against", url],
            ["convert", url, "--to", "jsonl", "-o", "converted", "--overwrite"],
            ["index", url, "--folder", "indices"],
            ["locate", "mine.py:ds", "--step", "0", "--read"],
            ["locate", "mine.py:ds", "--file", url, "--record", "1", "--read"],
            ["locate", "mine.py:ds", "--file", url, "--record", "99", "--read"],
            *[[command, "mine.py:ds"] for command in ("plan", "explain", "graph")],
        ]  # fmt: skip
        for words in calls:
            for how in ([], ["--json"]):
                assert main([*words, *how]) in (0, 1, 3), words


@pytest.mark.needs("obstore")
def test_plain_errors_of_names() -> None:
    """Errors of Python itself, that name a URL, are those of the library too: their text is cut."""
    url = f"me:{SECRET}@host/a?sig={SECRET}"
    calls = [
        lambda: di.io.mount(f"file://{url}", object()),
        lambda: di.io.mount(f"nothing://{url}", "obstore"),
        lambda: di.io.unmount(f"s3://{url}"),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"mount|obstore") as caught:
            call()
        assert SECRET not in f"{caught.value} {caught.value!r}"


def test_a_defect_that_a_command_meets_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    from distinput.cli import file_commands
    from distinput.cli.main import main

    def broken(*_: Any) -> None:
        raise KeyError(f"http://h/a?sig={SECRET}")

    monkeypatch.setattr(file_commands, "opened", broken)
    with pytest.raises(KeyError) as caught:
        main(["count", "a.txt"])
    assert SECRET not in repr(caught.value)


@pytest.mark.parametrize("first", [f"sig={SECRET}", SIGNED.replace(SECRET, f"{SECRET}/2024/s3"), f"token={SECRET}"])
def test_a_state_of_a_signature_with_folders_in_it(first: str) -> None:
    names = ["http://host/data/1.txt", "http://host/data/2.txt"]

    def state(query: str, count: int) -> Any:
        dataset = di.data.Dataset.from_tensor_slices([f"{name}?{query}" for name in names[:count]]).batch(1)
        return iter(dataset).state(), dataset

    for count in (1, 2):
        saved, _ = state(first, count)
        _, dataset = state(first.replace(SECRET, "an/other"), count)
        assert len(list(dataset.restore(saved))) == count


def test_what_was_written_and_opened_is_printed_without_secrets() -> None:
    from fsspec import filesystem

    from distinput.files.mounts import mounted
    from distinput.inspect.files import open_files

    folder = f"secretly://me:{SECRET}@host/numbers"
    di.io.mount(f"secretly://me:{SECRET}@host/", filesystem("memory"))
    try:
        written = di.data.Dataset.range(3).write(folder, "csv")
        for made in (written, di.io.verify_files(folder), open_files(f"{folder}/"), mounted(folder)):
            assert "secretly://***@host/" in repr(made)
            assert SECRET not in repr(made)
            assert SECRET not in str(made)
        assert written.paths[0].startswith(folder)  # to read them
    finally:
        di.io.unmount(f"secretly://me:{SECRET}@host/")


def test_steps_and_their_parts_print_themselves_without_secrets() -> None:
    from distinput.formats.format import Fragment
    from distinput.sharding.shard_plan import FileRange

    url = f"s3://me:{SECRET}@host/numbers?X-Amz-Signature={SECRET}"
    numbers = di.data.Dataset.range(3)
    for made in (
        numbers.cache(url),
        numbers.snapshot(url),
        numbers.cache(url).batch(2),
        numbers.map(lambda x: x).snapshot(url),
    ):
        assert "s3://***@host/numbers?***" in repr(made.node)
        assert SECRET not in repr(made.node)
    for part in (Fragment(url, 0, None, 3, 24), FileRange(url, 0, 3)):
        assert SECRET not in repr(part)
    assert repr(numbers.take(2).node) == (
        "Take(input=Range(first=0, stop=3, step=1, output_type=<class 'numpy.int64'>), count=2)"
    )
