# SPDX-License-Identifier: Apache-2.0
"""`python -m distinput` is the same as the command `distinput`."""

import sys

from distinput.cli import main

if __name__ == "__main__":
    sys.exit(main())
