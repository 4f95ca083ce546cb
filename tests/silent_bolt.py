"""A database that greets, as Neo4j does, and then never says a word: what is asked is not
answered."""

import socket
import threading
from collections.abc import Callable

_VERSION = b"\x00\x00\x04\x05"  # Bolt 5.4
_HELLO, _LOGON, _RESET = 0x01, 0x6A, 0x0F
_SUCCESS = b"\xb1\x70\xa0"
_GREETING = b"\xb1\x70\xa2\x86server\x8cNeo4j/5.26.0\x8dconnection_id\x811"


class SilentBolt:
    """Takes connections on `url`; `asked` counts what was asked, and `when_asked` is called at
    each."""

    def __init__(self, when_asked: Callable[[], object] = lambda: None) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"bolt://127.0.0.1:{self._listening.getsockname()[1]}"
        self.asked = 0
        self.when_asked = when_asked
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        while True:
            connection = self._listening.accept()[0]
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as messages:
            messages.read(20)  # four versions that the driver knows, after the magic number
            connection.sendall(_VERSION)
            while size := int.from_bytes(messages.read(2), "big"):
                kind = messages.read(size)[1]
                messages.read(2)  # the end of the message
                if kind in (_HELLO, _LOGON, _RESET) and not self.asked:
                    answer = _GREETING if kind == _HELLO else _SUCCESS
                    connection.sendall(len(answer).to_bytes(2, "big") + answer + b"\x00\x00")
                else:
                    self.asked += 1
                    self.when_asked()
