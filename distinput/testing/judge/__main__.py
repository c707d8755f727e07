# SPDX-License-Identifier: Apache-2.0
"""`python -m distinput.testing.judge`."""

import sys

from distinput.testing.judge.command import main

if __name__ == "__main__":
    sys.exit(main())
