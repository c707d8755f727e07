# SPDX-License-Identifier: Apache-2.0
"""Orders of the chips of a mesh in which each chip is a neighbour of the next, and the last one of the first."""

__all__ = ["Coordinates", "ring"]

Coordinates = tuple[int, int, int]


def ring(x: int, y: int, z: int) -> list[Coordinates]:
    """The chips of an x * y * z mesh in the order of a ring that begins at (0, 0, 0).

    Each layer is a snake over all columns but the first, which leads back. Layers are run through in turns forwards and
    backwards without their corner; the corners lead back from the last layer. There is no such ring if a size above 1 is
    odd: then the order is row by row.

    >>> ring(3, 1, 1)
    [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    >>> [(x, y) for x, y, _ in ring(2, 4, 1)]
    [(0, 0), (1, 0), (1, 1), (1, 2), (1, 3), (0, 3), (0, 2), (0, 1)]

    Source: the ring order of `tf.tpu.experimental.DeviceAssignment.build`.
    """
    sizes = x, y, z
    long = [axis for axis, size in enumerate(sizes) if size > 1]
    if len(long) <= 1 or any(sizes[axis] % 2 for axis in long):
        return [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
    if len(long) == 2:
        first, second = long
        flat = [(0, 0), *_open_ring(sizes[first], sizes[second])]
        return [_place({first: i, second: j}) for i, j in flat]
    made: list[Coordinates] = [(0, 0, 0)]
    for k in range(z):
        layer = [(i, j, k) for i, j in _open_ring(x, y)]
        made += layer if k % 2 == 0 else layer[::-1]
    return made + [(0, 0, k) for k in range(z - 1, 0, -1)]


def _open_ring(x: int, y: int) -> list[tuple[int, int]]:
    """A ring over an x * y layer without its corner (0, 0)."""
    made: list[tuple[int, int]] = []
    for j in range(y):
        columns = range(1, x) if j % 2 == 0 else range(x - 1, 0, -1)
        made += [(i, j) for i in columns]
    return made + [(0, j) for j in range(y - 1, 0, -1)]


def _place(coordinates: dict[int, int]) -> Coordinates:
    return coordinates.get(0, 0), coordinates.get(1, 0), coordinates.get(2, 0)
