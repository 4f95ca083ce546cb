"""`python -m kgbias` is `kgbias`."""

from kgbias.cli import main

main()
