# SPDX-License-Identifier: Apache-2.0
"""A kernel never makes its caller wait, and never fails for want of a compiler, a cache or time."""

from __future__ import annotations

import ctypes
import os
import pickle
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from distinput.kernels import cache, object_code
from distinput.kernels.checksums import crc32c, scan_records
from distinput.kernels.kernel import (
    INLINED,
    WORTH_COMPILING,
    Bytes,
    BytesOut,
    Ints,
    IntsOut,
    Kernel,
    cached_kernels,
    kernel,
)
from distinput.kernels.lines import scan_lines
from distinput.kernels.machine import LONGEST_LOOP, copy_bytes, move_bytes
from distinput.kernels.random_orders import shuffle_steps
from distinput.kernels.sequence_packing import plan_rows
from tests.depth import cases, sampled

ROOT = Path(__file__).parents[2]
# The one for any machine: it is compiled in half the time.
IMPORT = "from distinput.kernels.checksums import crc32c_portable as crc32c"
CRC = f"import numpy as np; {IMPORT}; data = np.frombuffer(b'123456789', np.uint8)\n"
LOAD = "from distinput.kernels import kernel; kernel._spent = kernel.WORTH_LOADING\n"
COMPILE = "from distinput.kernels import kernel; kernel._spent = kernel.WORTH_COMPILING\n"
CRC_IS_RIGHT = CRC + "assert crc32c(data) == 0xE3069283\n"


OF_COMPILERS = "import sys; print({'numba', 'llvmlite'} & set(sys.modules))\n"
TELLS_THE_PROCESSOR = hasattr(ctypes.pythonapi, "__x86_get_cpuid_feature_leaf")
needs_linker = pytest.mark.skipif(
    not TELLS_THE_PROCESSOR or shutil.which("ld") is None, reason="needs glibc 2.33 on x86, and ld"
)


def python(code: str, folder: Path | str, **environment: str) -> str:
    """What a new process prints; it must end well and quietly."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(folder)} | environment
    command = [sys.executable, "-c", f"import faulthandler; faulthandler.enable()\n{code}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiled")
    python(CRC + "crc32c.compiled(90)", folder)
    return folder


@pytest.fixture
def warm(compiled: Path, tmp_path: Path) -> Path:
    """A cache in which `crc32c` is compiled."""
    shutil.copytree(compiled, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.mark.fresh_process
def test_warnings_of_the_program_are_its_own_while_kernels_compile(tmp_path: Path) -> None:
    code = """
import contextlib, threading, warnings
from distinput.kernels.checksums import crc32c_portable as crc32c
with contextlib.suppress(ImportError):
    import scipy.linalg  # numba imports it, and the modules of SciPy replace the filters for a moment while they load
work = threading.Thread(target=crc32c.compiled, args=(90,))
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


@pytest.mark.fresh_process
def test_importing_kernels_does_not_import_numba(tmp_path: Path) -> None:
    names = ", ".join(["checksums", "example_messages", "lines", "random_orders", "spans"])
    code = f"import sys; from distinput.kernels import {names}; assert not {{'numba', 'llvmlite'}} & set(sys.modules)"
    python(code, tmp_path)


def test_a_cold_cache_is_filled_behind_the_first_call(tmp_path: Path) -> None:
    code = CRC_IS_RIGHT + "print(crc32c.is_compiled); crc32c.compiled(90); assert crc32c(data) == 0xE3069283\n"
    code += "print(crc32c.is_compiled)"
    assert python(code, tmp_path).split() == ["False", "True"]
    assert len(list(tmp_path.rglob("*.nbc"))) == 1


@pytest.mark.fresh_process
def test_nothing_is_loaded_for_little_work(warm: Path) -> None:
    told = "import sys, threading; print({'numba', 'llvmlite'} & set(sys.modules), len(threading.enumerate()))"
    assert python(CRC_IS_RIGHT * 20 + told, warm).split() == ["set()", "1"]


@pytest.mark.fresh_process
def test_a_kernel_in_the_cache_is_loaded_at_its_first_call_without_numba(warm: Path) -> None:
    told = "import sys, threading; print(crc32c.is_compiled, 'numba' in sys.modules, len(threading.enumerate()))"
    assert python(LOAD + CRC_IS_RIGHT + told, warm).split() == ["True", "False", "1"]


