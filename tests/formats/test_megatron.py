# SPDX-License-Identifier: Apache-2.0
"""Megatron's indexed datasets, of files that are made here byte by byte."""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError, UnimplementedError
from distinput.formats.megatron import Megatron
from distinput.testing import check_format
from tests.formats.reading import records, records_until_error

CODES = {"B": 1, "b": 2, "h": 3, "i": 4, "q": 5, "d": 6, "f": 7, "H": 8}


def write(
    path: Path,
    documents: Sequence[Sequence[Sequence[Any]]],
    kind: str = "i",
    modes: Sequence[int] | None = None,
) -> str:
    """A dataset of documents of sequences, written by the rules of the layout and nothing of distinput."""
    sequences = [sequence for document in documents for sequence in document]
    data, pointers = b"", []
    for sequence in sequences:
        pointers.append(len(data))
        data += struct.pack(f"<{len(sequence)}{kind}", *sequence)
    bounds = [0]
    for document in documents:
        bounds.append(bounds[-1] + len(document))
    index = b"MMIDIDX\x00\x00" + struct.pack("<Q", 1) + struct.pack("<B", CODES[kind])
    index += struct.pack("<Q", len(sequences)) + struct.pack("<Q", len(bounds))
    index += struct.pack(f"<{len(sequences)}i", *map(len, sequences))
    index += struct.pack(f"<{len(pointers)}q", *pointers) + struct.pack(f"<{len(bounds)}q", *bounds)
    if modes is not None:
        index += struct.pack(f"<{len(modes)}b", *modes)
    path.write_bytes(data)
    path.with_suffix(".idx").write_bytes(index)
    return str(path)


MANY = [[[100 * i + j + k for k in range((i + j) % 5)] for j in range(i % 4)] for i in range(40)]
FLAT = [sequence for document in MANY for sequence in document]
JOINED = [[token for sequence in document for token in sequence] for document in MANY]


def files(folder: Path) -> list[str]:
    return [write(folder / "a.bin", MANY), write(folder / "b.bin", [[[7]]]), write(folder / "c.bin", [])]


def few(folder: Path) -> list[str]:
    """Twelve documents, of none to three sequences, and files of one and of none."""
    paths = files(folder)
    write(folder / "a.bin", MANY[:12])
    return paths


def test_all_laws_of_formats() -> None:
    sequences = [sequence for document in MANY[:12] for sequence in document]
    checked = check_format(Megatron(), few, [sequences, [[7]], []])
    assert {"positions", "seek", "fetch", "parts", "damage", "missing file", "dataset"} <= set(checked)


def test_all_laws_of_formats_for_documents() -> None:
    check_format(Megatron(documents=True), few, [JOINED[:12], [[7]], []])


@pytest.mark.parametrize("kind", CODES)
def test_tokens_of_every_dtype_are_read(tmp_path: Path, kind: str) -> None:
    made = di.data.MegatronDataset(write(tmp_path / "a.bin", [[[1, 2], [], [3]]], kind))
    assert made.element_spec == di.TensorSpec([None], np.dtype(kind))
    assert made.to_list() == [[1, 2], [], [3]]


def test_records_by_position(tmp_path: Path) -> None:
    made = di.data.MegatronDataset(files(tmp_path))
    everything = [*FLAT, [7]]
    assert len(made) == len(everything)
    assert [made[i].tolist() for i in (3, 0, len(everything) - 1)] == [everything[3], everything[0], [7]]
    assert sorted(made.global_shuffle(seed=1).to_list()) == sorted(everything)
    assert made.skip(30).take(2).to_list() == everything[30:32]
    assert [made.shard(3, i).to_list() for i in range(3)] == [everything[i::3] for i in range(3)]
    assert made.ragged_batch(len(everything)).to_list() == [everything]


def test_a_folder_is_its_files_of_tokens(tmp_path: Path) -> None:
    write(tmp_path / "a.bin", [[[1]]])
    write(tmp_path / "b.bin", [[[2], [3]]])
    (tmp_path / "README.md").write_text("notes")
    assert di.data.MegatronDataset(str(tmp_path)).to_list() == [[1], [2], [3]]
    (tmp_path / "a.bin").rename(tmp_path / "a.BIN")
    assert di.data.MegatronDataset(str(tmp_path)).to_list() == [[1], [2], [3]]


def test_the_modes_of_sequences_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.bin", [[[1, 2], [3]], [[4]]], modes=[0, 1, -1])
    assert di.data.MegatronDataset(path, multimodal=True).to_list() == [([1, 2], 0), ([3], 1), ([4], -1)]
    assert di.data.MegatronDataset(path).to_list() == [[1, 2], [3], [4]]
    check_format(Megatron(multimodal=True), [path], [[([1, 2], 0), ([3], 1), ([4], -1)]])
    with pytest.raises(
        InvalidArgumentError, match=r"b\.idx: has no modes of sequences; read it without multimodal=True"
    ):
        di.data.MegatronDataset(write(tmp_path / "b.bin", [[[1]]]), multimodal=True).to_list()
    with pytest.raises(InvalidArgumentError, match="give one of documents and multimodal"):
        di.data.MegatronDataset(path, documents=True, multimodal=True)


