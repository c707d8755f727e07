# SPDX-License-Identifier: Apache-2.0
"""Everything that is shown as HTML can be drawn, and is not loaded before."""

import subprocess
import sys
from importlib import import_module

import pytest

from distinput.names.words import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_what_draws_is_there(kind: str) -> None:
    module, _, name = KINDS[kind].partition(":")
    assert callable(getattr(import_module(f"distinput.reports.{module}"), name))


@pytest.mark.fresh_process
def test_a_pass_does_not_load_it() -> None:
    program = (
        "import sys, distinput as di; list(di.data.Dataset.range(3)); print([m for m in sys.modules if 'reports' in m])"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=300)
    assert done.stdout == "[]\n"
