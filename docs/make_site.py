# SPDX-License-Identifier: Apache-2.0
"""Builds the site of docs/ into build/site; a link or an anchor that leads nowhere is an error.

python docs/make_site.py              (or `make site`)

The pages stay what they are in a repository. Copies of them are made in build/pages, in which

* the reference is written from the docstrings (docs/make_reference.py), and its pages are listed on docs/reference.md;
* each benchmark of docs/performance.md has a page;
* links that leave docs/ lead to copies of the files that they name; a program becomes a page that shows it;
* headings of the reference that are long names get a short one for the list beside the page;
* examples with prompts are marked as such, so that prompts and output are coloured;
* the navigation is added to the settings of zensical.toml: the tables of docs/index.md, which are its only list.
"""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from os.path import relpath
from pathlib import Path
from types import ModuleType

__all__ = ["Entry", "Group", "build", "navigation", "render", "stage"]

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PICTURES = (".png", ".svg", ".webp")
REFERENCE = DOCS / "reference.md"  # the page that the generated ones are below
PERFORMANCE = DOCS / "performance.md"  # its part about each benchmark is a page of the site
OWN_NAMES = ("npz",)  # what a title does not begin with a capital letter for
ZERO_WIDTH_SPACE = "\u200b"
ELSEWHERE = "repository"  # the folder of the site with pages that come from outside docs/
HEADING = re.compile(r"^### `(?P<name>distinput\.[\w.]+)`$", re.MULTILINE)
COLOUR = re.compile(r"\x1b\[[\d;]*m")
FENCE = re.compile(r"^(```+)([\w-]*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!`)\[(?P<text>[^\]\n]*(?:\n[^\]\n]+)?)\]\((?P<target>[^)\s#]*)(?P<anchor>#[^)\s]*)?\)")


@dataclass(frozen=True)
class Entry:
    """A page in the navigation: its title, its file, and pages that only it leads to."""

    title: str
    path: Path
    below: tuple["Entry", ...] = ()

    def paths(self) -> Iterator[Path]:
        """The page, and all below it."""
        yield self.path
        for entry in self.below:
            yield from entry.paths()


@dataclass(frozen=True)
class Group:
    """Pages under one heading of the index, then groups under headings below it."""

    title: str
    entries: list[Entry] = field(default_factory=list)
    groups: list["Group"] = field(default_factory=list)

    def paths(self) -> Iterator[Path]:
        """All pages of the group, in order."""
        for entry in self.entries:
            yield from entry.paths()
        for group in self.groups:
            yield from group.paths()


def navigation(index: Path = DOCS / "index.md") -> list[Group]:
    """The groups of the index: a heading, and the pages that the first cells of the table below it link to.

    A page that is the front of a folder (`README.md`, `index.md`) brings along those pages of its folder that it lists and the
    index does not; the page of the reference those that `stage` writes.
    """
    text = index.read_text(encoding="utf-8")
    named = {path for line in text.splitlines() for _, path in _listed(line, index)}
    groups: list[Group] = []
    for line in text.splitlines():
        if heading := re.match(r"(##|###) (.*)", line):
            (groups if heading[1] == "##" else groups[-1].groups).append(Group(heading[2]))
            continue
        for title, path in _listed(line, index):
            last = groups[-1].groups[-1] if groups[-1].groups else groups[-1]
            last.entries.append(Entry(title, path, tuple(_below(path, named))))
    groups = [group for group in groups if any(group.paths())]
    groups[0].entries.insert(0, Entry("distinput", index))
    return groups


def _below(front: Path, named: set[Path]) -> Iterator[Entry]:
    if front == REFERENCE:
        for name in sorted(_reference().public_modules()):
            classes = [
                Entry(cls.rpartition(".")[2], DOCS / "reference" / f"{cls}.md")
                for cls in _reference().class_pages(name)
            ]
            title = name.removeprefix("distinput.").replace(
                ".", f".{ZERO_WIDTH_SPACE}"
            )  # where a long one may be broken
            yield Entry(title, DOCS / "reference" / f"{name}.md", tuple(classes))
    if front == PERFORMANCE:
        for name in _benchmarks(front.read_text(encoding="utf-8")):
            yield Entry(name, _benchmark_page(name))
    if front.name not in ("README.md", "index.md"):
        return
    for line in front.read_text(encoding="utf-8").splitlines():
        for title, path in _listed(line, front):
            if path.parent == front.parent and path not in named:
                yield Entry(title, path)


