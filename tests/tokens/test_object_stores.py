"""`compare` on logs in an S3 server, asked over HTTP on this machine: what it reads, and what it says when not."""

import gzip
import http.server
import json
import socket
import sys
import threading
import urllib.request
from contextlib import suppress
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rlaudit.cli.app import run

for package in ("upath", "s3fs"):
    pytest.importorskip(package, reason="the extra remote is not installed")
boto3 = pytest.importorskip("boto3")
server = pytest.importorskip("moto.server", reason="no S3 server to ask: pip install '.[test]'")

pytestmark = pytest.mark.filterwarnings("default")  # of the server and the clients, which are not ours
BUCKET = "logs"


def records(prompts=24, samples=4, length=32, first=0):
    for prompt in range(first, first + prompts):
        for sample in range(samples):
            logprobs = [-((prompt * 7 + sample * 3 + place * 5) % 11) / 5 for place in range(length)]
            yield {
                "prompt_id": prompt,
                "sample_id": sample,
                "rollout_logprob": logprobs,
                "trainer_logprob": [one + ((place % 5) - 2) / 500 - 0.01 for place, one in enumerate(logprobs)],
            }


def jsonl(**of):
    return "".join(json.dumps(record) + "\n" for record in records(**of)).encode()


def parquet(**of):
    rows = [
        {**record, "position": place, "rollout_logprob": one, "trainer_logprob": other}
        for record in records(**of)
        for place, (one, other) in enumerate(zip(record["rollout_logprob"], record["trainer_logprob"], strict=True))
    ]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), sink, row_group_size=1000)
    return sink.getvalue().to_pybytes()


@pytest.fixture(scope="module")
def store():
    one = server.ThreadedMotoServer(port=0, verbose=False)
    one.start()
    _, port = one.get_host_and_port()
    yield f"http://127.0.0.1:{port}"
    one.stop()


@pytest.fixture
def bucket(store, monkeypatch):
    """Puts an object; the clients of the test are new, and find their credentials in the environment."""
    import fsspec

    asked(store, "reset")
    for name, value in {
        "AWS_ENDPOINT_URL": store,
        "AWS_ACCESS_KEY_ID": "one",
        "AWS_SECRET_ACCESS_KEY": "another",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": "/no-such-file-of-aws",
        "AWS_SHARED_CREDENTIALS_FILE": "/no-such-file-of-aws",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3", endpoint_url=store)
    client.create_bucket(Bucket=BUCKET)
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    yield lambda key, data: client.put_object(Bucket=BUCKET, Key=key, Body=data)
    asked(store, "reset-auth", b"1000000")
    fsspec.get_filesystem_class("s3").clear_instance_cache()


def asked(store, what, data=b""):
    request = urllib.request.Request(f"{store}/moto-api/{what}", data, {"Content-Type": "text/plain"}, method="POST")
    urllib.request.urlopen(request).close()


def compared(path, out, *more):
    out.unlink(missing_ok=True)
    code = run(["compare", str(path), "--quiet", "--output", f"json:{out}", *more])
    return code, json.loads(out.read_text()) if out.exists() else None


def figures(report):
    return [
        {name: one[name] for name in ("tokens", "sequences", "format", "files", "measurements", "alignment")}
        for one in report["comparisons"]
    ]


CASES = {
    "t.jsonl": jsonl(),
    "t.jsonl.gz": gzip.compress(jsonl()),
    "t.jsonl.zst": pa.compress(jsonl(), codec="zstd", asbytes=True),
    "t.parquet": parquet(),
    "folder": {"step_1/rank_0.jsonl": jsonl(), "step_2/rank_0.jsonl": jsonl(first=30)},
}


@pytest.mark.parametrize("name", CASES)
def test_a_log_in_a_store_is_read_as_it_is_on_disk(name, bucket, tmp_path):
    held = CASES[name]
    for key, data in ({name: held} if isinstance(held, bytes) else {f"{name}/{k}": d for k, d in held.items()}).items():
        here = tmp_path / key
        here.parent.mkdir(parents=True, exist_ok=True)
        here.write_bytes(data)
        bucket(f"runs/{key}", data)
    told = ("--temperature", "1")
    code, there = compared(f"s3://{BUCKET}/runs/{name}", tmp_path / "there.json", *told)
    code_here, on_disk = compared(tmp_path / name, tmp_path / "here.json", *told)
    assert (code, figures(there)) == (code_here, figures(on_disk))
    assert there["comparisons"][0]["path"] == f"s3://{BUCKET}/runs/{name}"


def test_the_sidecar_and_the_trainers_table_are_found_there_as_well(bucket, tmp_path):
    bucket("runs/t.jsonl", jsonl())
    bucket("runs/rollout.yaml", b"temperature: 0.5\n")
    scored = ({name: one[name] for name in one if name != "rollout_logprob"} for one in records())
    bucket("trainer.jsonl", b"".join(json.dumps(one).encode() + b"\n" for one in scored))
    code, report = compared(f"s3://{BUCKET}/runs/t.jsonl", tmp_path / "o", f"s3://{BUCKET}/trainer.jsonl")
    assert code in {0, 1, 3}
    assert report["comparisons"][0]["sampling"]["temperature"] == 0.5
    assert report["comparisons"][0]["trainer_path"] == f"s3://{BUCKET}/trainer.jsonl"


@pytest.mark.parametrize("place", [f"{BUCKET}/none.parquet", "no-such-bucket/t.parquet"])
def test_what_is_not_there_is_a_wrong_command_line(place, bucket, tmp_path, capsys):
    code, report = compared(f"s3://{place}", tmp_path / "o")
    assert (code, report) == (2, None)
    assert f"s3://{place}: no such file" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["t.jsonl", "t.parquet"])
