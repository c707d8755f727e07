# SPDX-License-Identifier: Apache-2.0
"""Tar archives with an index."""

from pathlib import Path

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.formats.tar import IndexedTarSamples
from distinput.testing import check_format
from tests.archives import FORMATS, tar_bytes, write_tar
from tests.formats.reading import check_positions, plain, small_pieces

SAMPLES = [{"__key__": b"train/%d" % i, "cls": b"%d" % i, "jpg": b"j" * (300 * i % 1700)} for i in range(7)]


def files_of(samples: list[dict[str, bytes]]) -> list[tuple[str, bytes]]:
    return [
        (f"{sample['__key__'].decode()}.{name}", content)
        for sample in samples
        for name, content in sample.items()
        if name != "__key__"
    ]


@pytest.mark.parametrize("format", FORMATS)
def test_samples_are_counted_and_fetched(tmp_path: Path, format: int) -> None:
    ignored = [("__meta__", b"x"), (".hidden", b"y")]
    path = tmp_path / "a.tar"
    path.write_bytes(tar_bytes([*ignored, *files_of(SAMPLES[:3]), *ignored, *files_of(SAMPLES[3:]), *ignored], format))
    made = IndexedTarSamples()
    with small_pieces(700, 2):
        check_positions(made, path, SAMPLES)
    assert made.rows(str(path)) == 7
    found = made.fetch(str(path), np.array([5, 0, 6, 1, 1]))
    assert [plain(sample) for sample in found.elements()] == [SAMPLES[row] for row in (5, 0, 6, 1, 1)]
    part = made.read_fragment(made.part(str(path), 2, 5))
    assert [plain(sample) for block, _ in part for sample in block.elements()] == SAMPLES[2:5]


def test_the_laws_of_formats(tmp_path: Path) -> None:
    def write(folder: Path) -> list[str]:
        return [write_tar(folder / f"{number}.tar", files_of(SAMPLES[:number])) for number in (2, 1)]

    assert "fetch" in check_format(IndexedTarSamples(), write, [SAMPLES[:2], SAMPLES[:1]])


def test_samples_in_any_order(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", files_of(SAMPLES))
    ds = di.data.FileDataset(path, "tar", index=True, members=["cls"])
    assert (len(ds), ds[4]) == (7, {"cls": b"4"})
    assert sorted(int(sample["cls"]) for sample in ds.global_shuffle(seed=2)) == list(range(7))


def test_a_sample_that_lacks_a_member_is_named(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", [*files_of(SAMPLES[:3]), ("train/3.cls", b"3")])
    ds = di.data.FileDataset(path, "tar", index=True, members=["cls", "jpg"])
    with pytest.raises(InvalidArgumentError, match="jpg") as caught:
        ds[3]
    assert f"sample 3 of {path}" in str(caught.value.__notes__)
