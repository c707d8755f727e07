# SPDX-License-Identifier: Apache-2.0
"""`NumpyIterator`: elements, and positions as bytes."""

import pytest

import distinput as di
from distinput.errors import StateError

SHUFFLED = di.data.Dataset.range(9).shuffle(4, seed=1)


def test_a_position_is_saved_and_restored() -> None:
    it = di.data.NumpyIterator(SHUFFLED)
    assert it.element_spec == di.TensorSpec([], "int64")
    _, saved = next(it), it.save()
    rest = list(it)
    it.restore(saved)
    assert list(it) == rest
    with pytest.raises(StopIteration):
        it.next()
    other = di.data.NumpyIterator(SHUFFLED)
    other.restore(saved)
    assert [other.next(), *other] == rest


def test_what_is_refused() -> None:
    with pytest.raises(TypeError, match="NumpyIterator: expected a dataset, got 3"):
        di.data.NumpyIterator(3)  # type: ignore[arg-type]
    it = di.data.NumpyIterator(SHUFFLED)
    with pytest.raises(StateError, match="NumpyIterator: the state must be bytes that save returned, got b'zzz'"):
        it.restore(b"zzz")
    with pytest.raises(StateError):
        it.restore(di.data.NumpyIterator(SHUFFLED.batch(2)).save())
