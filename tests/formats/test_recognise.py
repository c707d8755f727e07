# SPDX-License-Identifier: Apache-2.0
"""Files are known by their names or their first bytes, compressed or not; what is not known is an error."""

import bz2
import gzip
import tarfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.data.file_datasets import DATASETS
from distinput.errors import DistinputError, InvalidArgumentError, NotFoundError
from distinput.formats import FORMATS
from distinput.formats.recognise import READERS, SUFFIXES, of_folder, recognise


@pytest.mark.parametrize("format", SUFFIXES)
def test_every_suffix_is_that_of_its_format(format: str, tmp_path: Path) -> None:
    assert format in FORMATS
    for suffix in SUFFIXES[format]:
        for name in (f"a{suffix}", f"A{suffix.upper()}", f"a{suffix}-00001-of-00008"):
            (tmp_path / name).write_bytes(b"")
            assert recognise([str(tmp_path / name)]).format == format


@pytest.mark.parametrize(
    "name, format, compression",
    [
        ("a.csv.gz", "csv", "GZIP"),
        ("a.jsonl.zst", "jsonl", "ZSTD"),
        ("a.tfrecord-00000-of-00002.bz2", "tfrecord", "BZ2"),
        ("a.tgz", "tar", "GZIP"),
        ("a.tar.lz4", "tar", "LZ4"),
        ("https://host/a.txt.gz?part=1", "text", "GZIP"),
    ],
)
def test_compressions_by_name(name: str, format: str, compression: str) -> None:
    found = recognise([name])  # nothing is opened where the name says all
    assert (found.format, found.compression) == (format, compression)