JOB = """
import distinput as di
if not os.path.exists("records"):
    with di.io.TFRecordWriter("records") as writer:
        for number in range(3000):
            writer.write(bytes([number % 251]) * (number % 97))
batches = di.data.TFRecordDataset("records").shuffle(50, seed=7).batch(8)
print(hash(tuple(record for batch in batches.as_numpy_iterator() for record in batch)))
print(len([each for each in kernel.KERNELS.values() if each.is_compiled]))
"""


@needs_linker
@pytest.mark.fresh_process
def test_a_job_whose_kernels_are_linked_needs_no_compiler(tmp_path: Path) -> None:
    job = f"import os; os.chdir({str(tmp_path)!r}); from distinput.kernels import kernel\n{JOB}{OF_COMPILERS}"
    right, none, _ = python(job, tmp_path, PYTHONHASHSEED="0", DISTINPUT_KERNELS="reference").split()
    python(job, tmp_path, PYTHONHASHSEED="0", DISTINPUT_KERNELS="compiled")
    ours, count, compilers = python(job, tmp_path, PYTHONHASHSEED="0", DISTINPUT_KERNELS="compiled").split()
    assert (ours, none, compilers) == (right, "0", "set()")
    assert int(count) > 1  # several libraries in one process


@pytest.mark.fresh_process
def test_without_a_linker_object_code_is_kept_and_loaded(tmp_path: Path) -> None:
    python(CRC + "crc32c.compiled(90)", tmp_path, PATH="")
    told = (
        LOAD + CRC_IS_RIGHT + "import sys; print(crc32c.is_compiled, 'numba' in sys.modules, 'llvmlite' in sys.modules)"
    )
    for path in ("", os.environ["PATH"]):
        assert python(told, tmp_path, PATH=path).split() == ["True", "False", "True"]


@needs_linker
@pytest.mark.fresh_process
def test_a_linked_kernel_needs_no_linker_any_more(warm: Path) -> None:
    assert python(LOAD + CRC_IS_RIGHT + "print(crc32c.is_compiled)\n" + OF_COMPILERS, warm, PATH="").split() == [
        "True", "set()"
    ]  # fmt: skip


@needs_linker
def test_a_library_that_cannot_be_made_or_loaded_is_object_code(monkeypatch: pytest.MonkeyPatch) -> None:
    from distinput.kernels import compiler

    assert compiler.linked(b"no code") == b"no code"

    def source(data: Bytes) -> int:
        return data.size + 9

    def refuse(code: bytes) -> None:
        raise OSError("cannot enable executable memory")

    kernel = Kernel(source, source, None)
    assert compiler.build(kernel.source, kernel.signature, ())[16] == 3  # a shared library
    monkeypatch.setattr(compiler, "entry", refuse)
    code = compiler.build(kernel.source, kernel.signature, ())
    assert code[16] == 1
    assert object_code.load("source", ["Bytes"], code)(np.zeros(3, np.uint8)) == 12


@needs_linker
def test_a_linked_kernel_copies_by_the_one_function_that_glibc_has_for_this_processor() -> None:
    from distinput.kernels import compiler

    def source(out: Bytes, data: Bytes) -> None:
        move_bytes(out, 0, data, 0, data.size)

    code = compiler.build(source, Kernel(source, source, None).signature, ())
    assert b"\0memmove\0" in code
    assert b"\0memcpy\0" not in code  # without a version it is that of 2002, with short vectors
    out = np.zeros(999, np.uint8)
    object_code.load("source", ["Bytes", "Bytes"], code)(out, np.arange(999).astype(np.uint8))
    assert (out == np.arange(999).astype(np.uint8)).all()


def test_bytes_are_copied_and_no_others_are_touched() -> None:
    def source(out: BytesOut, to: int, data: Bytes, start: int, count: int) -> None:
        copy_bytes(out, to, data, start, count)

    copy = Kernel(source, source, None).compiled(90)
    data = np.random.default_rng(1).integers(0, 255, 9000).astype(np.uint8)
    for count in [*range(300), LONGEST_LOOP - 1, LONGEST_LOOP, LONGEST_LOOP + 1, LONGEST_LOOP + 700]:
        expected = np.full(9100, 255, np.uint8)
        expected[7 : 7 + count] = data[13 : 13 + count]
        for each in (source, copy):
            out = np.full(9100, 255, np.uint8)
            each(out, 7, data, 13, count)
            assert np.array_equal(out, expected), (count, each)


