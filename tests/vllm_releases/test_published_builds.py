"""What is recorded of the published wheels agrees with itself and with what an environment's check asks for."""

import io
import json
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from extract_catalogue.builds import compiled_modules, imported_modules
from extract_catalogue.remote_wheel import open_wheel
from packaging.version import Version

from rlaudit.errors import NotFinished
from rlaudit.vllm.builds import cuda_of_torch, published_build, recorded_torch
from rlaudit.vllm.catalogue import known_versions

RELEASES = [str(version) for version in known_versions()]
# Published for CUDA alone.
WITHOUT_CPU_BUILD = {"0.8.5.post1", "0.33.0"}


@pytest.mark.parametrize("version", RELEASES)
def test_the_modules_that_health_asks_for_are_in_the_wheels_own_file_list(version: str) -> None:
    for kind in ("cuda", "cpu"):
        build = published_build(version, kind)
        if build is None:
            assert (version, kind) in {(without, "cpu") for without in WITHOUT_CPU_BUILD}
            continue
        held = {"vllm." + name.partition(".")[0] for name in build.modules}
        assert build.imports
        assert set(build.imports) <= held


@pytest.mark.parametrize("version", RELEASES)
def test_every_release_has_a_torch_whose_cuda_is_recorded(version: str) -> None:
    build = published_build(version, "cuda")
    assert build is not None
    assert Version(build.cuda) in {Version(cuda) for cuda in recorded_torch().values()}


def test_the_operators_moved_to_another_module_with_release_0_24_0() -> None:
    asked = {version: published_build(version, "cuda").imports for version in ("0.18.1", "0.23.0", "0.24.0")}  # type: ignore[union-attr]
    assert asked == {
        "0.18.1": ("vllm._C",),
        "0.23.0": ("vllm._C", "vllm._C_stable_libtorch"),
        "0.24.0": ("vllm._C_stable_libtorch",),
    }


def test_a_cpu_build_may_bring_one_module_for_each_instruction_set() -> None:
    build = published_build("0.18.1", "cpu")
    assert build is not None
    assert build.imports == ("vllm._C", "vllm._C_AVX2", "vllm._C_AVX512")
    assert build.cuda == ""


def test_the_cuda_of_a_torch_does_not_depend_on_its_local_part() -> None:
    assert cuda_of_torch("2.6.0+cpu") == cuda_of_torch("2.6.0") == "12.4"
    assert cuda_of_torch("99.0") is None


WHEEL = {
    "vllm/_C_new.abi3.so": "",
    "vllm/_C_late.abi3.so": "",
    "vllm/_C_spare.abi3.so": "",
    "vllm/spinloop.abi3.so": "",
    "vllm/flash/_fa2_C.abi3.so": "",
    "vllm/platforms/cuda.py": (
        "import torch\nimport vllm._C_new  # noqa\nimport vllm._C_gone\n"
        "with suppress(ImportError):\n    import vllm._C_spare\n"
        "class Cuda:\n    def import_kernels(cls):\n        import vllm._C_late\n"
    ),
    "vllm/platforms/cpu.py": "class Cpu:\n    def import_kernels(cls):\n        import vllm._C_late\n",
}


def packed(files: dict[str, str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


def test_what_a_platform_imports_by_itself_is_read_from_its_source() -> None:
    with zipfile.ZipFile(io.BytesIO(packed(WHEEL))) as wheel:
        names = wheel.namelist()
        assert compiled_modules(names) == ["_C_late.abi3.so", "_C_new.abi3.so", "_C_spare.abi3.so", "spinloop.abi3.so"]
        assert imported_modules(wheel, "cuda") == ["vllm._C_new"]
        assert imported_modules(wheel, "cpu") == ["vllm._C_late"]


@pytest.fixture
def served() -> Iterator[tuple[str, list[int], dict[str, bytes]]]:
    """(address, bytes sent per answer, files): a server that knows ranges, except of `/whole`."""
    sent: list[int] = []
    files: dict[str, bytes] = {}

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content, asked = files[self.path], self.headers["Range"]
            first, last = (int(part) for part in asked.removeprefix("bytes=").split("-"))
            part = content if self.path == "/whole" else content[first : last + 1]
            self.send_response(200 if self.path == "/whole" else 206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
            self.end_headers()
            self.wfile.write(part)
            sent.append(len(part))

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", sent, files
    server.shutdown()
    server.server_close()


def test_a_wheel_on_an_index_is_read_without_fetching_it(
    served: tuple[str, list[int], dict[str, bytes]],
) -> None:
    address, sent, files = served
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("vllm/_C.abi3.so", bytes(8_000_000))
        archive.writestr("vllm/version.py", "version = 1\n")
    files["/wheel"] = content.getvalue()
    with open_wheel(f"{address}/wheel") as wheel:
        assert compiled_modules(wheel.namelist()) == ["_C.abi3.so"]
        assert wheel.read("vllm/version.py") == b"version = 1\n"
    assert sum(sent) < 1_000_000


def test_an_index_that_serves_files_whole_only_is_named(served: tuple[str, list[int], dict[str, bytes]]) -> None:
    address, _sent, files = served
    files["/whole"] = packed(WHEEL)
    with pytest.raises(NotFinished, match="served whole only"):
        open_wheel(f"{address}/whole")


def test_the_record_is_written_one_release_a_line(tmp_path: Path) -> None:
    from extract_catalogue.builds import _write

    known = {"vllm": {"0.10.0": {"cuda": {}}, "0.9.0": {}}, "torch": {"2.6.0": "12.4"}}
    _write(known, tmp_path / "builds.json")
    text = (tmp_path / "builds.json").read_text()
    assert list(json.loads(text)["vllm"]) == ["0.9.0", "0.10.0"]
    assert len(text.splitlines()) == 9
