# SPDX-License-Identifier: Apache-2.0
"""Options that do not exist, and values that they do not have: what both type checkers must refuse."""

import distinput as di

options = di.data.Options()
options.determinstic = True  # refused
options.deterministic = "yes"  # refused
options.threading.threads = 3  # refused
options.threading.private_threadpool_size = "3"  # refused
options.threading = 3  # refused
options.experimental_distribute.auto_shard_policy = "OFF"  # refused
options.experimental_threading.size = 3  # refused
options.experimental_deterministic = 3.5  # refused
print(options.run_ahed)  # refused
options.run_ahead = 3
options.experimental_distribute.auto_shard_policy = di.data.experimental.AutoShardPolicy.OFF
