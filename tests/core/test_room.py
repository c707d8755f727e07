# SPDX-License-Identifier: Apache-2.0
from distinput.core.room import Room, cores


def test_a_single_piece_may_take_more_than_all_together() -> None:
    room = Room(pieces=2, nbytes=10)
    assert room.enter(99)
    assert not room.enter(1)
    room.leave(99)
    assert room.enter(9)
    assert not room.enter(2)
    assert room.enter(1)


def test_there_are_so_many_pieces_at_most() -> None:
    room = Room(pieces=2, nbytes=10)
    assert [room.enter(0) for _ in range(3)] == [True, True, False]
    room.leave(0)
    assert room.enter(0)


def test_there_is_a_core() -> None:
    assert cores() >= 1