@needs_linker
@pytest.mark.fresh_process
def test_a_damaged_library_is_not_loaded(warm: Path) -> None:
    (file,) = warm.rglob("*.nbc")
    whole = file.read_bytes()
    code = "import sys; sys.addaudithook(lambda event, args: event == 'ctypes.dlopen' and print(str(args[0])[:14]))\n"
    code += LOAD + CRC_IS_RIGHT + "print(crc32c.is_compiled)"
    assert python(code, warm).split()[-2:] == ["/proc/self/fd/", "True"]
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    shown = python(code, warm).split()
    assert shown[-1] == "False"
    assert "/proc/self/fd/" not in shown


@pytest.mark.fresh_process
def test_code_for_another_processor_is_not_loaded(warm: Path) -> None:
    code = LOAD + "from distinput.kernels import object_code; object_code._processor = lambda: ('another', )\n"
    assert python(code + CRC_IS_RIGHT + "print(crc32c.is_compiled)", warm).split() == ["False"]


@pytest.mark.skipif(not TELLS_THE_PROCESSOR, reason="needs glibc 2.33 on x86")
@pytest.mark.fresh_process
def test_the_name_of_a_processor_is_the_same_on_all_of_its_cores(tmp_path: Path) -> None:
    shown = "from distinput.kernels import object_code; print(object_code._processor())"
    code = "import os, sys; os.sched_setaffinity(0, [int(os.environ['CORE'])])\n"
    code += f"os.execv(sys.executable, ['python', '-c', {shown!r}])"
    assert len({python(code, tmp_path, CORE=str(core)) for core in sorted(os.sched_getaffinity(0))[:4]}) == 1


def test_no_kernel_is_kept_where_nothing_tells_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> None:
        raise ModuleNotFoundError("No module named 'llvmlite'")

    monkeypatch.setattr(object_code, "_compiled_by_and_for", absent)
    assert set(cached_kernels().values()) == {False}


def test_llvm_tells_the_processor_where_the_c_library_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    import llvmlite.binding as llvm  # type: ignore[import-untyped]

    monkeypatch.setattr(object_code, "ctypes", SimpleNamespace(pythonapi=None))
    assert object_code._processor()[:2] == (llvm.get_process_triple(), llvm.get_host_cpu_name())


def test_a_kernel_in_the_cache_is_loaded_for_a_first_call_with_much(warm: Path) -> None:
    much = CRC + "crc32c(np.zeros(1 << 23, np.uint8)); print(crc32c.is_compiled, kernel._spent)"
    assert python("from distinput.kernels import kernel\n" + much, warm).split() == ["True", "0.0"]


def test_a_call_that_would_take_the_reference_long_has_the_kernel_loaded(warm: Path) -> None:
    code = (
        CRC_IS_RIGHT + "crc32c._seconds, crc32c._bytes = 1.0, 1 << 20\n" + CRC_IS_RIGHT + "print(crc32c.is_compiled)\n"
    )
    assert python(code + "crc32c(np.zeros(1 << 20, np.uint8)); print(crc32c.is_compiled)", warm).split() == [
        "False", "True"
    ]  # fmt: skip


def test_a_kernel_is_compiled_once_references_have_worked_for_long(tmp_path: Path) -> None:
    code = LOAD + CRC_IS_RIGHT + "before = kernel._spent; crc32c(np.zeros(1 << 16, np.uint8))\n"
    code += "print(before < kernel._spent, len(kernel._queue))\n" + COMPILE + CRC_IS_RIGHT + "print(*kernel._queue)"
    assert python(code, tmp_path).split() == ["True", "0", "<kernel", "crc32c_portable:", "reference>"]


@pytest.mark.fresh_process
def test_a_kernel_that_another_process_compiles_is_loaded_when_it_is_there(tmp_path: Path, compiled: Path) -> None:
    folder = tmp_path / "distinput"
    folder.mkdir()
    told = "print(crc32c.is_compiled, 'numba' in sys.modules)\n"
    code = COMPILE + CRC_IS_RIGHT + f"import pathlib, shutil, sys, time; time.sleep(0.5)\n{told}"
    code += f"for file in pathlib.Path({str(compiled / 'distinput')!r}).iterdir(): shutil.copy(file, {str(folder)!r})\n"
    code += f"crc32c.wait(60)\n{told}"
    with object_code.claimed(("crc32c_portable", [str(folder)])) as is_ours:
        assert is_ours
        assert python(code, tmp_path).split() == ["False", "False", "True", "False"]


