# SPDX-License-Identifier: Apache-2.0
"""What an engine reports; the errors that users get from it are in `distinput.errors`."""

__all__ = ["ChannelLost"]


class ChannelLost(Exception):
    """What a channel raises when its engine reports a failure; `Collectives` finds out whose it is."""
