# SPDX-License-Identifier: Apache-2.0
"""How much there is to read: files, lines, what a job loads and runs through, imports that hide. The numbers may only fall."""

import ast
import io
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.house.imports import imports, module_name, nodes_of, tree_of
from tests.house.test_circles import circles, import_graph

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "distinput"

pytestmark = pytest.mark.fresh_process

MOST = {
    "files": 474,
    "lines of code": 92_669,
    "files that OneDeviceStrategy imports": 14,
    "lines of code that OneDeviceStrategy imports": 3281,
    "modules that a MirroredStrategy loads": 22,
    "files that slices, map and batch run through": 25,
    "files that a mirrored job runs through": 43,
    "files that a TFRecord job runs through": 45,
    "files that state and restore run through": 25,
    "imports inside functions": 0,
    "circles of imports, of whatever kind": 0,
    "file names that occur twice": 35,
}
"""What a newcomer has to read. Whoever makes a number smaller writes the new one here; only a feature brings a larger one."""


def lines_of_code(source: str) -> int:
    """The lines that are neither blank nor comments nor docstrings."""
    documented: set[int] = set()
    for node in nodes_of(source):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node, clean=False
        ):
            documented.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    others = [line.strip() for number, line in enumerate(source.split("\n"), 1) if number not in documented]
    # Only in a text of several lines a line may be blank, or look like a comment, and be code.
    if not any('"""' in line or "'''" in line for line in others):
        return sum(not line.startswith("#") for line in others if line)
    lines: set[int] = set()
    silent = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in silent:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - documented)


@cache
def files() -> dict[str, Path]:
    """Each module of the package, and its file."""
    return {module_name(path, ROOT): path for path in sorted(PACKAGE.rglob("*.py"))}


def hidden_imports(sources: dict[str, Path]) -> Iterator[str]:
    """Imports of the package's own modules that stand inside functions."""
    for module, path in sources.items():
        for item in imports(path.read_text(encoding="utf-8"), module, path.name == "__init__.py", sources):
            if item.function is not None and item.name.partition(".")[0] == PACKAGE.name:
                yield f"{module}:{item.line} {item.name}"


def names_for_checkers(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements below `if TYPE_CHECKING:`."""
    for node in tree.body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from node.body


def closure(start: str) -> set[str]:
    """A module, and all of the package that are loaded with it."""
    graph = {}
    for module, path in files().items():
        source = path.read_text(encoding="utf-8")
        only_checked = {
            line
            for node in names_for_checkers(tree_of(source))
            for line in range(node.lineno, 1 + (node.end_lineno or 0))
        }
        graph[module] = {
            item.name
            for item in imports(source, module, path.name == "__init__.py", files())
            if item.function is None and item.line not in only_checked and item.name in files()
        }
    loaded: set[str] = set()
    waiting = [start]
    while waiting:
        module = waiting.pop()
        if module not in loaded:
            loaded.add(module)
            waiting += graph[module]
    return loaded


JOBS = """
import collections, os, sys, tempfile, threading
import distinput as di
house = os.path.dirname(di.__file__) + os.sep
entered = collections.defaultdict(set)
def enter(frame, event, argument):
    path = frame.f_code.co_filename
    if event == "call" and path.startswith(house) and frame.f_code.co_flags & 1:  # a function, no module or class
        entered[job].add(path)
job = "files that slices, map and batch run through"
os.chdir(tempfile.mkdtemp())
threading.setprofile(enter); sys.setprofile(enter)
list(di.data.Dataset.from_tensor_slices([1, 2, 3, 4, 5]).map(lambda x: x + 1).batch(2))
job = "files that a mirrored job runs through"
strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
for step in strategy.experimental_distribute_dataset(di.data.Dataset.range(10).batch(4)):
    strategy.reduce("SUM", strategy.run(lambda batch: batch, args=(step,)), axis=0)
job = "files that a TFRecord job runs through"
with di.io.TFRecordWriter("n.tfrecord") as writer:
    for n in range(10):
        writer.write(di.io.encode_example({"n": n}))
records = di.data.TFRecordDataset("n.tfrecord").parse_example({"n": di.io.FixedLenFeature([], "int64")})
list(records.shuffle(10, seed=1).batch(4))
job = "files that state and restore run through"
ds = di.data.Dataset.range(20).shuffle(5, seed=1).batch(4)
iterator = iter(ds); next(iterator); list(ds.restore(iterator.state()))
sys.setprofile(None); threading.setprofile(None)
for job, paths in entered.items():
    print(f"{job}={len(paths)}")
"""
"""Four jobs of every day, and the files whose functions they run."""

LOADED = """
import sys
import distinput
distinput.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
print(sum(name.partition(".")[0] == "distinput" for name in sys.modules))
"""


def printed(program: str) -> str:
    """What a program prints that runs in a Python of its own."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300, cwd=ROOT
    )
    return done.stdout


@cache
def measured() -> dict[str, int]:
    """Each figure of `MOST` as it is."""
    sources = {module: path.read_text(encoding="utf-8") for module, path in files().items()}
    loaded = closure("distinput.distribute.core.one_device")
    jobs = dict(line.split("=") for line in printed(JOBS).splitlines())
    stems = Counter(path.stem for path in files().values() if path.stem not in ("__init__", "__main__"))
    return {
        "files": len(sources),
        "lines of code": sum(map(lines_of_code, sources.values())),
        "files that OneDeviceStrategy imports": len(loaded),
        "lines of code that OneDeviceStrategy imports": sum(lines_of_code(sources[module]) for module in loaded),
        "modules that a MirroredStrategy loads": int(printed(LOADED)),
        **{job: int(count) for job, count in jobs.items()},
        "imports inside functions": sum(1 for _ in hidden_imports(files())),
        "circles of imports, of whatever kind": sum(1 for _ in circles(import_graph(PACKAGE, ROOT))),
        "file names that occur twice": sum(1 for count in stems.values() if count > 1),
    }


@pytest.mark.parametrize("figure", MOST)
def test_there_is_no_more_to_read(figure: str) -> None:
    assert measured()[figure] <= MOST[figure]


def test_every_figure_is_measured() -> None:
    assert set(measured()) == set(MOST)


def test_lines_of_code_are_no_blank_lines_comments_or_docstrings() -> None:
    source = '"""Text\nof two lines."""\n\n# note\nx = (\n    1,  # note\n)\n\ndef f():\n    "text"\n    return 1\n'
    assert lines_of_code(source) == 5


def test_imports_inside_functions_are_found(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("from distinput.errors import A\ndef f():\n    from distinput.errors import B\n    import json\n")
    found: Collection[str] = list(hidden_imports({"distinput.a": file}))
    assert found == ["distinput.a:3 distinput.errors"]


if __name__ == "__main__":  # `python -m tests.house.test_reading` prints the figures
    for figure, count in measured().items():
        print(f"{count:7} {figure}")
