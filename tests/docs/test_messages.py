# SPDX-License-Identifier: Apache-2.0
"""The pages about errors name messages and classes that there are, and all classes."""

import re
from pathlib import Path

import numpy as np
import pytest

import distinput as di
from distinput.cli import main

ROOT = Path(__file__).parents[2]


def first_cells(page: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.*?) \|", text, re.MULTILINE)
    return [row for row in rows if "`" in row]


def source() -> str:
    """All text of the package, with the seams of string literals taken out."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "distinput").rglob("*.py"))]
    return re.sub(r'"\s*\n\s*f?"', "", "\n".join(texts))


def test_every_message_of_the_page_is_in_the_source() -> None:
    text = source()
    phrases = [
        part.strip()
        for cell in first_cells("troubleshooting.md")
        for phrase in re.findall(r"`([^`]+)`", cell)
        for part in phrase.split("...")
        if part.strip()
    ]
    assert len(phrases) > 15
    assert [phrase for phrase in phrases if phrase not in text] == []


@pytest.mark.parametrize("name", [name for name in di.errors.__all__ if not name.isupper() and name != "OpError"])
def test_every_class_is_on_the_page_of_errors(name: str) -> None:
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    assert f"`{name}`" in text


def test_the_bases_that_the_page_of_errors_names_are_theirs() -> None:
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (`.*?`) \|", text, re.MULTILINE)
    assert len(rows) > 20
    for name, bases in rows:
        for base in re.findall(r"`(\w+)`", bases):
            wanted = getattr(di.errors, base, None) or __builtins__[base]  # type: ignore[index]
            assert issubclass(getattr(di.errors, name), wanted), (name, base)


def cures() -> list[str]:
    text = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .*? \| .*? \| (.*?) \|$", text, re.MULTILINE)
    return sorted({code for cell in rows for code in re.findall(r"`([^`]+)`", cell)} - {"if rank == 0:"})


@pytest.mark.parametrize("cure", cures())
def test_the_cures_of_the_page_can_be_written_so(cure: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1\n2\n")
    lines, pattern = str(tmp_path / "a.txt"), str(tmp_path / "*.txt")
    ds = di.data.Dataset.range(4)
    known = {"di": di, "ds": ds, "lines": lines, "pattern": pattern, "f": lambda x: np.array([x], np.float32)}
    known |= dict.fromkeys(("n", "buffer_size", "global_batch_size"), 4) | {"state": iter(ds).state()}
    if cure.startswith("distinput "):
        with pytest.raises(SystemExit) as ended:
            main([cure.split()[1], "--help"])
        assert ended.value.code == 0
    elif re.fullmatch(r"\w+", cure):
        if not any(hasattr(place, cure) for place in (di.data.Dataset, di.distribute.Strategy)):
            pytest.importorskip("torch")
            assert hasattr(di.interop.torch, cure)
    elif cure.startswith("multiprocessing_context="):
        pytest.importorskip("torch")
        eval(f"di.interop.torch.Loader(ds, num_workers=1, {cure})", known)  # noqa: S307
    elif re.match(r"\w+=", cure):
        assert eval(f"di.data.TextLineDataset(lines, {cure})", known).to_list() == [b"1", b"2"]  # noqa: S307
    else:
        whole = cure if cure.startswith("di.") else f"ds.{cure.removeprefix('.')}"
        if not hasattr(ds, cure.removeprefix(".").partition("(")[0]) and not cure.startswith("di."):
            whole = f"ds.apply(di.data.experimental.{cure})"
        eval(whole, known)  # noqa: S307
