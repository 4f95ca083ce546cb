"""What calls of this method leave behind (tests/traces.py)."""

from collections.abc import Callable
from typing import Any

from kgbias.methods import profiles
from tests.traces import TraceWorld, open_writer

LEFT_OUT = {"profiles.compare_words": "needs profiles of many names"}
NAMES = [{"name": n, "group": g} for n, g in (("Ann", "a"), ("Bob", "b"), ("Eve", "a"))]
PROFILE = "Occupation: baker\nHobbies: tea\nPersonality: kind\nPersonality traits: kind"


def calls(world: TraceWorld) -> dict[str, Callable[[], Any]]:
    return {
        "profiles.write_profiles": lambda: profiles.write_profiles(
            world.study, open_writer(PROFILE), names=NAMES, samples=2
        ),
        "profiles.list_profiles": lambda: profiles.list_profiles(world.study.run(kind="profiles")),
        "profiles.write_page": lambda: profiles.write_page(
            world.study.run(kind="profiles"), world.folder / "p.html"
        ),
        "profiles.analyse_profiles": lambda: profiles.analyse_profiles(
            world.study.run(kind="profiles"), repeats=2
        ),
    }
