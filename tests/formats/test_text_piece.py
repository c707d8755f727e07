# SPDX-License-Identifier: Apache-2.0
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from distinput.formats.text_records import Head, TextPiece


def test_a_file_without_a_header_begins_at_its_first_byte() -> None:
    assert Head() == Head(byte=0, lines=0, names=())


def test_a_piece_is_not_changed() -> None:
    piece = TextPiece("a", np.empty(0, np.uint8), 0, 0, 0, 1, 0)
    with pytest.raises(FrozenInstanceError):
        piece.row = 1  # type: ignore[misc]