@cache
def _reference() -> ModuleType:
    """docs/make_reference.py, wherever this script is started from."""
    spec = importlib.util.spec_from_file_location("make_reference", DOCS / "make_reference.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(DOCS / "make_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _listed(line: str, page: Path) -> Iterator[tuple[str, Path]]:
    """Title and page of the links with which a row of a table or an item of a list begins."""
    start = line[1:].split(" | ")[0] if line.startswith("| ") else line if line.startswith("* [") else ""
    links = [*LINK.finditer(start)] if line.startswith("| ") else [*LINK.finditer(start)][:1]
    for link in links:
        if link["target"].endswith(".md"):
            yield _title(link["text"], page), (page.parent / link["target"]).resolve()


def _title(text: str, page: Path) -> str:
    """Text of a link as a title; numbers of records get the name of what they number."""
    if text.isdigit():
        return f"{page.parent.name.upper()} {text}"
    if text in OWN_NAMES:
        return text
    return text.strip("`").removeprefix("distinput.") if text.startswith("`") else text[:1].upper() + text[1:]


def stage(folder: Path, groups: list[Group]) -> None:
    """Write the copies of all pages, of what they show, and of the files outside docs/ that they lead to."""
    folder.mkdir(parents=True)
    shutil.copyfile(DOCS / "site.css", folder / "site.css")
    waiting = [path for path in sorted(DOCS.rglob("*")) if path.suffix in (".md", *PICTURES)]
    waiting += [path for group in groups for path in group.paths()]
    seen = _stage_reference(folder / "reference") | {
        _benchmark_page(name) for name in _benchmarks(PERFORMANCE.read_text(encoding="utf-8"))
    }
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        place = folder / _place(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix in PICTURES:
            shutil.copyfile(path, place)
        elif path == PERFORMANCE:
            waiting += _stage_performance(folder)
        elif path.suffix == ".md":
            text, found = _page(path)
            place.write_text(text, encoding="utf-8")
            waiting += found
        else:
            language = {".py": "python", ".toml": "toml"}.get(path.suffix, "text")
            name = path.relative_to(ROOT).as_posix()
            place.write_text(f"# {name}\n\n````{language}\n{path.read_text(encoding='utf-8')}````\n", encoding="utf-8")


def _stage_reference(folder: Path) -> set[Path]:
    """Write the pages of the reference; returns where they would lie in docs/."""
    for page in _reference().write(folder):
        page.write_text(HEADING.sub(_heading, page.read_text(encoding="utf-8")), encoding="utf-8")
    (folder / "README.md").unlink()  # the list of them is on the page above
    return {DOCS / "reference" / page.name for page in folder.iterdir()}


def _benchmarks(page: str) -> list[str]:
    """The benchmarks that have a part of the page about performance: their headings are names, the others sentences."""
    return re.findall(r"^## (\w+)$", page, re.MULTILINE)


def _benchmark_page(name: str) -> Path:
    return DOCS / "performance" / f"{name}.md"


def _stage_performance(folder: Path) -> list[Path]:
    """Write the page about performance without the benchmarks, and a page for each; returns what they lead to outside docs/."""
    text, found = _page(PERFORMANCE)
    names = _benchmarks(text)
    front, *parts = re.split(r"^## (?=\w+$)", text, flags=re.MULTILINE)
    for name in names:
        front = front.replace(f"](#{name})", f"](performance/{name}.md)")
    (folder / "performance.md").write_text(front, encoding="utf-8")
    (folder / "performance").mkdir(exist_ok=True)
    for name, part in zip(names, parts, strict=True):
        title, _, rest = part.partition("\n")
        rest = LINK.sub(
            lambda link: link[0].replace("](../", "](../../").replace("](repository/", "](../repository/"), rest
        )
        rest = rest.replace("](performance/", "](").replace("](#", "](../performance.md#")
        (folder / _place(_benchmark_page(name))).write_text(f"# {title}\n{rest}", encoding="utf-8")
    return found


def _place(path: Path) -> Path:
    """Where a file of the repository lies in the site."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS)
    name = ELSEWHERE / path.relative_to(ROOT)
    return name if path.suffix in (".md", *PICTURES) else name.with_name(f"{name.name}.md")


def _page(path: Path) -> tuple[str, list[Path]]:
    """A page as the site has it, and the files that it leads to outside docs/."""
    outside: list[Path] = []

    def link(found: re.Match[str]) -> str:
        target = found["target"]
        if "://" in target or not target:
            return found[0]
        file = (path.parent / target).resolve()
        if file.is_dir():
            return found["text"]  # a folder of the repository has no page
        if file.exists() and not file.is_relative_to(DOCS):
            outside.append(file)
        if (
            file == PERFORMANCE
            and (anchor := found["anchor"])
            and anchor[1:] in _benchmarks(PERFORMANCE.read_text("utf-8"))
        ):
            return f"[{found['text']}]({relpath(_place(_benchmark_page(anchor[1:])), _place(path).parent)})"
        there = relpath(_place(file), _place(path).parent) if file.is_relative_to(ROOT) else target
        return f"[{found['text']}]({there}{found['anchor'] or ''})"

    text, after = path.read_text(encoding="utf-8"), 0
    made: list[str] = []
    for fence in FENCE.finditer(text):
        made += [LINK.sub(link, text[after : fence.start()]), _fence(fence)]
        after = fence.end()
    made.append(LINK.sub(link, text[after:]))
    if path == REFERENCE:
        made.append(f"\n## Modules\n\n{_reference().listing().replace('](', '](reference/')}")
    return "".join(made), outside


def _heading(found: re.Match[str]) -> str:
    """A heading that is a public name; the list beside the page shows its last part, the rest being the page's title."""
    short = found["name"].rpartition(".")[2]
    return f'{found[0]} {{ data-toc-label="{short}" }}'


def _fence(fence: re.Match[str]) -> str:
    """A block of code; one with prompts is called a session, so that prompts, code and output get colours of their own."""
    ticks, language, code = fence.groups()
    return f"{ticks}pycon\n{code}{ticks}" if language == "python" and code.startswith(">>> ") else fence[0]


def settings(groups: list[Group]) -> str:
    """The text of zensical.toml with the navigation, for a file beside the folders `pages` and `site`."""
    text = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    text = text.replace('docs_dir = "docs"', 'docs_dir = "pages"').replace(
        'site_dir = "build/site"', 'site_dir = "site"'
    )
    return text.replace("[project]\n", f"[project]\nnav = {_toml([_group(group) for group in groups])}\n", 1)


def _group(group: Group) -> dict[str, object]:
    return {group.title: [*map(_entry, group.entries), *map(_group, group.groups)]}


def _entry(entry: Entry) -> dict[str, object]:
    page = _place(entry.path).as_posix()
    return {entry.title: [page, *map(_entry, entry.below)] if entry.below else page}


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{json.dumps(key)} = {_toml(item)}' for key, item in value.items())} }}"
    return json.dumps(value)


def build(folder: Path = ROOT / "build") -> tuple[Path, str]:
    """Build the site in `folder/site`, and return that folder and what was said.

    Raises:
      RuntimeError: a link or an anchor leads nowhere, or the program that builds it failed; with all that it said.
    """
    shutil.rmtree(folder / "pages", ignore_errors=True)
    groups = navigation()
    stage(folder / "pages", groups)
    return render(folder, groups)


def render(folder: Path, groups: list[Group]) -> tuple[Path, str]:
    """Build the site in `folder/site` of the pages in `folder/pages`; see `build`."""
    shutil.rmtree(folder / "site", ignore_errors=True)
    config = folder / "site.toml"
    config.write_text(settings(groups), encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", str(config)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder)
    said = COLOUR.sub("", done.stdout + done.stderr.split("\nTraceback ")[0])
    if done.returncode:
        raise RuntimeError(f"the site was not built, zensical says:\n{said}")
    return folder / "site", said


if __name__ == "__main__":
    try:
        made, told = build()
    except RuntimeError as error:
        sys.exit(str(error))
    print(f"{told.rstrip()}\n{made}/index.html; for the search: python -m http.server --directory {made}")
