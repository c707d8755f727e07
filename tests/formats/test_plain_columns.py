# SPDX-License-Identifier: Apache-2.0
import numpy as np

from distinput.formats.text_table import PlainColumns
from distinput.kernels.plain_csv import INT32, LEFT_OUT, TEXT
from distinput.kernels.plain_json import TRUTH


def test_columns_lie_one_behind_the_other_at_multiples_of_eight() -> None:
    room = PlainColumns([TRUTH, LEFT_OUT, INT32, TEXT], 3)
    assert (room.places, room.out.size) == ([0, 8, 8, 24], 72)
    room.out[:3] = [1, 0, 1]
    room.out[8:20].view(np.int32)[:] = [1, -2, 3]
    room.out[24:].view(np.int64)[:] = [4, 0, 2, 1, 2, 0]
    text = np.frombuffer(b"ab  c", np.uint8)
    truth, left_out, whole, words = (
        None if column is None else column.whole().tolist()  # type: ignore[attr-defined]
        for column in room.made(text)
    )
    assert (truth, left_out, whole, words) == ([True, False, True], None, [1, -2, 3], [b"c", b"ab", b""])
