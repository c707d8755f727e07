# SPDX-License-Identifier: Apache-2.0
"""What `make engines` installs, and in which order."""

import subprocess
import tomllib

from tests.engines.processes import ENGINES, ROOT

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


def test_torch_comes_first_and_exactly() -> None:
    """Asked for together with others, or in any other version, pip may fetch gigabytes of libraries for GPUs."""
    (pin,) = [name for name in EXTRAS["engines"] if name.startswith("torch")]
    assert "==" in pin
    words = ["make", "--dry-run", "--no-print-directory", "engines", "VENV=nowhere"]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout
    installs = [line for line in said.splitlines() if "pip install" in line]
    assert installs[0].endswith(f"'{pin}'")
    assert "engines,neighbours," in installs[1]


def test_users_are_not_bound_to_one_version() -> None:
    for engine in ENGINES:
        assert all(">=" in requirement and "==" not in requirement for requirement in EXTRAS[engine])


def test_ci_leaves_no_engine_out() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert lines.index("make --no-print-directory engines") < lines.index("exec make --no-print-directory test")
