# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors and Optionals as elements, beside what TensorFlow 2.21 gives for the same programs.

`tests/golden/held_elements.json` holds its answers; `held_elements.py` has the programs, and records them.
"""

import json
from typing import Any

import numpy as np
import pytest

import distinput as di
from tests.golden.held_elements import OPTIONAL, RECORDED, SPARSE, plain, told

ANSWERS = json.loads(RECORDED.read_text(encoding="utf-8"))


class Ours:
    """What the programs need of a library."""

    Dataset, experimental, Optional = di.data.Dataset, di.data.experimental, di.data.experimental.Optional
    SparseTensor, SparseTensorSpec, TensorSpec, OptionalSpec = (
        di.SparseTensor,
        di.SparseTensorSpec,
        di.TensorSpec,
        di.OptionalSpec,
    )
    distribute, int64, array, number = di.distribute, np.int64, np.array, np.int32
    same = staticmethod(np.full)

    def column(self, n: Any) -> Any:
        return np.arange(n)[:, None]

    def either(self, condition: Any, yes: Any, no: Any) -> Any:
        return yes() if condition else no()

    def exact(self, x: Any) -> Any:
        if hasattr(x, "dense_shape"):
            return {"sparse": [plain(part) for part in x]}
        return plain(x)


MORE = {"distributed other sizes", "batch of batches of several sizes"}
"""What TensorFlow refuses: a replica without rows, and sparse batches of several sizes in a batch if they come from `batch`."""

CASES = [(kind, name) for kind, programs in (("sparse", SPARSE), ("optional", OPTIONAL)) for name in programs]
PROGRAMS = {"sparse": SPARSE, "optional": OPTIONAL}


@pytest.mark.parametrize("kind, name", CASES)
def test_as_tensorflow(kind: str, name: str) -> None:
    made = told(Ours(), PROGRAMS[kind][name])
    if name in MORE:
        assert (ANSWERS[kind][name], made == "error") == ("error", False)
    else:
        assert made == ANSWERS[kind][name]
