# SPDX-License-Identifier: Apache-2.0
"""`interop.torch` where PyTorch is not installed, and how little it costs those who do not name it."""

import subprocess
import sys

import pytest

MISSING = """
import sys
import distinput as di
assert not [name for name in sys.modules if name.split(".")[0] == "torch"]
sys.modules["torch"] = None
try:
    di.interop.torch.Loader
except di.errors.EngineMissing as error:
    print(error)
"""


@pytest.mark.fresh_process
def test_what_is_missing_is_said_with_the_cure() -> None:
    done = subprocess.run([sys.executable, "-c", MISSING], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "interop.torch: PyTorch is not installed; `pip install 'distinput[torch]'`\n", done.stderr
