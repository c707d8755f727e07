# SPDX-License-Identifier: Apache-2.0
"""Extensions of installed packages are loaded when an unknown name is asked for, once, and one that fails is named."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.fresh_process

GOOD = """
    from dataclasses import dataclass
    from distinput.extend import Policy, SameElements, register_backend, register_format, register_op, register_policy
    from distinput.extend import register_rule

    print("loaded")
    register_op("as_it_is", "good_ops:AsItIs")
    register_format("good_lines", "distinput.formats.text:TextLines")
    register_backend("good_threads", "distinput.distribute.devices.threads:ThreadDevices")
    register_policy(Policy("GOOD", "everything", lambda node, share: node))
"""
OPS = """
    from dataclasses import dataclass
    from distinput.extend import OneForOne

    print("ops loaded")

    @dataclass(frozen=True, eq=False)
    class AsItIs(OneForOne):
        '''The elements as they are.'''

        @property
        def spec(self):
            return self.input.spec

        def start(self, epoch):
            return {"input": self.input.start(epoch)}

        def start_at(self, row, epoch):
            at = self.input.start_at(row, epoch)
            return None if at is None else {"input": at}

        def stream(self, state, run):
            for block, after in self.input.open(state["input"], run):
                yield block, {"input": after}
"""


def package(folder: Path, name: str, module: str, point: str) -> None:
    """A package as pip would install it."""
    (folder / f"{name}.py").write_text(textwrap.dedent(module))
    info = folder / f"{name}_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[distinput.extensions]\n{name} = {point}\n")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    package(tmp_path, "good", GOOD, "good")
    (tmp_path / "good_ops.py").write_text(textwrap.dedent(OPS))
    package(tmp_path, "missing", "import package_that_is_not_there", "missing")
    package(tmp_path, "calls", "def register():\n    raise OSError('no network')", "calls:register")
    return tmp_path


def said(site: Path, program: str) -> list[str]:
    head = f"import sys; sys.path.insert(0, {str(site)!r}); import distinput as di; Dataset = di.data.Dataset\n"
    run = subprocess.run(
        [sys.executable, "-c", head + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_nothing_is_loaded_as_long_as_all_names_are_known(site: Path) -> None:
    program = """
    print(Dataset.range(3).batch(2).to_list())
    di.extend.register_op("mine", "nowhere:Mine")
    print([name for name in ("good", "missing", "importlib.metadata") if name in sys.modules])
    """
    assert said(site, program)[0] == "[[0, 1], [2]]"
    assert "good" not in said(site, program)[-1]


def test_the_method_of_a_package_is_there_when_it_is_named(site: Path) -> None:
    program = """
    import json
    ds = Dataset.range(5).as_it_is()
    print(ds.batch(2).to_list(), Dataset.as_it_is.__doc__)
    it = iter(ds)
    next(it)
    print(list(map(int, Dataset.range(5).as_it_is().restore(json.loads(json.dumps(it.state()))))))
    """
    assert said(site, program) == [
        "loaded",
        "ops loaded",
        "[[0, 1], [2, 3], [4]] The elements as they are.",
        "[1, 2, 3, 4]",
    ]


def test_formats_backends_and_policies_of_a_package_are_found_by_their_names(site: Path) -> None:
    program = """
    with open(sys.path[0] + "/a.txt", "w") as file:
        file.write("one")
    print(di.data.FileDataset(sys.path[0] + "/a.txt", "good_lines").to_list())
    print(di.distribute.MirroredStrategy(["CPU:0"], backend="good_threads").num_replicas_in_sync)
    """
    assert said(site, program) == ["loaded", "[b'one']", "1"]
    policy = 'from distinput.sharding.policies import policy_named; print(policy_named("GOOD").sentence)'
    assert said(site, policy) == ["loaded", "everything"]


@pytest.mark.parametrize(
    "unknown, kind",
    [
        ("Dataset.range(3).as_it_isnt()", "AttributeError"),
        ("di.data.FileDataset('x', 'godd')", "ValueError"),
        ("di.distribute.MirroredStrategy(['CPU:0'], backend='godd')", "ValueError"),
    ],
)
def test_an_unknown_name_tells_of_packages_that_could_not_be_loaded(site: Path, unknown: str, kind: str) -> None:
    program = f"""
    try:
        {unknown}
    except {kind} as error:
        print(error)
    print(hasattr(Dataset.range(3), "neither"))
    """
    _, error, more = said(site, program)
    assert "extension 'missing' of the package 'missing-package' could not be loaded: ModuleNotFoundError(" in error
    assert "extension 'calls' of the package 'calls-package' could not be loaded: OSError('no network')" in error
    assert more == "False"
