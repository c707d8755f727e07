# SPDX-License-Identifier: Apache-2.0
"""bfloat16 and the float8 types, as TensorFlow's: padding, zeros and carried values were errors of NumPy's constructors."""

import json
from pathlib import Path

import numpy as np
import pytest

import distinput as di

ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed: make test")

D = di.data.Dataset
NAMES = ["bfloat16", "float8_e4m3fn", "float8_e5m2"]


@pytest.mark.parametrize("name", NAMES)
def test_they_are_padded(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    spec = di.TensorSpec([None], dtype)
    lists = D.from_generator(lambda: iter([[1], [2, 3]]), output_signature=spec)
    (zeros,) = lists.padded_batch(2)
    (halves,) = lists.padded_batch(2, padding_values=0.5)
    assert (zeros.dtype, zeros.tolist()) == (dtype, [[1, 0], [2, 3]])
    assert (halves.dtype, halves.tolist()) == (dtype, [[1, 0.5], [2, 3]])
    assert D.from_tensor_slices(np.ones(3, dtype)).padded_batch(2).to_list() == [[1, 1], [1]]
    padded = D.from_tensor_slices({"a": np.ones(1, dtype)}).apply(di.data.experimental.pad_to_cardinality(2))
    assert [row["a"] for row in padded] == [1, 0]
    with pytest.raises(TypeError, match=f"must have its dtype {name}, got bool"):
        lists.padded_batch(2, padding_values=np.True_)


@pytest.mark.parametrize("name", NAMES)
def test_they_are_carried(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    values = D.from_tensor_slices(np.array([1, 2, 0.5], dtype))
    sums = values.scan(np.zeros((), dtype)[()], lambda s, x: (s + x, (s, x)))
    assert [(float(s), float(x)) for s, x in sums] == [(0, 1), (1, 2), (3, 0.5)]
    iterator = iter(sums)
    next(iterator)
    state = json.loads(json.dumps(iterator.state()))
    assert [float(s) for s, _ in sums.restore(state)] == [1, 3]


@pytest.mark.parametrize("name", NAMES[:2])  # float8_e5m2 is refused, with a message
def test_they_are_saved(name: str, tmp_path: Path) -> None:
    values = np.array([1, 2, 0.5], getattr(ml_dtypes, name))
    D.from_tensor_slices(values).save(str(tmp_path / "saved"))
    found = D.load(str(tmp_path / "saved"))
    assert found.element_spec == di.TensorSpec([], values.dtype)
    assert found.to_list() == values.tolist()
