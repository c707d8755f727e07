# SPDX-License-Identifier: Apache-2.0
"""A forked process is what a new one would be, but for what is loaded."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.nursery import FORKED, restore_variables
from tests.patience import wait_until

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="processes are forked on Linux alone")

SAYS_ALL = """
import json, os, sys, warnings
warnings.warn("told")
print(json.dumps([__name__, sys.argv, sys.path[0], os.getcwd(), os.environ.get("MINE"), os.getppid(), sys.stdin.read()]))
print(sys.dont_write_bytecode)
print("an error", file=sys.stderr)
sys.exit(7)
"""


def told(words: list[str], folder: Path, *flags: str) -> tuple[str, str, int]:
    environment = {**os.environ, "MINE": "set", "PYTHONWARNINGS": "error::DeprecationWarning"}
    command = [sys.executable, "-W", "ignore::UserWarning", *flags, *words]
    done = subprocess.run(
        command, input="in", cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    return done.stdout, done.stderr, done.returncode


@pytest.mark.parametrize("flags", [[], ["-B"]], ids=str)
@pytest.mark.parametrize("kind", ["code", "module", "script"])
def test_a_program_sees_what_it_would_see_in_a_new_process(kind: str, flags: list[str], tmp_path: Path) -> None:
    (tmp_path / "says_all.py").write_text(SAYS_ALL)
    words = {"code": ["-c", SAYS_ALL], "module": ["-m", "says_all"], "script": ["says_all.py"]}[kind]
    FORKED.on = True
    forked = told([*words, "a", "b"], tmp_path, *flags)
    FORKED.on = False
    assert forked == told([*words, "a", "b"], tmp_path, *flags)
    assert forked[1:] == ("an error\n", 7)


ENDS = """
import atexit, sys, threading, time
atexit.register(print, "the last word")
threading.Thread(target=lambda: (time.sleep(0.05), print("a thread"))).start()
print("written", end="; ")
"""


@pytest.mark.parametrize(
    "how", ["", "sys.exit()", "sys.exit(3)", "sys.exit('the reason')", "1 / 0", "raise KeyboardInterrupt"]
)
def test_it_ends_as_a_new_process_does(how: str, tmp_path: Path) -> None:
    FORKED.on = True
    forked = told(["-c", ENDS + how], tmp_path)
    FORKED.on = False
    fresh = told(["-c", ENDS + how], tmp_path)
    assert (forked[0], forked[1].splitlines()[-1:], forked[2]) == (fresh[0], fresh[1].splitlines()[-1:], fresh[2])


@pytest.mark.parametrize("unbuffered", ["1", ""])
def test_what_is_written_comes_at_once_where_it_is_asked_for(unbuffered: str) -> None:
    FORKED.on = True
    code = "import os; print('text', end=''); os._exit(0)"
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout == ("text" if unbuffered else "")


def test_a_file_left_open_is_told_at_its_end(tmp_path: Path) -> None:
    FORKED.on = True
    code = f"file = open({str(tmp_path / 'open')!r}, 'w')"
    command = [sys.executable, "-W", "always", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert "ResourceWarning: unclosed file" in done.stderr


def test_it_is_a_fork() -> None:
    FORKED.on = True
    code = "import sys; print('distinput' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "True\n"
    # What a process with PYTHONDONTWRITEBYTECODE gives to those that it starts, as distinput's clusters do.
    done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "True\n"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "False\n", "with a flag it is none"


def test_variables_that_a_test_leaves_behind_end_with_it() -> None:
    before = dict(os.environ)
    os.environ["PYTHONHASHSEED"] = "6640"  # as the nannies of a Dask cluster in this process do
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    restore_variables()
    assert dict(os.environ) == before


def test_a_cluster_that_was_here_hinders_no_fork() -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None):
        pass
    restore_variables()
    test_it_is_a_fork()


STARTS = """
import os, subprocess, sys
code = "import os, sys; print('distinput' in sys.modules, os.getppid(), os.getsid(0) == os.getpid(), flush=True); os._exit(3)"
for own in (True, False):
    print(subprocess.call([sys.executable, "-u", "-c", code], start_new_session=own), os.getpid(), flush=True)
"""


def test_a_fork_forks_what_leads_a_session() -> None:
    FORKED.on = True
    command = [sys.executable, "-c", STARTS]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    first, ended, second, ended_too = done.stdout.splitlines()
    code, pid = ended.split()
    assert (code, first.split()) == ("3", ["True", pid, "True"])
    assert (ended_too, second.split()) == (ended, ["False", pid, "False"])


@pytest.mark.fresh_process
def test_who_says_so_has_a_new_process() -> None:
    code = "import sys; print('distinput' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "False\n"


def test_the_end_of_a_fork_is_told() -> None:
    FORKED.on = True
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.05)
        process.terminate()
        assert process.wait(60) == -signal.SIGTERM
        assert process.poll() == -signal.SIGTERM
    with subprocess.Popen([sys.executable, "-c", "1 / 0"], stderr=subprocess.PIPE, text=True) as process:
        assert "ZeroDivisionError" in process.communicate(timeout=300)[1]
    assert process.returncode == 1


def test_files_are_handed_on_under_their_numbers() -> None:
    FORKED.on = True
    reads, writes = os.pipe()
    code = f"import os; os.write({writes}, str(os.getsid(0) == os.getpid()).encode())"
    with subprocess.Popen([sys.executable, "-c", code], pass_fds=[writes], start_new_session=True) as process:
        assert process.wait(60) == 0
    os.close(writes)
    assert os.read(reads, 10) == b"True"
    os.close(reads)


WAITS = """
import os, time
first = os.getppid()
print(flush=True)
while os.getppid() == first:
    time.sleep(0.01)
open("told", "w").close()
"""
LEADS = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", {WAITS!r}], start_new_session=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("forked", [True, False])
def test_a_process_is_told_that_the_one_that_started_it_was_killed(forked: bool, tmp_path: Path) -> None:
    FORKED.on = forked
    with subprocess.Popen(
        [sys.executable, "-c", LEADS], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as starter:
        assert starter.stdout is not None
        starter.stdout.readline()
        starter.kill()
    wait_until((tmp_path / "told").exists)
