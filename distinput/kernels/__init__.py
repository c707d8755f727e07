# SPDX-License-Identifier: Apache-2.0
"""Compiled loops over NumPy arrays and numbers, each with a readable reference implementation (floor 0).

Nothing here imports numba before a kernel is first called, see `distinput.kernels.kernel`. The kernels:

* `checksums`: `crc32`, `crc32c`, `masked_crc32c`, `scan_records`, `frame_records`
* `dealing`: `deal_by_size`, `deal_evenly`, `choose_fairly`
* `example_messages`: `locate_features`, `unknown_key`
* `example_values`: `count_values`, `fill_floats`, `fill_int64s`, `fill_bytes_spans`
* `lines`: `scan_lines`, `json_lines`, `csv_records`
* `plain_csv`: `plain_csv`
* `plain_json`: `plain_json`
* `random_orders`: `shuffle_steps`, `drain_steps`, `exchange_rows`, `drain_rows`, `slots_at`, `permute`
* `sequence_messages`: `locate_steps`
* `sequence_packing`: `plan_rows`, `number_rows`, `fill_spans`, `cut_by_tokens`, `fill_windows`
* `spans`: `gather_rows`, `place_rows`, `pad_spans`, `gather_spans`
* `tar_samples`: `scan_samples`, `locate_members`

`python -m distinput.kernels` compiles all of them into the cache, for an image or a read-only installation.
"""