def test_a_process_compiles_when_another_one_takes_too_long(tmp_path: Path) -> None:
    (tmp_path / "distinput").mkdir()
    code = "from distinput.kernels import kernel; kernel.LONGEST_COMPILATION_ELSEWHERE = 0.3\n" + CRC
    with object_code.claimed(("crc32c_portable", [str(tmp_path / "distinput")])):
        python(code + "crc32c.compiled(90)", tmp_path)


COMPILE_UNTIL_TOLD = """
import threading
from distinput.kernels.example_messages import locate_features

begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

def build(load_only=False):
    begun.set()
    may_end.wait(60)
    ended.set()
    locate_features._finish(None, None)

locate_features._build = build
locate_features._enqueue()
assert begun.wait(60)
"""


def test_a_call_does_not_wait_behind_the_compilation_of_another_kernel(warm: Path) -> None:
    code = LOAD + COMPILE_UNTIL_TOLD + CRC_IS_RIGHT * 2 + "assert not ended.is_set()\nmay_end.set()\n"
    python(code + "assert crc32c.wait(60) and crc32c.is_compiled", warm)


def test_damaged_files_in_the_cache_are_compiled_again(warm: Path) -> None:
    (file,) = warm.rglob("*.nbc")
    whole = file.read_bytes()
    for content in sampled([b"", whole[:-1] + bytes([whole[-1] ^ 1])], [whole[: len(whole) // 2]]):
        file.write_bytes(content)
        python(CRC + "crc32c.compiled(90); assert crc32c(data) == 0xE3069283", warm)
        # Saved anew, though not byte for byte the same.
        assert len(file.read_bytes()) > len(whole) // 2


@pytest.mark.parametrize("folder", sampled(["a file"], ["/proc/nowhere", "/dev/null/x"]))
def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path: Path, folder: str) -> None:
    (tmp_path / "a file").write_text("")
    python(CRC + "crc32c.compiled(90); assert crc32c(data) == 0xE3069283", tmp_path / folder)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_cache_is_still_read(warm: Path) -> None:
    (warm / "distinput").chmod(0o500)
    python(LOAD + CRC_IS_RIGHT + "assert crc32c.is_compiled", warm)


def test_without_numba_the_reference_serves(tmp_path: Path) -> None:
    code = "import sys; sys.modules['numba'] = None\n" + CRC_IS_RIGHT + "crc32c.wait(60)\n" + CRC_IS_RIGHT
    python(code + "assert not crc32c.is_compiled; assert isinstance(crc32c.error, ImportError)", tmp_path)
    code = "import sys; sys.modules['numba'] = None\n" + CRC
    code += "try:\n    crc32c(data)\nexcept ImportError:\n    print('told')"
    assert python(code, tmp_path, DISTINPUT_KERNELS="compiled").strip() == "told"


@pytest.mark.fresh_process
def test_a_program_may_end_during_a_compilation(tmp_path: Path) -> None:
    python(COMPILE + CRC_IS_RIGHT, tmp_path)
    locate = "import time; from distinput.kernels import example_messages, kernel\n"
    locate += "example_messages.locate_features._enqueue()\n"
    for pause in (0.2, 0.9, 0.0, 0.5, 1.5, 2.5)[: cases(2, 6)]:
        python(f"{locate}time.sleep({pause})", tmp_path / str(pause))


READ_SLOWLY = """if True:
    import threading, time
    from distinput.kernels import object_code
    from distinput.kernels.checksums import crc32c_portable as crc32c

    reading = threading.Event()

    def open_slowly(path, *rest, **named):
        file = open(path, *rest, **named)
        if path.endswith(".nbc"):
            reading.set()
            for _ in range(500):
                time.sleep(0.001)
        return file

    crc32c._place()  # reads the sources
    object_code.open = open_slowly
    crc32c._enqueue()
    assert reading.wait(60)
"""


@pytest.mark.fresh_process
@pytest.mark.parametrize("warnings", ["error", "default"])
def test_a_program_may_end_while_a_kernel_is_read(warm: Path, warnings: str) -> None:
    python(READ_SLOWLY, warm, PYTHONWARNINGS=warnings)


RUN_THE_LINKER_SLOWLY = """if True:
    import atexit, subprocess, threading, time
    from distinput.kernels.checksums import crc32c_portable as crc32c

    run, running, ended = subprocess.run, threading.Event(), []

    def slow(*given, **named):
        running.set()
        for _ in range(300):
            time.sleep(0.001)
        ended.append(run(*given, **named).returncode)

    subprocess.run = slow
    atexit.register(lambda: print(ended))
    crc32c._enqueue()
    assert running.wait(60)
"""


@needs_linker
@pytest.mark.fresh_process
def test_a_program_that_ends_waits_for_the_linker(tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    assert python(RUN_THE_LINKER_SLOWLY, tmp_path / "cache", TMPDIR=str(tmp_path / "temporary")) == "[0]\n"
    assert not list((tmp_path / "temporary").iterdir())


LINK_SLOWLY = """if True:
    import atexit, llvmlite.binding.module
    from distinput.kernels.checksums import crc32c_portable as crc32c

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


@pytest.mark.fresh_process
def test_a_program_that_ends_lets_llvm_note_who_owns_what(tmp_path: Path) -> None:
    assert python(LINK_SLOWLY, tmp_path) == "True\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_starts_its_own_compilation(tmp_path: Path) -> None:
    code = COMPILE + "kernel.LONGEST_FORK = 250\n" + CRC_IS_RIGHT + "import os, sys\nchild = os.fork()\n"
    code += "assert crc32c(data) == 0xE3069283; crc32c.wait(250); assert crc32c(data) == 0xE3069283\n"
    code += "assert crc32c.is_compiled\n"
    code += "if child == 0: os._exit(0)\nassert os.waitpid(child, 0)[1] == 0"
    python("import warnings; warnings.simplefilter('ignore')\n" + code, tmp_path)


@pytest.mark.fresh_process
def test_the_mode_is_chosen_by_the_environment(tmp_path: Path) -> None:
    shown = CRC_IS_RIGHT + "import sys; print(crc32c.is_compiled, 'numba' in sys.modules)"
    assert python(shown, tmp_path, DISTINPUT_KERNELS="reference").split() == ["False", "False"]
    assert python(shown, tmp_path, DISTINPUT_KERNELS="compiled").split() == ["True", "True"]
    assert python(shown, tmp_path, DISTINPUT_KERNELS="compiled").split() == ["True", "False"]


def test_an_unknown_mode_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISTINPUT_KERNELS", "fast")
    fresh = Kernel(scan_lines.source, scan_lines.reference, None)
    with pytest.raises(ValueError, match="DISTINPUT_KERNELS must be one of auto, compiled, reference, got 'fast'"):
        fresh(np.zeros(1, np.uint8), 0, 1, np.zeros(1, np.int64), np.zeros(1, np.int64))


def test_a_variable_of_the_environment_may_go_while_a_kernel_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core import config

    from distinput.kernels import compiler

    def source(data: Bytes) -> int:
        return data.size + 7

    update, missing = config._env_reloader.update, ["GONE"]

    def reading(*given: object) -> None:
        if missing:
            raise KeyError(missing.pop())
        update(*given)

    monkeypatch.setattr(config._env_reloader, "update", reading)
    assert len(compiler.build(source, Kernel(source, source, None).signature, ())) > 100
    assert not missing


def test_a_kernel_that_cannot_be_compiled_is_told_once_and_served_by_its_reference(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reference(data: Bytes) -> int:
        return data.size

    def source(data: Bytes) -> int:
        return data.no_such_thing  # type: ignore[attr-defined,no-any-return]

    monkeypatch.delenv("DISTINPUT_KERNELS", raising=False)
    broken = Kernel(source, reference, None)
    monkeypatch.setattr("distinput.kernels.kernel._spent", WORTH_COMPILING)
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


def test_a_change_in_a_called_function_makes_the_cache_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    digest = cache._digest
    before, unrelated = [cache._stamp(kernel.source, INLINED) for kernel in (scan_records, scan_lines)]
    called = sys.modules["distinput.kernels.checksums"].__file__
    monkeypatch.setattr(cache, "_digest", lambda file: "changed" if file == called else digest(file))
    assert cache._stamp(scan_records.source, INLINED) != before
    assert cache._stamp(scan_lines.source, INLINED) == unrelated


def test_arguments_of_another_type_are_refused_by_compiled_kernels() -> None:
    function: Any = crc32c.compiled()
    shuffle: Any = shuffle_steps.compiled()
    scan: Any = scan_lines.compiled()
    swapped, unaligned = np.zeros(3, ">i8"), np.zeros(33, np.uint8)[1:].view(np.int64)
    read_only = np.zeros(3, np.int64)
    read_only.flags.writeable = False
    for wrong in (
        np.zeros(3, np.float32),
        np.zeros(6, np.uint8)[::2],
        np.zeros((2, 3), np.uint8),
        np.zeros(3, bool),
        3,
    ):
        with pytest.raises(TypeError, match=r"kernel crc32c: argument 0 must be Bytes: one dimension, in C order"):
            function(wrong)
    for wrong in (swapped, unaligned, read_only, np.zeros(3, np.uint64), np.zeros(3, np.int32)):
        with pytest.raises(TypeError, match="kernel shuffle_steps: argument 0 must be IntsOut"):
            shuffle(wrong, 0, 0, np.zeros(0, np.int64), np.zeros(0, np.int64))
    for args in ((), (np.zeros(1, np.uint8), 1)):
        with pytest.raises(TypeError, match="kernel crc32c: it takes 1 arguments"):
            function(*args)
    with pytest.raises(TypeError, match="interpreted as an integer"):
        scan(np.zeros(1, np.uint8), 0.0, 1, np.zeros(1, np.int64), np.zeros(1, np.int64))


def test_buffers_are_given_back_after_a_call_and_after_an_error() -> None:
    scan: Any = scan_lines.compiled()
    data = bytearray(9)
    crc32c.compiled()(np.frombuffer(data, np.uint8))
    with pytest.raises(ValueError, match="scan_lines: 0 <= start"):
        scan(np.frombuffer(data, np.uint8), 5, 1, np.zeros(1, np.int64), np.zeros(1, np.int64))
    with pytest.raises(TypeError):
        scan(np.frombuffer(data, np.uint8), 0, 1, np.zeros(1, np.int64), 7)
    data.append(0)  # is an error while there is a buffer of it


def test_memory_that_kernels_allocate_is_freed() -> None:
    import resource

    sizes = np.ones(1 << 20, np.int64)
    order, bounds = np.empty(1 << 20, np.int64), np.empty((1 << 20) + 1, np.int64)
    plan_rows.compiled()(sizes, 8, True, order, bounds)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(32):  # sixteen megabytes each
        plan_rows.compiled()(sizes, 8, True, order, bounds)
    # A thread that compiles another kernel meanwhile takes some too.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + (256 << 10)


def test_signatures_come_from_annotations() -> None:
    def source(data: Bytes, starts: Ints, out: IntsOut, count: int, check: bool) -> tuple[int, int]:
        return count, int(check)

    expected = "UniTuple(int64, 2)(Array(uint8, 1, 'C', readonly=True), Array(int64, 1, 'C', readonly=True), "
    assert Kernel(source, source, None).signature == expected + "int64[::1], int64, boolean)"


def test_what_others_may_have_written_is_not_executed(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    python(CRC + "crc32c.compiled(90)", cache)
    (file,) = cache.rglob("*.nbc")
    attack = f"from distinput.kernels import kernel, object_code; {IMPORT}\n"
    attack += "def source(data): return 7\nmade = kernel.compiler().build(source, crc32c.signature, [])\n"
    attack += "object_code.write(crc32c._place(), crc32c.signature, made)"
    python(attack, cache)
    shown = LOAD + CRC + "print(crc32c(data), crc32c.is_compiled)"
    assert python(shown, cache).split() == ["7", "True"]  # in a folder of the user's own it is code like any other
    right = [str(0xE3069283), "False"]
    cache.chmod(0o777)
    assert (
        python(shown, cache, PYTHONWARNINGS="ignore", HOME=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))[:10] == right[0]
    )
    told = "import warnings; warnings.simplefilter('error'); from distinput.kernels import cache\n"
    told += "try: cache._folders('a')\nexcept RuntimeWarning as warning: print(warning)"
    assert f"NUMBA_CACHE_DIR={cache} is not used for compiled kernels" in python(told, cache)
    cache.chmod(0o755)
    file.chmod(0o666)
    assert python(shown, cache).split() == right
    file.chmod(0o644)
    assert python(shown, cache, NUMBA_OPT="1").split() == right  # compiled with other settings
    assert python(shown, cache).split() == ["7", "True"]
    content = file.read_bytes()
    file.write_bytes(content[:-1] + b"?")
    assert python(shown, cache).split() == right
    other = file.with_name(file.name.replace("crc32c", "crc32"))
    other.write_bytes(content)
    file.unlink()
    file.symlink_to(other)
    assert python(shown, cache).split() == right  # a link may lead anywhere
