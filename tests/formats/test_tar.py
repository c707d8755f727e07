# SPDX-License-Identifier: Apache-2.0
import gzip
import io
import os
import pickle
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.errors import DataLossError, DistinputError, InvalidArgumentError, UnimplementedError
from distinput.formats.tar import TarSamples
from distinput.testing import check_format
from tests.archives import FORMATS, strange_archive, tar_bytes, write_tar
from tests.formats.reading import check_positions, records, records_until_error, small_pieces


def files_of(samples: list[dict[str, bytes]]) -> list[tuple[str, bytes]]:
    return [
        (f"{sample['__key__'].decode()}.{name}", content)
        for sample in samples
        for name, content in sample.items()
        if name != "__key__"
    ]


SAMPLES = [{"__key__": b"train/%d" % i, "cls": b"%d" % i, "jpg": b"j" * (300 * i % 1700)} for i in range(7)]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_samples_from_every_position(tmp_path: Path, format: int, compression: str | None) -> None:
    content = tar_bytes(files_of(SAMPLES), format)
    (tmp_path / "a.tar").write_bytes(gzip.compress(content) if compression else content)
    with small_pieces(700, 2):
        check_positions(TarSamples(compression_type=compression), tmp_path / "a.tar", SAMPLES)


def test_suffixes_tell_the_compression(tmp_path: Path) -> None:
    for name, content in (
        ("a.tar", tar_bytes(files_of(SAMPLES))),
        ("a.tgz", gzip.compress(tar_bytes(files_of(SAMPLES)))),
    ):
        (tmp_path / name).write_bytes(content)
        with small_pieces(700, 2):
            check_positions(TarSamples(), tmp_path / name, SAMPLES)
            positions = [position for _, position in TarSamples().read(str(tmp_path / name))]
        assert all(("byte" in position) == (name == "a.tar") for position in positions)


