# SPDX-License-Identifier: Apache-2.0
"""What is looked at before a release (`make release-check`) finds what is wrong with a wheel."""

import importlib.util
import re
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

import distinput

ROOT = Path(__file__).parents[2]
INFO = f"distinput-{distinput.__version__}.dist-info"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """.ci/release_check.py, which is a script and not part of a package."""
    spec = importlib.util.spec_from_file_location("release_check", ROOT / ".ci" / "release_check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wheel(script: ModuleType, folder: Path, *names: str, without: str = "") -> Path:
    """A wheel with all that it needs but one thing, and with more files."""
    said = dict.fromkeys(script.STATED, "x") | {"Name": "distinput", "Version": distinput.__version__}
    lines = [f"{name}: {value}\n" for name, value in said.items() if name != without]
    lines += ["Description-Content-Type: text/markdown\n\n", script.description()]
    path = folder / "distinput.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{INFO}/METADATA", "".join(lines))
        for name in ("distinput/py.typed", "pytest_distinput.py", f"{INFO}/licenses/LICENSE", *names):
            if name != without:
                archive.writestr(name, "")
    return path


def test_a_wheel_that_is_whole(script: ModuleType, tmp_path: Path) -> None:
    assert script.problems(wheel(script, tmp_path, "distinput/testing/laws/tests.py", "distinput/ops/cache.py")) == []


@pytest.mark.parametrize(
    "name, says",
    [
        ("distinput/tests/test_x.py", "does not belong into a wheel"),
        ("distinput/__pycache__/x.cpython-311.pyc", "does not belong into a wheel"),
        ("distinput/kernels/x.nbi", "does not belong into a wheel"),
        ("distinput/.coverage", "does not belong into a wheel"),
        ("docs/index.md", "docs is none of ours"),
    ],
)
def test_what_does_not_belong_into_a_wheel_is_named(script: ModuleType, tmp_path: Path, name: str, says: str) -> None:
    (wrong,) = script.problems(wheel(script, tmp_path, name))
    assert says in wrong


@pytest.mark.parametrize("missing", ["Summary", "Classifier", "Requires-Python", "distinput/py.typed"])
def test_what_a_wheel_lacks_is_named(script: ModuleType, tmp_path: Path, missing: str) -> None:
    (wrong,) = script.problems(wheel(script, tmp_path, without=missing))
    assert missing in wrong


def test_the_long_description_has_no_links_that_lead_nowhere(script: ModuleType) -> None:
    text = script.description()
    assert re.findall(r"\]\((?!https?://)[^)]*\)", text) == []
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^#.*$", text, re.MULTILINE) == re.findall(r"^#.*$", readme, re.MULTILINE)
    code = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
    assert code.findall(text) == code.findall(readme)


def test_the_archive_of_sources_has_what_the_description_is_made_of() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        included = tomllib.load(file)["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert {f"/{path.name}" for path in ROOT.glob("*.md")} <= {*included}


def test_the_readme_has_the_program_that_is_run(script: ModuleType) -> None:
    code, prints = script.program()
    assert "MirroredStrategy" in code
    assert prints == "285 = 285\n"


def test_a_release_has_its_changes() -> None:
    assert f"\n## {distinput.__version__}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_who_cites_it_cites_this_version() -> None:
    assert f"\nversion: {distinput.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
