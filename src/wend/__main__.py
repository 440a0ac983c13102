"""Run the command line with `python -m wend`."""

import sys

from wend.cli import main

if __name__ == "__main__":
    sys.exit(main())
