# SPDX-License-Identifier: Apache-2.0
"""Everything that is shown as HTML can be drawn, and is not loaded before."""

import subprocess
import sys

import distinput as di
from distinput.core.html import HTML

assert di.__name__  # it fills the table


def test_what_draws_is_there() -> None:
    assert list(HTML) == ["dataset", "distributed", "plan", "recording", "stats", "values"]
    assert all(callable(HTML.find(kind)) for kind in HTML)


def test_a_pass_does_not_load_it() -> None:
    program = (
        "import sys, distinput as di; list(di.data.Dataset.range(3)); print([m for m in sys.modules if 'reports' in m])"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120)
    assert done.stdout == "[]\n"