def test_text_may_begin_as_the_names_of_codecs_do(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("BZhang is a name\n")
    assert recognise([str(tmp_path / "a")]).format == "text"


@pytest.mark.parametrize("content", ['{\n "a": 1\n}', '[{"a": 1}]', '[\n {"a": 1}\n]\n'])
def test_json_that_is_no_json_lines_is_no_text(content: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(DistinputError, match=r"a\.json: line 1: expected an object on a line of its own.*as `jq -c"):
        di.data.FileDataset(str(tmp_path / "a.json")).to_list()
    assert di.data.FileDataset(str(tmp_path / "a.json"), "text").to_list()[0] == content.split("\n")[0].encode()


def samples(folder: Path) -> dict[str, bytes]:
    """A file of each format that has a signature."""
    di.io.write_parquet(str(folder / "parquet"), {"x": [1]})
    di.io.write_arrow(str(folder / "arrow"), {"x": [1]})
    di.io.write_arrow(str(folder / "stream"), {"x": [1]}, stream=True)
    np.save(folder / "x.npy", np.arange(3))
    np.savez(folder / "x.npz", x=np.arange(3))
    (folder / "one.txt").write_text("one")
    with tarfile.open(folder / "tar", "w") as archive:
        archive.add(folder / "one.txt", "one.txt")
    with di.io.TFRecordWriter(str(folder / "tfrecord")) as writer:
        writer.write(b"a record")
    names = {"stream": "arrow", "x.npy": "npy", "x.npz": "npz"}
    found = {
        name: (folder / name).read_bytes()
        for name in ("parquet", "arrow", "stream", "x.npy", "x.npz", "tar", "tfrecord")
    }
    return {names.get(name, name) + ("-stream" if name == "stream" else ""): data for name, data in found.items()} | {
        "jsonl": b'{"x": 1}\n{"x": 2}\n',
        "text": "ä line\nand one\n".encode(),
    }


def test_first_bytes_tell(tmp_path: Path) -> None:
    for name, content in samples(tmp_path).items():
        (tmp_path / "data").write_bytes(content)
        found = recognise([str(tmp_path / "data")])
        assert found.format == name.partition("-")[0]
        assert found.how.startswith("its first bytes")


def read_as(dataset: str) -> dict[str, Any]:
    """What a dataset needs beside the names of files."""
    return {"CsvDataset": {"record_defaults": [0]}, "AudioDataset": {"seconds": 1}, "VideoDataset": {"frames": 1}}.get(
        dataset, {}
    )


@pytest.mark.parametrize("format", sorted(set(READERS) - {"text"}))
def test_an_error_says_what_a_file_of_another_format_is(tmp_path: Path, format: str) -> None:
    _, dataset = READERS[format]
    needed = {"array_record": "array_record", "audio": "av", "video": "av"}
    if format in needed:
        pytest.importorskip(needed[format])
    contents = {**samples(tmp_path), "csv": b"a,b\n1,2\n", "mp4": b"\0\0\0\x18ftypmp42" + bytes(64)}
    for name, content in contents.items():
        path = tmp_path / ("named.csv" if name == "csv" else "named.mp4" if name == "mp4" else "data")
        path.write_bytes(content)
        told = {"mp4": "video"}.get(name, name.partition("-")[0])
        if told == format or (told in ("text", "jsonl") and format == "csv") or (told, format) == ("text", "jsonl"):
            continue
        what, other = READERS[told]
        how = "name" if name in ("csv", "mp4") else "first bytes"
        with pytest.raises((DistinputError, OSError)) as caught:
            list(getattr(di.data, dataset)(str(path), **read_as(dataset)).take(1))
        assert f"{path} is {what}, by its {how}: {other} reads it" in caught.value.__notes__, name


def test_the_dataset_of_each_format() -> None:
    for format, (_, dataset) in READERS.items():
        own = DATASETS.get(dataset)
        assert (own is None) == (format in ("csv", "tar"))
        assert own is None or own.format == format
        assert hasattr(di.data, dataset)


def test_more_that_errors_say_of_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(samples(tmp_path)["parquet"])
    (tmp_path / "b").write_bytes(gzip.compress(samples(tmp_path)["tfrecord"]))
    (tmp_path / "c.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(600))
    (tmp_path / "d").write_bytes(zlib.compress(samples(tmp_path)["tfrecord"]))
    a, b, c, d = [str(tmp_path / name) for name in ("a.csv", "b", "c.png", "d")]
    parquet = f"{a} is a Parquet file, by its first bytes: ParquetDataset reads it"
    for dataset, note in {
        di.data.FileDataset(a, "csv"): parquet,
        di.data.TFRecordDataset([b, a]): f'{b} is compressed (GZIP): give compression_type="GZIP"',
        di.data.TFRecordDataset(d): f'{d} is compressed (ZLIB): give compression_type="ZLIB"',
        di.data.TFRecordDataset(
            c
        ): f"{c} is an image: ImageFolderDataset reads folders of images, WebDataset archives of them",
        di.data.MdsDataset(a): parquet,
    }.items():
        with pytest.raises(DistinputError) as caught:
            list(dataset)
        assert note in caught.value.__notes__
    with pytest.raises(InvalidArgumentError, match="is no text in utf-8") as caught:
        di.data.experimental.make_csv_dataset(a, 2)
    assert caught.value.__notes__ == [parquet]


def test_a_damaged_file_is_not_said_to_be_another(tmp_path: Path) -> None:
    for name, content in samples(tmp_path).items():
        format = name.partition("-")[0]
        if format in ("jsonl", "text"):
            continue
        (tmp_path / "cut").write_bytes(content[:-9])
        error = None
        try:
            list(getattr(di.data, READERS[format][1])(str(tmp_path / "cut")))
        except DistinputError as raised:
            error = raised
        assert not [note for note in getattr(error, "__notes__", ()) if " reads it" in note], name


@pytest.mark.parametrize("codec, pack", [("GZIP", gzip.compress), ("BZ2", bz2.compress), ("ZLIB", zlib.compress)])
def test_compressed_files_without_a_suffix(tmp_path: Path, codec: str, pack: Any) -> None:
    for name in ("tfrecord", "tar"):
        (tmp_path / "data").write_bytes(pack(samples(tmp_path)[name]))
        (tmp_path / f"x.{name}").write_bytes(pack(samples(tmp_path)[name]))
        for path in ("data", f"x.{name}"):
            found = recognise([str(tmp_path / path)])
            assert (found.format, found.compression) == (name, codec)
            made = di.data.FileDataset(str(tmp_path / path), found.format, **found.options)
            assert len(made.to_list()) == 1


@given(st.text(min_size=1, max_size=6000).map(str.encode))
def test_any_text_is_text(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("text") / "data"
    path.write_bytes(content)
    if b"\0" in content:
        return
    found = recognise([str(path)])
    assert found.format in ("text", "jsonl")
    assert not found.options


@given(st.binary(max_size=300))
def test_anything_is_recognised_or_an_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("bytes") / "data"
    path.write_bytes(content)
    try:
        found = recognise([str(path)]).format
    except DistinputError as error:
        found = str(error)
    assert found in FORMATS or str(path) in found


def test_what_is_not_known_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "zero").write_bytes(b"\0\1\2")
    for name, says in (("empty", "is empty"), ("zero", r"begins with b'\\x00\\x01\\x02'")):
        with pytest.raises(InvalidArgumentError, match=f"{name}: {says}, and neither this nor its name tells"):
            recognise([str(tmp_path / name)])
    with pytest.raises(InvalidArgumentError, match=r"a\.csv is csv by its name, and b\.txt is text"):
        recognise(["a.csv", "b.txt"])
    with pytest.raises(InvalidArgumentError, match=r"a\.parquet\.gz: is compressed as a whole \(GZIP\)"):
        recognise(["a.parquet.gz"])
    with pytest.raises(InvalidArgumentError, match="no file was named, so its format cannot be found"):
        recognise([])
    with pytest.raises(NotFoundError):
        recognise([str(tmp_path / "nothing")])
    with pytest.raises(ValueError, match="unknown format 'nope'"):
        recognise(["a.csv"], "nope")


@pytest.mark.parametrize("begin", [b"\xff\xd8\xff\xe0", b"\x89PNG\r\n\x1a\n", b"GIF89a"])
def test_images_name_what_reads_them(tmp_path: Path, begin: bytes) -> None:
    (tmp_path / "cat").write_bytes(begin + bytes(20))
    with pytest.raises(InvalidArgumentError, match="cat: is an image; ImageFolderDataset reads folders of images"):
        di.data.FileDataset(str(tmp_path))


def test_options_go_with_what_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("x\ty\n1\t2\n")
    found = recognise([str(tmp_path / "a.tsv")])
    assert di.data.FileDataset(str(tmp_path / "a.tsv"), found.format, **found.options).to_list() == [{"x": 1, "y": 2}]
    mixed = recognise(["a.txt", "b.txt.gz"])
    assert mixed.options == {"compression_type": "AUTO"}


def test_a_table_beside_recordings_is_what_is_meant(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    di.io.write_parquet(str(tmp_path / "names.parquet"), {"x": [1]})
    assert di.data.FileDataset(str(tmp_path)).to_list() == [{"x": 1}]
    assert of_folder(["f/a.mp4", "f/notes.txt", "f/b.mp4"]) == ["f/a.mp4", "f/b.mp4"]


def test_a_compression_that_the_name_of_a_file_tells_is_not_asked_for(tmp_path: Path) -> None:
    path = str(tmp_path / "a.tar.gz")
    with tarfile.open(path, "w:gz"):
        pass
    with pytest.raises(InvalidArgumentError, match="has no sample") as caught:
        list(di.data.WebDataset(path))
    assert not any("is compressed" in note for note in caught.value.__notes__)
