"""``python -m reliability``: see `reliability.harness`.

The processes it starts do not import this file again, so nothing they call may stand here.
"""

import sys

from reliability.harness import main

if __name__ == "__main__":
    sys.exit(main())
