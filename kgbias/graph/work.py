"""How long making a run takes."""

import time

from kgbias.graph.store import Store


class Watch:
    """Says how long a model was asked for a run. `note` adds the time that has passed since the
    last note, so that a process that is killed loses no more; time in which nothing was asked is
    left out, so that reading a finished run back from the answer log adds nothing. The clock is
    monotonic: setting the computer's own does not move it."""

    def __init__(self) -> None:
        self._noted, self._asked = time.monotonic(), 0

    def note(self, store: Store, run_id: str, asked: int) -> None:
        """Add the time since the last note, if more requests were `asked` by now than then."""
        now = time.monotonic()
        if asked > self._asked:
            store.add_work(run_id, now - self._noted)
        self._noted, self._asked = now, asked
