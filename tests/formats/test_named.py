# SPDX-License-Identifier: Apache-2.0
"""Formats by name."""

import pytest

import distinput as di
from distinput.formats import FORMATS, format_named


def test_every_format_with_an_index_has_one_without() -> None:
    indexed = [name.removeprefix("indexed_") for name in FORMATS if name.startswith("indexed_")]
    assert indexed
    assert set(indexed) <= set(FORMATS)
    assert [format_named(name, True).index_folder for name in indexed] == [None] * len(indexed)


def test_a_format_without_index() -> None:
    with pytest.raises(ValueError, match=r"npy: files of this format have no index; there is one for .*text, tfrecord"):
        di.data.FileDataset("a.npy", "npy", index=True)
    with pytest.raises(ValueError, match="unknown format 'nothing'"):
        format_named("nothing", True)
    with pytest.raises(TypeError, match="text was given with its options, got index beside it"):
        di.data.FileDataset("a", format_named("text"), index=True)