def test_all_laws_of_formats(tmp_path: Path) -> None:
    def write(folder: Path) -> list[str]:
        return [write_tar(folder / f"{number}.tar", files_of(SAMPLES[:number])) for number in (2, 1, 0)]

    with small_pieces(700, 2):
        check_format(TarSamples(), write, [SAMPLES[:2], SAMPLES[:1], []])


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**9), chunk=st.sampled_from([1, 300, 512, 5000]))
def test_pieces_do_not_matter(seed: int, chunk: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("tar") / "a.tar"
    path.write_bytes(strange_archive(seed))
    format = TarSamples(members=["__key__", "cls", "jpg"], missing="empty")
    whole, error = records_until_error(format, path)
    with small_pieces(chunk, 2):
        found, other = records_until_error(format, path)
    assert found == whole
    assert type(error) is type(other)
    assert error is None or (isinstance(error, DistinputError) and str(path) in str(error))


def test_members_may_be_named(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", {"0.jpg": b"j", "0.cls": b"1", "1.PNG": b"p", "1.cls": b"2", "1.txt": b"?"})
    assert records(TarSamples(members=["cls"]), path) == [{"cls": b"1"}, {"cls": b"2"}]
    format = TarSamples(members={"image": "jpg;png", "from": "__url__", "whole": "__complete__"})
    url = path.encode()
    assert records(format, path) == [
        {"image": b"j", "from": url, "whole": True},
        {"image": b"p", "from": url, "whole": True},
    ]


def test_what_takes_the_place_of_missing_members(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", {"0.cls": b"1", "0.txt": b"a", "1.txt": b"b", "2.cls": b"3", "2.txt": b"c"})
    members = ["cls", "txt", "__complete__"]
    for missing, expected in (("empty", b""), ({"cls": b"-1", "txt": b""}, b"-1"), ({"cls": b""}, b"")):
        found = records(TarSamples(members=members, missing=missing), path)
        assert [(row["cls"], row["__complete__"]) for row in found] == [(b"1", True), (expected, False), (b"3", True)]


@pytest.mark.parametrize(
    "files, good, error, says",
    [
        (
            [("0.cls", b"1"), ("0.jpg", b"j"), ("x/1.jpg", b"j")],
            1,
            InvalidArgumentError,
            r"sample 1, 'x/1', has no member 'cls'; leave such samples out with missing='skip'",
        ),
        (
            [("0.cls", b"1"), ("1.cls", b"1"), ("1.txt", b"j")],
            1,
            InvalidArgumentError,
            r"sample 1 has the file '1.txt', which the first sample has not; state the members",
        ),
        (
            [("0.cls", b"1"), ("0.cls", b"1")],
            0,
            DataLossError,
            "sample 0 has two files of one member, the second '0.cls'",
        ),
        (
            [("0.cls", b"1"), ("/etc/passwd", b"")],
            0,
            DataLossError,
            "the name '/etc/passwd' is empty, begins with a slash",
        ),
        ([("0.cls", b"1"), ("1.cls", b""), ("../1.cls", b"")], 1, DataLossError, r"the name '\.\./1\.cls' is empty"),
    ],
)
def test_what_is_wrong_names_the_archive_and_the_sample(
    tmp_path: Path, files: Any, good: int, error: type[Exception], says: str
) -> None:
    path = write_tar(tmp_path / "a.tar", files)
    found, raised = records_until_error(TarSamples(), path)
    assert len(found) == good
    assert isinstance(raised, error)
    with pytest.raises(error, match=f"^{path}: .*{says}"):
        raise raised


def test_archives_that_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    whole = tar_bytes({"0.cls": b"1", "1.cls": b"2"})
    for content, error, says in (
        (b"", DataLossError, "ends within sample 0 at byte 0, which needs at least 512 bytes"),
        (whole[:2048], DataLossError, "ends within sample 1 at byte 1024, .* it was cut short"),
        (gzip.compress(whole), DataLossError, "is its compression_type right?"),
        (
            whole + whole,
            DataLossError,
            "sample 2, header at byte 10240: it is behind the end of the archive; `tar --conc",
        ),
    ):
        path.write_bytes(content)
        with pytest.raises(error, match=says):
            records(TarSamples(), path)
    path.write_bytes(tar_bytes({}))
    with pytest.raises(InvalidArgumentError, match="has no sample, so its members are not known"):
        TarSamples().spec(str(path))
    assert records(TarSamples(), path) == []


def test_a_sparse_file_is_refused(tmp_path: Path) -> None:
    with open(tmp_path / "0.bin", "wb") as file:
        file.seek(1 << 20)
        file.write(b"end")
    for format in ("gnu", "posix"):
        made = ["tar", "-cSf", str(tmp_path / "a.tar"), f"--format={format}", "-C", str(tmp_path), "0.bin"]
        if subprocess.run(made, capture_output=True, check=False).returncode:
            pytest.skip("needs GNU tar")
        with pytest.raises(UnimplementedError, match="is a sparse file"):
            records(TarSamples(), tmp_path / "a.tar")


def test_a_sample_may_not_take_all_memory(tmp_path: Path) -> None:
    content = gzip.compress(tar_bytes({"0.cls": b"1", "1.bin": bytes(1 << 20)}))
    path = tmp_path / "a.tar.gz"
    path.write_bytes(content)
    format = TarSamples(members=["cls"], compression_type="GZIP", max_sample_bytes=100_000, missing="empty")
    with pytest.raises(
        InvalidArgumentError, match=r"takes at least \d+ bytes, more than max_sample_bytes=100000; allow"
    ):
        records(format, path)


@pytest.mark.parametrize(
    "options, says",
    [
        ({"members": "jpg"}, "members must be names, or a dict"),
        ({"members": ["a", "a"]}, "member 'a' is named twice"),
        ({"members": {"a": "jpg;png", "b": "PNG"}}, "extension 'png' is named twice"),
        ({"missing": "skip"}, "missing must be"),
        ({"missing": {"jpg": b""}}, "missing names 'jpg'; name it in members= too"),
        ({"members": ["jpg"], "missing": {"jpg": 1}}, "must give bytes for member 'jpg', got 1"),
        ({"max_sample_bytes": 0}, "max_sample_bytes must be at least 1"),
        ({"also": ("jpg",)}, "also= may name __key__"),
        ({"compression_type": "LZ9"}, "LZ9"),
    ],
)
def test_options_are_checked(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        TarSamples(**options)


def test_a_format_with_options_is_a_value() -> None:
    format = TarSamples(members={"image": "jpg;png"}, missing={"image": b""})
    assert pickle.loads(pickle.dumps(format)) == format
    assert hash(format) == hash(TarSamples(members={"image": "jpg;png"}, missing={"image": b""}))


def grouped(path: str) -> list[dict[str, Any]]:
    """What the library webdataset makes of an archive; its own way to open one does not close it."""
    from webdataset.tariterators import group_by_keys, tar_file_expander

    with open(path, "rb") as stream:
        return list(group_by_keys(tar_file_expander([{"url": path, "stream": stream}])))


def test_samples_as_the_library_webdataset_writes_and_reads_them(tmp_path: Path) -> None:
    webdataset = pytest.importorskip("webdataset")
    path = str(tmp_path / "a.tar")
    with webdataset.TarWriter(path) as writer:
        for i in range(40):
            key = f"train/{i:03d}" if i % 2 else f"{'deep/' * (5 * i)}{i}"  # long names have headers of their own
            writer.write(
                {"__key__": key, "cls": i, "JSON": {"a": i}, "seg.png": os.urandom(i * 40), "txt": "caf\u00e9"}
            )
    theirs = grouped(path)
    expected = [
        {name: value.encode() if name == "__key__" else value for name, value in sample.items() if name in names}
        for sample in theirs
        for names in [("__key__", "cls", "json", "seg.png", "txt")]
    ]
    assert len(expected) == 40
    assert di.data.FileDataset(path, "tar").to_list() == expected
    files = {
        "a/b.c/0.x": b"1",
        "a/b.c/0.y.z": b"2",
        "./0.x": b"3",
        "./0.y.z": b"4",
        "__m__/0.x": b"0",
        "1.x": b"5",
        "1.y.Z": b"",
    }
    write_tar(path, files)
    theirs = grouped(path)
    ours = di.data.FileDataset(path, "tar").to_list()
    assert [[each["__key__"].encode(), each["x"], each["y.z"]] for each in theirs] == [
        list(each.values()) for each in ours
    ]


@pytest.mark.parametrize("reads", [None, 1, 2])
def test_an_archive_without_samples_among_others(tmp_path: Path, reads: int | None) -> None:
    paths = [write_tar(tmp_path / f"{number}.tar", files_of(SAMPLES[:number])) for number in (0, 2, 0, 1)]
    ds = di.data.WebDataset(paths, num_parallel_reads=reads)
    assert len(ds.to_list()) == 3
    assert ds.shuffle(2, seed=1).batch(2).element_spec["cls"].shape == (None,)


@pytest.mark.parametrize(
    "names",
    [
        ["a.jpg", "b.jpg", "a.cls", "b.cls"],
        ["a.jpg", "b.jpg", "b.cls", "a.cls"],
        ["c.jpg", "c.cls", "a.jpg", "b.cls", "b.jpg", "a.cls"],
        [f"{key}.{kind}" for kind in ("jpg", "cls") for key in range(500)],
    ],
)
@pytest.mark.parametrize("missing", ["error", "skip", {"cls": b"", "jpg": b""}])
def test_a_key_that_comes_again_is_noticed(names: list[str], missing: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "a.tar")
    with tarfile.open(path, "w") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 1
            archive.addfile(member, io.BytesIO(b"x"))
    dataset = di.data.WebDataset(path, members=["jpg", "cls"], missing=missing)
    with pytest.raises(InvalidArgumentError, match=r"a\.tar: the key '(a|0)' comes again: .*tar --sort=name") as error:
        list(dataset)
    assert "missing=" not in str(error.value)
    with pytest.raises(InvalidArgumentError, match=r"the key '(a|0)' comes again"):
        list(di.data.WebDataset(path))
    with tarfile.open(path, "w") as archive:
        for name in sorted(names):
            member = tarfile.TarInfo(name)
            member.size = 1
            archive.addfile(member, io.BytesIO(b"x"))
    assert len(dataset.to_list()) == len(names) // 2


def test_samples_that_lack_a_member_are_left_out_as_before(tmp_path: Path) -> None:
    path = str(tmp_path / "a.tar")
    with tarfile.open(path, "w") as archive:
        for name in ("a.jpg", "b.jpg", "b.cls", "c.cls"):
            archive.addfile(tarfile.TarInfo(name))
    assert len(di.data.WebDataset(path, members=["jpg", "cls"], missing="skip").to_list()) == 1
    with pytest.raises(
        InvalidArgumentError, match="sample 0, 'a', has no member 'cls'; leave such samples out with missing='skip'"
    ):
        di.data.WebDataset(path, members=["jpg", "cls"]).to_list()
