# SPDX-License-Identifier: Apache-2.0
"""DLIO reads small files with our entrant, to their end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("dlio_benchmark", reason="left out: dlio_benchmark is not installed")


@pytest.mark.timeout(600)
def test_an_epoch_of_small_files(tmp_path: Path) -> None:
    common = [
        "workload=unet3d_a100",
        f"++workload.dataset.data_folder={tmp_path}/data",
        "++workload.dataset.num_files_train=8",
        "++workload.dataset.record_length_bytes=4096",
        "++workload.dataset.record_length_bytes_stdev=0",
        "++workload.reader.batch_size=2",
        "++workload.train.epochs=1",
        "++workload.train.computation_time=0.001",
        f"hydra.run.dir={tmp_path}/out",
    ]
    making = ["++workload.workflow.generate_data=True", "++workload.workflow.train=False"]
    reading = [
        "++workload.workflow.generate_data=False",
        "++workload.workflow.train=True",
        "++workload.reader.data_loader_classname=tests.outside.dlio_entrant.Entrant",
    ]
    for steps in (making, reading):
        done = subprocess.run(
            [sys.executable, "-m", "dlio_benchmark.main", *common, *steps],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
