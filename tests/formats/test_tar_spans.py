# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from distinput.errors import DataLossError, InvalidArgumentError
from distinput.formats.span_format import Piece
from distinput.formats.tar import TarSamples
from tests.archives import tar_bytes

CONTENT = np.frombuffer(tar_bytes({"0.cls": b"1", "1.cls": bytes(5000)}), np.uint8)


@pytest.mark.parametrize(
    "size, ended, error",
    [(None, False, None), (len(CONTENT), False, None), (None, True, DataLossError), (3000, False, DataLossError)],
)
def test_a_sample_that_goes_on_behind_a_piece(size: int | None, ended: bool, error: type[Exception] | None) -> None:
    piece = Piece("a.tar", CONTENT[:2048], 0, 0, 0, ended, size)
    starts, sizes = np.empty((2, 9), np.int64)
    found = TarSamples(members=["cls"]).find(piece, starts, sizes)
    assert (found.count, found.after, found.need) == (1, 1024, 512 + 5120 + 512)
    assert type(found.error) is (error or type(None))


def test_more_than_is_allowed() -> None:
    piece = Piece("a.tar", CONTENT[:2048], 1024, 1024, 1, False, None)
    starts, sizes = np.empty((2, 9), np.int64)
    found = TarSamples(members=["cls"], max_sample_bytes=5000).find(piece, starts, sizes)
    assert isinstance(found.error, InvalidArgumentError)
    assert "sample 1 at byte 1024 takes at least 6144 bytes, more than max_sample_bytes=5000" in str(found.error)
