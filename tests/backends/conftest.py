"""The tests of backends are light, like the unit tests, but for those in a folder `integration`."""

from tests.unit.conftest import light, pytest_make_collect_report

__all__ = ["light", "pytest_make_collect_report"]
