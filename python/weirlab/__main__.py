"""`python -m weirlab` is `weir`."""

from weirlab.cli import main

main()
