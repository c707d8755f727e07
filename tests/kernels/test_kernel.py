# SPDX-License-Identifier: Apache-2.0
"""A kernel never makes its caller wait, and never fails for want of a compiler, a cache or time."""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from distinput.kernels import cache
from distinput.kernels.checksums import crc32c, scan_records
from distinput.kernels.kernel import INLINED, Bytes, Ints, IntsOut, Kernel, kernel
from distinput.kernels.lines import scan_lines
from tests.depth import cases

ROOT = Path(__file__).parents[2]
CRC = (
    "import numpy as np; from distinput.kernels.checksums import crc32c; data = np.frombuffer(b'123456789', np.uint8)\n"
)
CRC_IS_RIGHT = CRC + "assert crc32c(data) == 0xE3069283\n"


def python(code: str, folder: Path | str, **environment: str) -> str:
    """What a fresh interpreter prints; it must end well and quietly."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(folder)} | environment
    command = [sys.executable, "-X", "faulthandler", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def _compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiled")
    python(CRC + "crc32c.compiled(90)", folder)
    return folder


@pytest.fixture
def warm(_compiled: Path, tmp_path: Path) -> Path:
    """A cache in which `crc32c` is compiled."""
    shutil.copytree(_compiled, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_warnings_of_the_program_are_its_own_while_kernels_compile(tmp_path: Path) -> None:
    code = """
import threading, warnings
from distinput.kernels.checksums import crc32c, crc32c_portable
work = threading.Thread(target=lambda: (crc32c.compiled(90), crc32c_portable.compiled(90)))
filters = list(warnings.filters)
work.start()
rounds = lost = 0
while work.is_alive():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(50):
            warnings.warn("of the program")
    rounds, lost = rounds + 1, lost + (len(told) != 50)
assert rounds > 10
print(lost, warnings.filters == filters)
"""
    assert python(code, tmp_path).split() == ["0", "True"]


def test_importing_kernels_does_not_import_numba(tmp_path: Path) -> None:
    names = ", ".join(["checksums", "example_messages", "lines", "random_orders", "spans"])
    code = f"import sys; from distinput.kernels import {names}; assert not {{'numba', 'llvmlite'}} & set(sys.modules)"
    python(code, tmp_path)


def test_a_cold_cache_is_filled_behind_the_first_call(tmp_path: Path) -> None:
    code = CRC_IS_RIGHT + "print(crc32c.is_compiled); crc32c.compiled(90); assert crc32c(data) == 0xE3069283\n"
    code += "print(crc32c.is_compiled)"
    assert python(code, tmp_path).split() == ["False", "True"]
    assert len(list(tmp_path.rglob("*.nbc"))) == 1


def test_of_a_warm_cache_the_first_call_does_not_wait_and_the_second_one_does(warm: Path) -> None:
    python("from distinput.kernels.checksums import masked_crc32c; masked_crc32c.compiled(90)", warm)
    code = CRC + "import sys; crc32c._enqueue = lambda: None\n"  # a thread would get on with it at any time
    assert python(code + "crc32c(data); print(crc32c.is_compiled, 'numba' in sys.modules)", warm).split() == [
        "False", "False"
    ]  # fmt: skip
    code = CRC_IS_RIGHT * 2 + "print(crc32c.is_compiled)\n"
    code += (
        "from distinput.kernels.checksums import masked_crc32c; masked_crc32c(data); print(masked_crc32c.is_compiled)"
    )
    assert python(code, warm).split() == ["True", "True"]


def test_a_call_does_not_wait_behind_the_compilation_of_another_kernel(warm: Path) -> None:
    code = (
        "from distinput.kernels import example_messages; example_messages.locate_features._enqueue()\n"
        + CRC_IS_RIGHT * 2
    )
    code += "print(crc32c.is_compiled, example_messages.locate_features.is_compiled)"
    assert python(code, warm).split()[1] == "False"


def test_damaged_files_in_the_cache_are_compiled_again(warm: Path) -> None:
    (file,) = warm.rglob("*.nbc")
    whole = file.read_bytes()
    for content in (b"", whole[: len(whole) // 2], whole[:-1] + bytes([whole[-1] ^ 1])):
        file.write_bytes(content)
        python(CRC + "crc32c.compiled(90); assert crc32c(data) == 0xE3069283", warm)
        # Saved anew, though not byte for byte the same.
        assert len(file.read_bytes()) > len(whole) // 2


@pytest.mark.parametrize("folder", ["a file", "/proc/nowhere", "/dev/null/x"])
def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path: Path, folder: str) -> None:
    (tmp_path / "a file").write_text("")
    python(CRC + "crc32c.compiled(90); assert crc32c(data) == 0xE3069283", tmp_path / folder)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_cache_is_still_read(warm: Path) -> None:
    (warm / "distinput").chmod(0o500)
    python(CRC_IS_RIGHT + "assert crc32c.is_compiled", warm)


def test_without_numba_the_reference_serves(tmp_path: Path) -> None:
    code = "import sys; sys.modules['numba'] = None\n" + CRC_IS_RIGHT + "crc32c.wait(60)\n" + CRC_IS_RIGHT
    python(code + "assert not crc32c.is_compiled; assert isinstance(crc32c.error, ImportError)", tmp_path)
    code = "import sys; sys.modules['numba'] = None\n" + CRC
    code += "try:\n    crc32c(data)\nexcept ImportError:\n    print('told')"
    assert python(code, tmp_path, DISTINPUT_KERNELS="compiled").strip() == "told"


def test_a_program_may_end_during_a_compilation(tmp_path: Path) -> None:
    python(CRC_IS_RIGHT, tmp_path)
    locate = "import time; from distinput.kernels import example_messages, kernel\n"
    locate += "example_messages.locate_features._enqueue()\n"
    for pause in (0.2, 0.9, 0.0, 0.5, 1.5, 2.5)[: cases(2, 6)]:
        python(f"{locate}time.sleep({pause})", tmp_path / str(pause))


READ_SLOWLY = """if True:
    import distinput.kernels.compiler, pathlib, threading, time
    from distinput.kernels.checksums import crc32c

    reading = threading.Event()

    def read(path):
        file = open(path, "rb")
        reading.set()
        for _ in range(500):
            time.sleep(0.001)
        with file:
            return file.read()

    crc32c._place()  # reads the sources
    pathlib.Path.read_bytes = read
    crc32c._enqueue()
    assert reading.wait(60)
