import pytest

from rlaudit.engines.cells.inherited_variables import INHERITANCE, deciding, fate_of, inherited, recorded

SHELL = {
    "VLLM_USE_V1": "1",
    "PYTHONPATH": "/elsewhere",
    "LD_PRELOAD": "libfast.so",
    "TORCHINDUCTOR_MAX_AUTOTUNE": "1",
    "CUDA_VISIBLE_DEVICES": "3",
    "CUDA_DEVICE_ORDER": "FASTEST_FIRST",
    "NVIDIA_TF32_OVERRIDE": "0",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1",
    "TRITON_F32_DEFAULT": "ieee",
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    "NCCL_ALGO": "Ring",
    "NCCL_P2P_DISABLE": "1",
    "FLASHINFER_DISABLE_JIT": "1",
    "OMP_NUM_THREADS": "4",
    "MKL_CBWR": "AVX2",
    "LD_LIBRARY_PATH": "/usr/local/cuda/compat",
    "NCCL_SOCKET_IFNAME": "eth0",
    "TRITON_CACHE_DIR": "/scratch/triton",
    "HF_HOME": "/models",
    "HF_TOKEN": "hf_1",
    "NCCL_AUTH_KEY": "k",
    "HF_HUB_ENDPOINT": "https://me:word@hub",
    "http_proxy": "http://proxy:3128",
    "LANG": "C",
}
ON_CUDA = {"NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "TRITON_F32_DEFAULT", "CUBLAS_WORKSPACE_CONFIG",
           "NCCL_ALGO", "NCCL_P2P_DISABLE", "FLASHINFER_DISABLE_JIT", "LD_LIBRARY_PATH"}  # fmt: skip
ON_CPU = {"OMP_NUM_THREADS", "MKL_CBWR", "LD_LIBRARY_PATH"}
BESIDE = {"NCCL_SOCKET_IFNAME", "TRITON_CACHE_DIR", "HF_HOME"}
STRIPPED = {
    "VLLM_USE_V1",
    "PYTHONPATH",
    "LD_PRELOAD",
    "TORCHINDUCTOR_MAX_AUTOTUNE",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
}


def test_an_engine_gets_what_its_node_needs_and_none_of_the_shell_s_own_settings() -> None:
    assert SHELL.keys() - inherited(SHELL).keys() == STRIPPED


def test_what_changes_numbers_belongs_to_a_cell_s_identity_on_the_device_where_it_does() -> None:
    assert deciding("cuda", SHELL).keys() == ON_CUDA
    assert deciding("cpu", SHELL).keys() == ON_CPU


def test_what_only_breaks_or_slows_a_run_is_recorded_beside_it() -> None:
    assert recorded(SHELL).keys() == ON_CUDA | ON_CPU | BESIDE


@pytest.mark.parametrize("name", ["HF_TOKEN", "NCCL_AUTH_KEY", "HF_HUB_ENDPOINT"])
def test_what_could_hold_a_secret_reaches_an_engine_and_no_record(name: str) -> None:
    assert name in inherited(SHELL)
    assert name not in recorded(SHELL) | deciding("cuda", SHELL)


def test_every_pattern_decides_something() -> None:
    for one in INHERITANCE:
        for pattern in one.patterns:
            assert fate_of(pattern.replace("*", "X")) is one.fate, pattern
