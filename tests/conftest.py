"""What holds for every test: no network, nobody's model cache, no window."""

import errno
import os
import socket
import tempfile

import pytest

# Set before anything imports huggingface_hub or matplotlib, which read them once. A test then finds in the
# hub's cache only what it put there, on every machine.
_hub = tempfile.TemporaryDirectory(prefix="sktransformer-hub-")
os.environ["HF_HOME"] = _hub.name
os.environ["MPLBACKEND"] = "Agg"
# Tiny models gain nothing from a second thread, and on a busy machine lose tens of times to waiting for it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
for _name in ("HF_HUB_CACHE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
    os.environ.pop(_name, None)

_HERE = {"localhost", "127.0.0.1", "::1"}


def pytest_unconfigure() -> None:
    _hub.cleanup()


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail every look-up and connection beyond this machine at once, as with the cable pulled."""
    connect, look_up = socket.socket.connect, socket.getaddrinfo

    def guarded_connect(self: socket.socket, address: object) -> None:
        if isinstance(address, tuple) and address[0] not in _HERE:
            raise OSError(errno.ENETUNREACH, f"the tests have no network, and something asked for {address}")
        connect(self, address)

    def guarded_look_up(host: object, *args: object, **keywords: object) -> object:
        if host is not None and host not in _HERE:
            raise socket.gaierror(
                socket.EAI_AGAIN, f"the tests have no network, and something asked for {host!r}"
            )
        return look_up(host, *args, **keywords)

    monkeypatch.setattr(socket.socket, "connect", guarded_connect)
    monkeypatch.setattr(socket, "getaddrinfo", guarded_look_up)
