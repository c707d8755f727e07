# SPDX-License-Identifier: Apache-2.0
"""Whether the files of a release are whole: python .ci/release_check.py FOLDER (`make release-check` makes them first).

The wheel holds the package and nothing else, and says of itself what it should; `twine check` finds nothing. The wheel and the
archive of sources are each installed into an empty environment, where pip finds nothing missing and the first program of the
README prints what it shows.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
STATED = (
    "Author",
    "Classifier",
    "Keywords",
    "License-Expression",
    "License-File",
    "Name",
    "Requires-Dist",
    "Requires-Python",
)
STATED += ("Summary", "Version")
# What tests and tools leave in a checkout.
LEFT = re.compile(r"(^|/)(tests|__pycache__|\.\w[^/]*|conftest\.py)(/|$)|\.(pyc|pyo|nbi|nbc|orig|rej)$")


def metadata(wheel: Path) -> Message:
    """What a wheel says of itself."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_bytes(archive.read(name))


def problems(wheel: Path) -> list[str]:
    """What is wrong with the contents of a wheel and with what it says of itself."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    said = metadata(wheel)
    info = f"{said['Name']}-{said['Version']}.dist-info"
    wrong = [f"{name} does not belong into a wheel" for name in names if LEFT.search(name)]
    top = {name.split("/")[0] for name in names}
    wrong += [f"{name} is none of ours" for name in sorted(top - {"distinput", "pytest_distinput.py", info})]
    wrong += [f"{name} is missing" for name in ("distinput/py.typed", f"{info}/licenses/LICENSE") if name not in names]
    wrong += [f"the metadata have no {name}" for name in STATED if not said[name]]
    if said["Description-Content-Type"] != "text/markdown" or said.get_payload() != description():
        wrong.append("the description is not README.md without the links that lead nowhere outside of the repository")
    return wrong


def description() -> str:
    """The README with the substitutions of pyproject.toml: without links that lead nowhere outside of the repository."""
    with (README.parent / "pyproject.toml").open("rb") as file:
        hook = tomllib.load(file)["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    text = README.read_text(encoding="utf-8")
    for each in hook["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    return text


def program() -> tuple[str, str]:
    """The first program of the README, and what the block behind it says that it prints."""
    text = README.read_text(encoding="utf-8")
    found = re.search(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise LookupError(f"{README}: no program with its output")
    return found[1], found[2]


def installed(file: Path, version: str) -> None:
    """Install a file into an empty environment, and use it there."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(Path(folder, "venv"), with_pip=True)
        python = str(Path(folder, "venv", "Scripts" if os.name == "nt" else "bin", "python"))
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

        def call(*words: str) -> str:
            done = subprocess.run([python, *words], check=False, capture_output=True, text=True, cwd=folder, env=clean)
            if done.returncode:
                sys.exit(
                    f"{file.name}: {' '.join(words)}: ends with {done.returncode} and says\n{done.stdout}{done.stderr}"
                )
            return done.stdout

        call("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", str(file.resolve()))
        call("-m", "pip", "check", "--disable-pip-version-check")
        code, prints = program()
        for words, wanted in ((("-m", "distinput", "--version"), f"distinput {version}\n"), (("-c", code), prints)):
            if (printed := call(*words)) != wanted:
                sys.exit(
                    f"{file.name}: {words[0]} {words[1].splitlines()[0]} ... prints {printed!r}, and should {wanted!r}"
                )


def main() -> None:
    """Check the one wheel and the one archive of sources in a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    (wheel,), (sources,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    if wrong := problems(wheel):
        sys.exit("\n".join([f"{wheel}:", *wrong]))
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sources)], check=True)
    version = metadata(wheel)["Version"]
    for file in (wheel, sources):
        installed(file, version)
        print(f"{file}: installed into an empty environment, and runs")


if __name__ == "__main__":
    main()
