# SPDX-License-Identifier: Apache-2.0
"""LanceDB's cases of elastic loaders, with our entrant in the place of its `StreamingDataset`.

They are in LanceDB's repository and not in its package, so `LANCEDB` names a checkout.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("lancedb", reason="left out: lancedb is not installed")

APART = {
    "its arguments, attributes and counters": (
        "concurrent_iteration_raises",
        "raw_queue_depth_zero",
        "prefetch_queue_depth",
        "fetch_and_transform_time",
        "fetch_time_excludes",
        "bytes_loaded",
        "transform_parallelism",
        "worker_info_override_logs",
        "num_splits_defaults",
        "shuffle_seed_none",
        "doc_example_observability",
        "filter_too_few_rows",
        "columns_invalid_column",
        "on_transform_error_invalid",
        "on_transform_error_warn",
        "on_transform_error_callable",
        "transform_wrong_row_count",
        "streaming_dataset_over_remote_table",
    ),
    "the layout of its states": ("required_keys", "without_positions_key", "merge_state_dicts", "elastic_merge"),
    "rows that are left out shorten the split they were in; here the next rows take their places, so that steps are full": (
        "skip_drops_bad_rows",
        "skip_uneven_ends",
        "skip_deterministic_across_runs",
        "resumability_with_skips_same",
        "rows_skipped_flushed",
    ),
}
"""Words in the names of its cases that are not about what comes and goes on, and why."""

PLUGIN = """
import lancedb.streaming
from tests.outside.lance_entrant import Entrant
lancedb.streaming.StreamingDataset = Entrant
"""


@pytest.mark.timeout(900)
def test_elastic_loaders(tmp_path: Path) -> None:
    found = sorted(Path(os.environ.get("LANCEDB", "no-such-folder")).rglob("test_elastic_dataloader.py"))
    if not found:
        pytest.skip("left out: LANCEDB names no checkout of LanceDB with test_elastic_dataloader.py")
    (tmp_path / "entrant_plugin.py").write_text(PLUGIN, encoding="utf-8")
    paths = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    others = " or ".join([word for words in APART.values() for word in words])
    options = ["-q", "--noconftest", "-p", "entrant_plugin", "-k", f"not ({others})"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(found[0])],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    print(done.stdout.splitlines()[-1])