def test_blocks_hold_a_bounded_number_of_bytes(tmp_path: Path) -> None:
    long = np.arange(1 << 20, dtype="<i4")
    path = write(tmp_path / "a.bin", [[[1], [2]]])
    Path(path).write_bytes(long.tobytes())
    index = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 4, 9, 2)
    index += struct.pack("<9i", *[1 << 20] * 9) + struct.pack("<9q", *[0] * 9) + struct.pack("<2q", 0, 9)
    Path(path).with_suffix(".idx").write_bytes(index)
    blocks = [block for block, _ in Megatron().read(path)]
    assert [block.size for block in blocks] == [1] * 9
    assert all((row == long).all() for block in blocks for row in block.elements())


HEAD = 9 + 8 + 1 + 8 + 8


def forged(at: int, form: str, value: int) -> Any:
    def change(index: bytearray) -> bytes:
        struct.pack_into(form, index, at, value)
        return bytes(index)

    return change


@pytest.mark.parametrize(
    "change, error, message",
    [
        (lambda index: b"", DataLossError, r"begins with b''"),
        (lambda index: b"MMIDIDX\0\0" + bytes(3), DataLossError, "has 12 bytes, and its header alone takes 34"),
        (lambda index: b"TNTIDX\0\0" + bytes(80), UnimplementedError, "the older kind that is not mapped"),
        (forged(9, "<Q", 2), UnimplementedError, "is of version 2"),
        (forged(17, "<B", 9), DataLossError, "byte 17: 9 stands for no dtype"),
        (forged(18, "<Q", 2**64 - 1), DataLossError, "18446744073709551615 sequences and 3 entries of documents take"),
        (forged(26, "<Q", 2**63), DataLossError, "9223372036854775808 entries of documents take"),
        (forged(26, "<Q", 0), DataLossError, "has 82 bytes"),
        (lambda index: bytes(index[:-1]), DataLossError, "has 81 bytes"),
        (lambda index: bytes(index + b"x"), DataLossError, "has 83 bytes"),
        (forged(HEAD, "<i", -1), DataLossError, "sequence 0 of 2 is -1 tokens"),
        (forged(HEAD, "<i", 2**31 - 1), DataLossError, "sequence 0 of 2 is 2147483647 tokens of int32 from byte 0"),
        (forged(HEAD + 8, "<q", -4), DataLossError, "from byte -4 on"),
        (
            forged(HEAD + 16, "<q", 2**63 - 1),
            DataLossError,
            "sequence 1 of 2 is 1 tokens of int32 from byte 9223372036854775807",
        ),
        (forged(HEAD + 24, "<q", 1), DataLossError, "the documents do not go in order from sequence 0 to 2"),
        (forged(HEAD + 32, "<q", 3), DataLossError, "the documents do not go in order"),
        (forged(HEAD + 40, "<q", 1), DataLossError, "the documents do not go in order"),
    ],
)
def test_forged_indices_are_refused(tmp_path: Path, change: Any, error: type[Exception], message: str) -> None:
    path = Path(write(tmp_path / "a.bin", [[[1, 2]], [[3]]]))
    index = path.with_suffix(".idx")
    assert len(index.read_bytes()) == HEAD + 2 * 12 + 3 * 8
    index.write_bytes(change(bytearray(index.read_bytes())))
    for options in ({}, {"documents": True}):
        with pytest.raises(error, match=message) as caught:
            records(Megatron(**options), path)
        assert "a.idx" in str(caught.value)


def test_missing_and_cut_files(tmp_path: Path) -> None:
    path = Path(write(tmp_path / "a.bin", [[[1, 2]], [[3]]]))
    path.write_bytes(path.read_bytes()[:-1])
    found, error = records_until_error(Megatron(), path)
    assert found == []
    assert isinstance(error, DataLossError)
    assert "has 11 bytes" in str(error)
    assert "one of them was cut short" in str(error)
    path.with_suffix(".idx").unlink()
    with pytest.raises(NotFoundError, match=r"a\.idx"):
        records(Megatron(), path)
    write(tmp_path / "b.bin", [])
    with pytest.raises(InvalidArgumentError, match=r"this is an index; name the file of tokens, .*/b\.bin"):
        records(Megatron(), tmp_path / "b.idx")


def test_documents_whose_sequences_lie_apart(tmp_path: Path) -> None:
    path = Path(write(tmp_path / "a.bin", [[[1], [2]], [[3]]]))
    index = bytearray(path.with_suffix(".idx").read_bytes())
    struct.pack_into("<3q", index, HEAD + 12, 8, 0, 4)
    path.with_suffix(".idx").write_bytes(index)
    assert records(Megatron(), path) == [[3], [1], [2]]
    with pytest.raises(UnimplementedError, match=r"a\.idx: sequence 1 does not follow sequence 0"):
        records(Megatron(documents=True), path)


