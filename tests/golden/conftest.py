# SPDX-License-Identifier: Apache-2.0
"""The runner's own files are scripts that the tests import; they hold no tests and no examples."""

collect_ignore = ["adapter.py", "engine.py", "fns_np.py", "golden_common.py", "run_golden.py"]
