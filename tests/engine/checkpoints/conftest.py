"""A small server on this machine that plays the hub, so that its real client does the work."""

import hashlib
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from huggingface_hub import constants

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """Repositories served by name, and the requests that came."""

    def __init__(self):
        self.repositories = {}
        self.refusals = {}  # repository -> (status, the hub's error code), for every request
        self.file_refusals = {}  # the same, for files alone
        self.requests = []

    def add(self, name, files):
        self.repositories[name] = dict(files)


def _handler(hub_):  # long: a fake hub, one route after another
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments):
            """Say nothing."""

        def _answer(self, status, body=b"", **headers):
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def do_HEAD(self):
            self.do_GET()

        def do_GET(self):
            path = self.path.partition("?")[0]
            hub_.requests.append((self.command, path))
            is_api = path.startswith("/api/models/")
            parts = path.removeprefix("/api/models/").strip("/").split("/")
            name = "/".join(parts[:2])
            refusal = hub_.refusals.get(name) or (None if is_api else hub_.file_refusals.get(name))
            if refusal is None and name not in hub_.repositories:
                refusal = (401, "RepoNotFound")  # what the hub says to who is not logged in
            if refusal is not None:
                self._answer(refusal[0], b"{}", X_Error_Code=refusal[1], X_Error_Message="refused")
                return
            files = hub_.repositories[name]
            if is_api:
                self._answer_api(name, parts[2:], files)
            else:
                self._answer_file("/".join(parts[4:]), files)

        def _answer_api(self, name, rest, files):
            if rest[:1] == ["revision"] and rest[1] not in ("main", COMMIT):
                self._answer(404, b"{}", X_Error_Code="RevisionNotFound")
                return
            if rest[:1] == ["tree"]:
                body = [
                    {
                        "type": "file",
                        "path": path,
                        "size": len(content),
                        "oid": hashlib.sha1(content).hexdigest(),
                    }
                    for path, content in files.items()
                ]
            else:
                body = {"id": name, "sha": COMMIT, "siblings": [{"rfilename": path} for path in files]}
            self._answer(200, json.dumps(body).encode(), Content_Type="application/json")

        def _answer_file(self, path, files):
            if path not in files:
                self._answer(404, X_Error_Code="EntryNotFound")
                return
            tag = hashlib.sha1(files[path]).hexdigest()
            self._answer(200, files[path], ETag=f'"{tag}"', X_Repo_Commit=COMMIT, Accept_Ranges="none")

    return Handler


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of the hub, on line."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    return tmp_path / "hub"


@pytest.fixture
def server(cache, monkeypatch):
    hub_ = Hub()
    listener = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub_))
    thread = threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    _point_to(f"http://127.0.0.1:{listener.server_port}", monkeypatch)
    yield hub_
    listener.shutdown()
    listener.server_close()
    thread.join()


def _point_to(address, monkeypatch):
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}"
    )


@pytest.fixture
def unreachable(cache, monkeypatch):
    with socket.socket() as taken:  # a port that nobody listens on
        taken.bind(("127.0.0.1", 0))
        _point_to(f"http://127.0.0.1:{taken.getsockname()[1]}", monkeypatch)
        yield


@pytest.fixture
def silent(cache, monkeypatch):
    """A hub that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        _point_to(f"http://127.0.0.1:{listener.getsockname()[1]}", monkeypatch)
        yield
