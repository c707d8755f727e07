# SPDX-License-Identifier: Apache-2.0
"""How the replicas of one process add their values: the classes that `MirroredStrategy(cross_device_ops=)` takes."""
