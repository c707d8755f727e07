# SPDX-License-Identifier: Apache-2.0
import contextlib
import io
import os
import sys
from glob import glob
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.errors import EngineMissing, InvalidArgumentError, NotFoundError
from distinput.files.paths import _globbed_here, as_paths, file_system, list_matching, local_path
from distinput.files.sink import Sink
from distinput.files.source import open_binary, read_range, size_of
from distinput.formats.text import TextLines
from tests.exhausted import ThreadStarts
from tests.formats.reading import records


@pytest.mark.parametrize(
    "given, paths",
    [
        ("a", ["a"]),
        (b"a", ["a"]),
        (PurePosixPath("a/b"), ["a/b"]),
        (["a", b"b", PurePosixPath("c")], ["a", "b", "c"]),
        ([], []),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array([b"a"], object), ["a"]),
        (np.str_("a"), ["a"]),
        (np.array("a"), ["a"]),
        ((["a"], "b"), ["a", "b"]),
    ],
)
def test_as_paths(given: object, paths: list[str]) -> None:
    assert as_paths(given) == paths


def test_what_is_no_path() -> None:
    with pytest.raises(TypeError, match="a path must be str, bytes or a path object, got a int"):
        as_paths(["a", 1])


@pytest.mark.parametrize(
    "given, error, says",
    [
        ({"b", "a"}, TypeError, r"got a set, which has another order in each process; give sorted\(\.\.\.\) of it"),
        (frozenset("a"), TypeError, "got a frozenset, which has another order"),
        (
            [{"train": "a"}],
            TypeError,
            "got a dict, of which nobody knows which to read; give the paths of one of its keys",
        ),
        ("", InvalidArgumentError, "a path must name a file or folder, got '', which is empty"),
        (["a", b""], InvalidArgumentError, "got b'', which is empty"),
    ],
)
def test_what_has_no_order_and_what_is_empty_is_no_path(given: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        di.data.TextLineDataset(given).to_list()


def test_an_open_file_is_no_list_of_paths(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("b.txt\n")
    with open(path) as file, pytest.raises(TypeError, match=rf"which is an open file; give its name, '{path}'"):
        di.data.TextLineDataset(file)
    with pytest.raises(TypeError, match="got a BytesIO, which is an open file"):
        di.data.TextLineDataset(io.BytesIO(b"b.txt"))


def test_links_to_folders_above_bring_no_file_again(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.txt").write_text("x\n")
    (tmp_path / "a" / "self").symlink_to(".")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "beside").symlink_to("a")
    for pattern in ("**", "**/*.txt", "a/**", "a/**/x.txt"):
        want = ["a/x.txt"] if pattern.startswith("a/") else ["a/x.txt", "beside/x.txt"]
        found = list_matching(f"{tmp_path}/{pattern}", folders=False)
        assert [os.path.relpath(path, tmp_path) for path in found] == want
    assert di.data.TextLineDataset(f"{tmp_path}/a/**").to_list() == [b"x"]


PATTERNS = st.lists(st.sampled_from(["**", "*", "a", "b*", "?", "x.txt", "[ab]", ".h"]), min_size=1, max_size=4)


@given(PATTERNS, st.sampled_from(["", "/"]), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_without_links_to_folders_above_it_is_pythons_glob(
    tmp_path: Path, parts: list[str], end: str, inside: bool
) -> None:
    for name in ("x.txt", "a/x.txt", "a/b/x.txt", "a/b/a/b", "bb/.h/x.txt", "bb/a/b1"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    if not (tmp_path / "bb" / "ln").exists():
        (tmp_path / "bb" / "ln").symlink_to(tmp_path / "a" / "b")
    pattern = "/".join(parts) + end
    with contextlib.chdir(tmp_path):
        pattern = pattern if inside else os.path.join(tmp_path, pattern)
        found = glob(pattern, recursive=True, include_hidden=True)
        # To Python 3.11, `x.txt/` matches `x.txt/**`, though `x.txt` is a file.
        assert set(_globbed_here(pattern)) == {path for path in found if os.path.exists(path)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.txt", "a.txt", "c.csv", ".hidden.txt", "x[1].txt", "sub/d.txt", "sub/deep/e.txt"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(name.encode())
    return tmp_path


@pytest.mark.parametrize(
    "patterns, names",
    [
        (["a.txt"], ["a.txt"]),
        (["?.txt"], ["a.txt", "b.txt"]),
        (["[ac].*"], ["a.txt", "c.csv"]),
        (["*.txt"], [".hidden.txt", "a.txt", "b.txt", "x[1].txt"]),
        (["x[1].txt"], ["x[1].txt"]),
        (["b*", "a*", "a.txt"], ["a.txt", "a.txt", "b.txt"]),  # once for each pattern, as TensorFlow 2.21 does
        (["*/*.txt"], ["sub/d.txt"]),
        (["sub/**/*.txt"], ["sub/d.txt", "sub/deep/e.txt"]),
        (["none*", "c.csv"], ["c.csv"]),
    ],
)
def test_local_patterns(folder: Path, monkeypatch: pytest.MonkeyPatch, patterns: list[str], names: list[str]) -> None:
    assert list_matching([f"{folder}/{pattern}" for pattern in patterns]) == [f"{folder}/{name}" for name in names]
    assert list_matching([f"file://{folder}/{pattern}" for pattern in patterns]) == [f"{folder}/{n}" for n in names]
    monkeypatch.chdir(folder)
    assert list_matching(patterns) == names


def test_no_match_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"No files matched pattern: .*/\*\.txt, none"):
        list_matching([f"{tmp_path}/*.txt", "none"])


@pytest.mark.parametrize("slash", ["", "/"])
def test_patterns_of_urls(slash: str) -> None:
    root = f"memory://{slash}paths"
    for name in ("b.txt", "a.txt", "sub/c.txt"):
        with Sink(f"{root}/{name}") as sink:
            sink.write(name.encode())
    assert list_matching(f"{root}/*.txt") == [f"{root}/a.txt", f"{root}/b.txt"]
    assert list_matching([f"{root}/b.txt", f"{root}/**/c.txt"]) == [f"{root}/b.txt", f"{root}/sub/c.txt"]
    assert [records(TextLines(), path) for path in list_matching(f"{root}/*.txt")] == [[b"a.txt"], [b"b.txt"]]
    assert size_of(f"{root}/a.txt") == 5
    assert read_range(f"{root}/a.txt", 1, 3) == b".t"
    with pytest.raises(NotFoundError, match="No files matched pattern: memory://"):
        list_matching(f"{root}/*.csv")


def test_an_unknown_protocol() -> None:
    with pytest.raises(InvalidArgumentError, match="cannot open 'nosuch://a'"):
        list_matching("nosuch://a")


def test_local_paths() -> None:
    assert local_path("memory://a") is None
    assert local_path("simplecache::s3://a") is None
    assert local_path("local:///a") == "/a"
    assert local_path("a::b") == "a::b"


@given(st.lists(st.lists(st.from_regex(rb"[a-z]{0,5}", fullmatch=True)), min_size=1, max_size=4))
def test_a_glob_and_a_list_give_the_same_records(files: list[list[bytes]]) -> None:
    for index in range(6):
        with Sink(f"memory://globbed/{index}.txt") as sink:
            sink.write(b"".join([line + b"\n" for line in files[index]]) if index < len(files) else b"")
    found = [line for path in list_matching("memory://globbed/*.txt") for line in records(TextLines(), path)]
    assert found == [line for lines in files for line in lines]


def test_a_missing_package_is_no_bad_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(path: str) -> Any:
        raise ImportError("install a package to read lakes")

    monkeypatch.setattr("fsspec.core.url_to_fs", without)
    with pytest.raises(
        EngineMissing,
        match=r"cannot open 'lake://a': install a package.*; `pip install 'distinput\[obstore\]'` opens s3:",
    ):
        di.data.TextLineDataset("lake://a", on_error="skip").to_list()


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text elsewhere")
@pytest.mark.parametrize("suffix", ["arrow", "csv", "jsonl", "npy", "parquet", "tfrecord", "txt"])
def test_names_that_are_no_utf8_are_read(tmp_path: Path, suffix: str) -> None:
    folder = tmp_path / os.fsdecode(b"\xe9")
    rows: Any = np.arange(5) if suffix == "npy" else {"x": np.arange(5)}
    rows = [str(row) for row in range(5)] if suffix == "txt" else rows
    di.data.Dataset.from_tensor_slices(rows).write(folder, format="text" if suffix == "txt" else suffix)
    (part,) = folder.glob(f"*.{suffix}")
    named = part.rename(folder / os.fsdecode(b"\xff." + suffix.encode()))
    for name in (named, str(named), os.fsencode(named), str(folder / f"*.{suffix}")):
        dataset = di.data.FileDataset(name)
        whole = dataset.to_list()
        assert len(whole) == 5
        assert dataset.skip(2).to_list() == whole[2:]
    listed = di.data.Dataset.list_files(str(folder / f"*.{suffix}"), shuffle=False).to_list()
    assert listed == [os.fsencode(named)]


@pytest.mark.parametrize("prefix", ["", "file://", "local://"])
def test_two_colons_in_a_local_name_are_no_chain(prefix: str, tmp_path: Path) -> None:
    (tmp_path / "a::b").mkdir()
    file = tmp_path / "a::b" / "x::y.txt"
    file.write_text("a line")
    assert list_matching(f"{prefix}{tmp_path}/a::*/x*") == [str(file)]
    with open_binary(f"{prefix}{file}") as opened:
        assert opened.read() == b"a line"


@pytest.mark.fresh_process
def test_requests_are_answered_after_a_thread_of_fsspec_that_did_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    asyn = pytest.importorskip("fsspec.asyn")
    pytest.importorskip("aiohttp")
    for name in ("loop", "iothread"):  # as in a process that has made no request
        monkeypatch.setattr(asyn, name, [None])
    monkeypatch.setattr("fsspec.implementations.http.HTTPFileSystem._cache", {})
    ThreadStarts(monkeypatch).fail(1)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        file_system("http://a.invalid/thread?first")
    assert asyn.loop == [None], "nobody would answer it"
    system, _ = file_system("http://a.invalid/thread?first")
    assert system.loop.is_running() or asyn.iothread[0].is_alive()
