# SPDX-License-Identifier: Apache-2.0
"""What `make test` installs, and in which order; what CI runs."""

import subprocess
import tomllib

from tests.engines.processes import ENGINES, ROOT

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


def test_torch_comes_first_and_exactly() -> None:
    """Asked for together with others, or in any other version, pip may fetch gigabytes of libraries for GPUs."""
    (pin,) = [name for name in EXTRAS["engines"] if name.startswith("torch")]
    assert "==" in pin
    words = ["make", "--dry-run", "--no-print-directory", "test", "VENV=nowhere"]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300).stdout
    installs = [line for line in said.splitlines() if "pip install" in line]
    assert installs[0].endswith(f"'{pin}'")
    assert "engines,neighbours," in installs[1]


def test_users_are_not_bound_to_one_version() -> None:
    for engine in ENGINES:
        assert all(">=" in requirement and "==" not in requirement for requirement in EXTRAS[engine])


def test_the_core_is_tested_without_any_optional_package() -> None:
    words = ["make", "--dry-run", "--no-print-directory", "test-core", "VENV=nowhere"]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300).stdout
    (install,) = [line for line in said.splitlines() if "pip install" in line]
    assert install.endswith("--editable . pytest hypothesis")


def test_ci_begins_with_the_test_command_of_the_readme_in_an_empty_environment() -> None:
    (readme,) = [
        line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("make test")
    ]
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    makes = [line.replace("make --no-print-directory", "make") for line in lines if line.startswith("make ")]
    others = "make test-pythons PYTEST_ARGS='tests/plan tests/functions'"
    first = readme.partition("#")[0].strip()
    assert makes == [first, "make lint", "make types", "make release-check", others, "make test-core"]
    assert lines.index('empty="$(mktemp -d)"') < lines.index('export CI=1 VENV="$empty/venv"')
