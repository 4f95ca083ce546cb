"""The tests of methods: light as the unit tests, but for those that are marked as integration."""

from tests.unit.conftest import light, pytest_make_collect_report

__all__ = ["light", "pytest_make_collect_report"]
