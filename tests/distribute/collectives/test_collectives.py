# SPDX-License-Identifier: Apache-2.0
"""How large arrays are cut, and what a group says of itself."""

import math

from hypothesis import given
from hypothesis import strategies as st

from distinput.distribute.collectives.collectives import _pieces


@given(st.integers(0, 100), st.integers(1, 20), st.sampled_from([1, 2, 8]))
def test_pieces_cover_everything_once(items: int, limit: int, item: int) -> None:
    pieces = list(_pieces(items * item, limit, item))
    assert [i for piece in pieces for i in range(items)[piece]] == list(range(items))
    assert all((piece.stop - piece.start) * item <= max(limit, item) for piece in pieces)
    assert len(pieces) <= math.ceil(items / max(1, limit // item))