def test_a_restart_goes_on_where_it_stood(tmp_path: Path) -> None:
    paths = files(tmp_path)
    want = di.data.MegatronDataset(paths).global_shuffle(seed=3).to_list()
    made = di.data.MegatronDataset(paths).global_shuffle(seed=3)
    iterator = iter(made)
    begun = [next(iterator).tolist() for _ in range(20)]
    after = iter(made)
    after.load_state_dict(iterator.state_dict())
    assert begun + [row.tolist() for row in after] == want


@pytest.mark.parametrize("kind", CODES)
def test_written_files_have_the_bytes_of_the_layout(tmp_path: Path, kind: str) -> None:
    small = [[[token % 128 for token in sequence] for sequence in document] for document in MANY]
    want = Path(write(tmp_path / "want.bin", small, kind))
    assert di.io.write_megatron(tmp_path / "a.bin", small, dtype=np.dtype(kind), documents=True) == len(FLAT)
    assert (tmp_path / "a.bin").read_bytes() == want.read_bytes()
    assert (tmp_path / "a.idx").read_bytes() == want.with_suffix(".idx").read_bytes()


def test_written_bytes_are_these(tmp_path: Path) -> None:
    assert di.io.write_megatron(tmp_path / "a.bin", [[1, 2], [3]], dtype="uint16") == 2
    assert (tmp_path / "a.bin").read_bytes().hex() == "010002000300"
    assert (tmp_path / "a.idx").read_bytes().hex() == (
        "4d4d49444944580000"
        "0100000000000000"
        "08"
        "0200000000000000"
        "0300000000000000"
        "0200000001000000"
        "00000000000000000400000000000000"
        "000000000000000001000000000000000200000000000000"
    )


def test_modes_are_written(tmp_path: Path) -> None:
    want = Path(write(tmp_path / "want.bin", [[[1, 2]], [[3]]], modes=[0, -1]))
    di.io.write_megatron(tmp_path / "a.bin", di.data.MegatronDataset(str(want), multimodal=True), multimodal=True)
    assert (tmp_path / "a.idx").read_bytes() == want.with_suffix(".idx").read_bytes()
    with pytest.raises(InvalidArgumentError, match="sequence 0: its mode must be an int8, got 128"):
        di.io.write_megatron(tmp_path / "b.bin", [([1], 128)], multimodal=True)


@pytest.mark.parametrize(
    "sequences, options, message",
    [
        ([[1], [65536]], {"dtype": "uint16"}, "sequence 1 holds 65536, which is no uint16"),
        ([[-1]], {"dtype": "uint8"}, "sequence 0 holds -1, which is no uint8"),
        ([[1.5]], {}, r"sequence 0 holds 1\.5, which is no int32"),
        ([[float("nan")]], {}, "sequence 0 holds nan, which is no int32"),
        ([3], {}, r"must be an array of numbers \[length\], got int64\[\]"),
        ([([1, 2], 3)], {}, r"sequence 0 must be an array of numbers \[length\], got object\[2\]"),
        ([3], {"documents": True}, "document 0 must be a list of sequences, got 3"),
        (
            [[1, 2, 3]],
            {"multimodal": True},
            r"sequence 0: must be a pair of an array \[length\] and its mode, got \[1, 2, 3\]",
        ),
        ([3], {"multimodal": True}, "sequence 0: must be a pair of an array"),
        ([([1], 0), ([1], None)], {"multimodal": True}, "sequence 1: its mode must be an int8, got None"),
        ([([1], "a")], {"multimodal": True}, "its mode must be an int8, got 'a'"),
        ([([1], [0, [1]])], {"multimodal": True}, "its mode must be an int8, got"),
        ([([1], float("nan"))], {"multimodal": True}, "its mode must be an int8, got nan"),
        ([["a"]], {}, "must be an array of numbers"),
        ([], {"dtype": "uint32"}, "dtype must be one of uint8, .*, got uint32"),
    ],
)
def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, sequences: Any, options: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        di.io.write_megatron(tmp_path / "a.bin", sequences, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_writing_that_fails_leaves_the_older_files(tmp_path: Path) -> None:
    di.io.write_megatron(tmp_path / "a.bin", [[1]])
    with pytest.raises(InvalidArgumentError, match="which is no int32"):
        di.io.write_megatron(tmp_path / "a.bin", [[2], [2**40]])
    assert records(Megatron(), tmp_path / "a.bin") == [[1]]
    assert di.io.write_megatron(tmp_path / "a.bin", []) == 0
    assert records(Megatron(), tmp_path / "a.bin") == []
    with pytest.raises(InvalidArgumentError, match=r"must end in \.bin"):
        di.io.write_megatron(tmp_path / "a", [[1]])


def test_files_of_a_store() -> None:
    assert di.io.write_megatron("memory://corpus/a.bin", MANY, documents=True) == len(FLAT)
    assert di.io.write_megatron("memory://corpus/a.bin", MANY[:30], documents=True) < len(FLAT)
    made = di.data.MegatronDataset("memory://corpus/", documents=True)
    assert made.to_list() == JOINED[:30]
    assert [row.tolist() for row in made[[29, 2]]] == [JOINED[29], JOINED[2]]
