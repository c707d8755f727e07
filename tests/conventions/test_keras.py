# SPDX-License-Identifier: Apache-2.0
"""What Keras 3 expects of a dataset; docs/conventions.md lists the lines."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
import keras
import numpy as np
import distinput as di

rows = di.data.Dataset.range(10).map(lambda x: ({"x": np.float32([x])}["x"], np.float32([2.0 * x])))
view = di.interop.keras.Sequence(rows.batch(4), tail="pad")
assert isinstance(view, keras.utils.PyDataset)
batches = [view[i] for i in range(len(view))]
assert [len(batch) for batch in batches] == [3, 3, 3]
assert [np.asarray(weight).ravel().tolist() for _, _, weight in batches] == [[1] * 4, [1] * 4, [1, 1, 0, 0]]
model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1, kernel_initializer="ones")])
model.compile("sgd", "mse", weighted_metrics=["mse"])
found = model.evaluate(view, return_dict=True, verbose=0)
want = np.mean([x * x for x in range(10)])
assert abs(found["weighted_mse" if "weighted_mse" in found else "mse"] - want) < 1e-3, (found, want)
print("ok")
"""


def test_a_dataset_is_a_pydataset_whose_mask_is_the_sample_weight() -> None:
    if not all(importlib.util.find_spec(name) for name in ("keras", "jax")):
        pytest.skip("keras or jax is not installed")
    environ = {**os.environ, "KERAS_BACKEND": "jax", "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300, check=False, cwd=ROOT, env=environ
    )
    assert run.stdout.endswith("ok\n"), run.stderr
