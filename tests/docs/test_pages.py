# SPDX-License-Identifier: Apache-2.0
"""What the pages show is what happens."""

from pathlib import Path

import pytest

from distinput.formats import FORMATS
from tests.docs.pages import left_out, run_page, snippets

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


# Pages of which nothing can be run without packages that may be missing; single blocks say what they need.
NEEDS = {
    "docs/accelerators.md": ("jax", "torch"),
    "docs/cookbook/images.md": ("PIL",),
    "docs/feeds/huggingface.md": ("datasets",),
    "docs/feeds/index.md": ("datasets", "flax", "jax", "keras", "torch"),
    "docs/feeds/jax.md": ("jax",),
    "docs/feeds/keras.md": ("keras", "jax"),
    "docs/feeds/pytorch.md": ("torch",),
    "docs/feeds/tables.md": ("duckdb", "pandas", "polars"),
    "docs/formats/images.md": ("PIL",),
    "docs/formats/table_versions.md": ("deltalake",),
    "docs/formats/video.md": ("av",),
    "docs/preprocessing_on_machines.md": ("dask", "distributed"),
    "docs/storage.md": ("aiohttp",),
    "docs/tutorials/several_machines.md": ("torch",),
}


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.needs(*NEEDS.get(name(page), ()))) for page in PAGES], ids=name
)
def test_the_examples_of_a_page_do_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = run_page(page)
    assert wrong == [], "\n".join(wrong)
    if missing := left_out(page):
        pytest.skip(f"all others ran; left out for want of a package: {dict(missing)}")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_block_that_is_not_run_says_why(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    reasons = [snippet.reason for snippet in snippets(text) if snippet.reason is not None]
    assert all(len(reason.split()) > 2 for reason in reasons)
    assert len(reasons) == text.count("<!-- not run"), (
        "a comment `not run` stands right before the block that it is about"
    )


@pytest.mark.parametrize(
    "page, says",
    [
        ("```python\n>>> 1 + 1\n3\n```\n", "Expected:\n    3\nGot:\n    2\n"),
        ('```python\nprint("a")\n```\n\n```text\nb\n```\n', "says that it prints\nb\nbut prints\na\n"),
        ("a\n\n```python\n>>> x = 1\n```\n\n```python\n>>> x\n2\n```\n", "line 8"),
    ],
)
def test_a_page_that_is_wrong_is_found_out(page: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(page)
    (wrong,) = run_page(path)
    assert says in wrong


def test_an_error_in_a_block_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("```python\nraise ValueError('said')\n```\n")
    with pytest.raises(ValueError, match="said"):
        run_page(path)


def test_a_block_that_is_not_run_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("<!-- not run: it would fail -->\n```python\nraise ValueError\n```\n```sh\nmake\n```\n")
    assert run_page(path) == []
    assert [snippet.reason for snippet in snippets(path.read_text())] == ["it would fail"]


def test_a_block_is_left_out_where_its_package_is_not_installed(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    there, missing = "<!-- needs: pytest -->\n", "<!-- needs: pytest, not_a_package -->\n"
    path.write_text(f"{there}```python\n>>> x = 1\n```\n{missing}```python\n>>> x = 2\n```\n```python\n>>> x\n2\n```\n")
    (wrong,) = run_page(path)
    assert "Expected:\n    2\nGot:\n    1\n" in wrong
    assert left_out(path) == {"not_a_package": 1}


def test_a_file_is_saved_and_a_program_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = "<!-- file: a.py -->\n```python\nimport distinput\nprint(distinput.__name__)\n```\n"
    page = tmp_path / "page.md"
    page.write_text(f"{file}\n<!-- run -->\n```sh\npython a.py\n```\n\n```text\ndistinput\n```\n```sh\nfalse\n```\n")
    assert run_page(page) == []
    assert (tmp_path / "a.py").read_text() == "import distinput\nprint(distinput.__name__)\n"


@pytest.mark.parametrize("command, says", [("echo a", "but prints\na"), ("echo b; exit 3", "ends with 3 and says\nb")])
def test_a_program_that_does_something_else_is_found_out(command: str, says: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"<!-- run -->\n```sh\n{command}\n```\n```text\nb\n```\n")
    (wrong,) = run_page(page)
    assert says in wrong


def test_the_table_of_formats_names_every_format() -> None:
    text = (DOCS / "formats" / "index.md").read_text(encoding="utf-8")
    assert [name for name in FORMATS if f"`{name}`" not in text] == []
