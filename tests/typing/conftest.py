# SPDX-License-Identifier: Apache-2.0
collect_ignore_glob = ["programs/*", "wrong/*"]  # test_programs.py runs the first, and the second cannot run
