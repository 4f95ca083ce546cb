"""`python -m kgbias` is `kgbias`."""

from kgbias.start import main

main()
