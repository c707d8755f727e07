# SPDX-License-Identifier: Apache-2.0
"""Keras without its backend: the error names the cure."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.engines.processes import ROOT


@pytest.mark.skipif(find_spec("tensorflow") is not None, reason="TensorFlow is installed, which Keras takes by default")
def test_a_backend_that_is_missing_is_said() -> None:
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow"}
    words = [sys.executable, "-c", "import distinput\ndistinput.interop.keras"]
    found = subprocess.run(words, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert "EngineMissing: interop.keras: needs Keras and a backend for it, which cannot be imported" in found.stderr
    assert "set KERAS_BACKEND to 'jax' or 'torch'" in found.stderr