def test_wrong_credentials_end_it_before_anything_is_read(name, bucket, store, tmp_path, monkeypatch, capsys):
    bucket(name, CASES[name])
    asked(store, "reset-auth", b"0")
    code, report = compared(f"s3://{BUCKET}/{name}", tmp_path / "o")
    assert (code, report) == (3, None)
    said = capsys.readouterr().err
    assert f"s3://{BUCKET}/{name} cannot be read" in said
    assert "credentials" in said


def test_no_credentials_at_all_are_named(bucket, tmp_path, monkeypatch, capsys):
    bucket("t.jsonl", jsonl())
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    code, report = compared(f"s3://{BUCKET}/t.jsonl", tmp_path / "o")
    assert (code, report) == (3, None)
    assert "credentials" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "share"), [("t.jsonl", 0.9), ("t.jsonl.gz", 0.3), ("t.parquet", 0.3), ("t.parquet", 0.9)]
)
def test_a_connection_cut_in_the_middle_is_no_verdict_on_half_a_log(
    name, share, bucket, store, tmp_path, monkeypatch, capsys
):
    data = {"t.jsonl": jsonl, "t.parquet": parquet}.get(name, lambda **of: gzip.compress(jsonl(**of), 0))(prompts=100)
    bucket(name, data)
    with cutting_proxy(store, int(share * len(data))) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        code, report = compared(f"s3://{BUCKET}/{name}", tmp_path / "o", "--allow-partial")
    said = capsys.readouterr().err
    assert (code, report) == (3, None), said
    assert f"s3://{BUCKET}/{name}: byte " in said
    assert f"of {len(data)} cannot be read" in said


@pytest.fixture
def web(tmp_path):
    """A server that knows no ranges, over a folder."""
    folder = tmp_path / "web"
    folder.mkdir()
    handler = partial(QuietHandler, directory=str(folder))
    one = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=one.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{one.server_port}"
    one.shutdown()
    one.server_close()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        if "forbidden" in self.path:
            self.send_error(403)
        else:
            super().do_GET()

    do_HEAD = do_GET


def test_a_signed_address_is_read_and_its_signature_is_not_shown(bucket, store, tmp_path, capsys):
    bucket("t.parquet", parquet())
    client = boto3.client("s3", endpoint_url=store)
    address = client.generate_presigned_url("get_object", Params={"Bucket": BUCKET, "Key": "t.parquet"})
    code, report = compared(address, tmp_path / "o")
    assert code in {0, 1, 3}
    assert report["comparisons"][0]["path"] == f"{store}/{BUCKET}/t.parquet"
    assert "ignature" not in json.dumps(report) + capsys.readouterr().err


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.zst"])
def test_a_web_server_without_ranges_is_read_from_beginning_to_end(name, web, tmp_path):
    folder, address = web
    (folder / name).write_bytes(CASES[name])
    code, report = compared(f"{address}/{name}", tmp_path / "o")
    assert code in {0, 1, 3}
    assert report["comparisons"][0]["sequences"] == 24 * 4


def test_a_web_server_that_refuses_or_does_not_answer_is_no_missing_file(web, tmp_path, capsys):
    _, address = web
    assert compared(f"{address}/none.jsonl", tmp_path / "o") == (2, None)
    assert f"{address}/none.jsonl: no such file" in capsys.readouterr().err
    assert compared(f"{address}/forbidden.jsonl", tmp_path / "o") == (3, None)
    assert "403" in capsys.readouterr().err
    assert compared("http://127.0.0.1:1/t.jsonl", tmp_path / "o") == (3, None)
    assert "http://127.0.0.1:1/t.jsonl cannot be read" in capsys.readouterr().err


def test_a_store_that_is_not_known_and_a_missing_package_are_named(monkeypatch, capsys):
    assert run(["compare", "ftp://host/t.jsonl"]) == 2
    assert "s3://" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "upath", None)
    assert run(["compare", "gs://bucket/t.jsonl"]) == 3
    said = capsys.readouterr().err
    assert "gcsfs" in said
    assert f"{sys.executable} -m uv pip install --python {sys.executable} universal-pathlib gcsfs" in said


class cutting_proxy:  # noqa: N801
    """Hands on what the store answers, and hangs up once an answer is longer than `most` bytes."""

    def __init__(self, store, most):
        host, _, port = store.removeprefix("http://").partition(":")
        self._store, self._most = (host, int(port)), most
        self._open = True

    def __enter__(self):
        self._listening = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def __exit__(self, *_):
        self._open = False
        self._listening.close()

    def _serve(self):
        while self._open:
            try:
                asking, _ = self._listening.accept()
            except OSError:
                return
            answering = socket.create_connection(self._store)
            threading.Thread(target=self._handed_on, args=(asking, answering, None), daemon=True).start()
            threading.Thread(target=self._handed_on, args=(answering, asking, self._most), daemon=True).start()

    def _handed_on(self, one, other, most):
        handed = 0
        try:
            while data := one.recv(1 << 14):
                handed += len(data)
                if most is not None and handed > most:
                    break
                other.sendall(data)
        except OSError:
            pass
        for end in (one, other):
            _hung_up(end)


def _hung_up(end):
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
