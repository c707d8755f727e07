# SPDX-License-Identifier: Apache-2.0
"""`distinput cluster` and `distinput worker`: the processes of a `ParameterServerStrategy`."""