"""


@pytest.mark.parametrize("warnings", ["error", "default"])
def test_a_program_may_end_while_a_kernel_is_read(warm: Path, warnings: str) -> None:
    python(READ_SLOWLY, warm, PYTHONWARNINGS=warnings)


LINK_SLOWLY = """if True:
    import atexit, llvmlite.binding.module
    from distinput.kernels.checksums import crc32c

    of_llvmlite = vars(llvmlite.binding.module)
    exec('''if True:
        import threading, time

        begun, ended, called, link_in = [], [], threading.Event(), ModuleRef.link_in

        def slow(self, other, preserve=False):
            begun.append(other)
            called.set()
            for _ in range(300):
                time.sleep(0.001)
            link_in(self, other, preserve)
            ended.append(other)

        ModuleRef.link_in = slow
    ''', of_llvmlite)
    atexit.register(lambda: print(of_llvmlite["begun"] == of_llvmlite["ended"]))
    crc32c._enqueue()
    assert of_llvmlite["called"].wait(60)
"""


def test_a_program_that_ends_lets_llvm_note_who_owns_what(tmp_path: Path) -> None:
    assert python(LINK_SLOWLY, tmp_path) == "True\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_starts_its_own_compilation(tmp_path: Path) -> None:
    code = CRC_IS_RIGHT + "import os, sys\nchild = os.fork()\n"
    code += "assert crc32c(data) == 0xE3069283; crc32c.wait(60); assert crc32c(data) == 0xE3069283\n"
    code += "assert crc32c.is_compiled\n"
    code += "if child == 0: os._exit(0)\nassert os.waitpid(child, 0)[1] == 0"
    python("import warnings; warnings.simplefilter('ignore')\n" + code, tmp_path)


def test_the_mode_is_chosen_by_the_environment(tmp_path: Path) -> None:
    shown = CRC_IS_RIGHT + "import sys; print(crc32c.is_compiled, 'numba' in sys.modules)"
    assert python(shown, tmp_path, DISTINPUT_KERNELS="reference").split() == ["False", "False"]
    assert python(shown, tmp_path, DISTINPUT_KERNELS="compiled").split() == ["True", "True"]


def test_an_unknown_mode_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISTINPUT_KERNELS", "fast")
    fresh = Kernel(scan_lines.source, scan_lines.reference, None)
    with pytest.raises(ValueError, match="DISTINPUT_KERNELS must be one of auto, compiled, reference, got 'fast'"):
        fresh(np.zeros(1, np.uint8), 0, 1, np.zeros(1, np.int64), np.zeros(1, np.int64))


def test_a_kernel_that_cannot_be_compiled_is_told_once_and_served_by_its_reference(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reference(data: Bytes) -> int:
        return data.size

    def source(data: Bytes) -> int:
        return data.no_such_thing  # type: ignore[attr-defined,no-any-return]

    monkeypatch.delenv("DISTINPUT_KERNELS", raising=False)
    broken = Kernel(source, reference, None)
    assert broken(np.zeros(3, np.uint8)) == 3
    assert broken.wait(60)
    assert broken(np.zeros(3, np.uint8)) == 3
    assert "kernel source cannot be compiled" in caplog.text
    with pytest.raises(Exception, match="no_such_thing"):
        broken.compiled()


def test_types_that_are_not_known_are_told_when_a_kernel_is_declared() -> None:
    def reference(data: list[int]) -> int:
        return len(data)

    with pytest.raises(TypeError, match=r"kernel reference: the types must be among .*list\[int\]"):
        kernel(reference)(reference)


def test_a_name_is_taken_once() -> None:
    def crc32c(data: Bytes) -> int:
        return data.size

    with pytest.raises(ValueError, match=r"the name 'crc32c' is taken by distinput\.kernels\.checksums"):
        kernel(crc32c)(crc32c)


def test_a_kernel_can_be_sent_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(crc32c)) is crc32c


def test_many_threads_may_make_the_first_call_together() -> None:
    fresh = Kernel(scan_lines.source, scan_lines.reference, None)
    results = []

    def call() -> None:
        starts, lengths = np.zeros(9, np.int64), np.zeros(9, np.int64)
        results.append((fresh(np.frombuffer(b"a\nb\n", np.uint8), 0, 4, starts, lengths), lengths[:2].tolist()))

    threads = [threading.Thread(target=call) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [((2, 4), [1, 1])] * 16
    assert fresh.wait(60)
    assert fresh.is_compiled


def test_a_brief_look_uses_references_for_small_arrays_alone(tmp_path: Path) -> None:
    code = CRC + (
        "import sys; from distinput.kernels.kernel import brief, MOST_BRIEF\n"
        "with brief():\n"
        "    assert [crc32c(data) for _ in range(3)] == [0xE3069283] * 3\n"
        "    import threading; assert [each.name for each in threading.enumerate()] == ['MainThread']\n"
        "    large = crc32c(np.zeros(MOST_BRIEF + 1, np.uint8))\n"
        "assert crc32c.wait(60) and crc32c(np.zeros(MOST_BRIEF + 1, np.uint8)) == large"
    )
    python(code, tmp_path)


def test_a_change_in_a_called_function_makes_the_cache_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    digest = cache._digest
    before, unrelated = [cache._stamp(kernel.source, INLINED) for kernel in (scan_records, scan_lines)]
    called = sys.modules["distinput.kernels.checksums"].__file__
    monkeypatch.setattr(cache, "_digest", lambda file: "changed" if file == called else digest(file))
    assert cache._stamp(scan_records.source, INLINED) != before
    assert cache._stamp(scan_lines.source, INLINED) == unrelated


def test_arguments_of_another_type_are_refused_by_compiled_kernels() -> None:
    with pytest.raises(TypeError):
        crc32c.compiled()(np.zeros(3, np.float32))
    with pytest.raises(TypeError):
        crc32c.compiled()(np.zeros(6, np.uint8)[::2])


def test_signatures_come_from_annotations() -> None:
    def source(data: Bytes, starts: Ints, out: IntsOut, count: int, check: bool) -> tuple[int, int]:
        return count, int(check)

    expected = "UniTuple(int64, 2)(Array(uint8, 1, 'C', readonly=True), Array(int64, 1, 'C', readonly=True), "
    assert Kernel(source, source, None).signature == expected + "int64[::1], int64, boolean)"


def test_what_others_may_have_written_is_not_executed(tmp_path: Path) -> None:
    cache, marker = tmp_path / "cache", tmp_path / "marker"
    cache.mkdir()
    compiled = CRC + "crc32c.compiled(90)"
    python(compiled, cache)
    attack = pickle.dumps(_Attack(f"open({str(marker)!r}, 'w')"))
    files = list(cache.rglob("*.nbc"))
    assert files
    for file in files:
        file.write_bytes(hashlib.sha256(attack).digest() + attack)
    python(compiled, cache)
    assert marker.exists()  # in a folder of the user's own it is code like any other
    for file in files:
        file.write_bytes(hashlib.sha256(attack).digest() + attack)
    marker.unlink()
    cache.chmod(0o777)
    python(compiled, cache, PYTHONWARNINGS="ignore", HOME=str(tmp_path))
    assert not marker.exists()
    told = "import warnings; warnings.simplefilter('error'); from distinput.kernels import cache\n"
    told += "try: cache._folders('a')\nexcept RuntimeWarning as warning: print(warning)"
    assert f"NUMBA_CACHE_DIR={cache} is not used for compiled kernels" in python(told, cache)
    cache.chmod(0o755)
    files[0].chmod(0o666)
    python(compiled, cache)
    assert not marker.exists()


class _Attack:
    def __init__(self, code: str) -> None:
        self.code = code

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, (self.code,)
