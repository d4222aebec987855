"""What of a machine makes another cell of a cell, and what another allocation of the same GPU model may change."""

from dataclasses import replace
from typing import Any

import pytest

from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.hardware.accelerator_identity import accelerator_identity
from rlaudit.engines.hardware.nvidia_driver import Device

H100 = Device(0, "GPU-a", "NVIDIA H100 80GB HBM3", 81_559, "sm90")
ON_GPU = Accelerator("cuda", H100.name, (H100,), "570.86", 16, 128_000, "12.8", ("avx512f",))
ON_CPU = Accelerator("cpu", "AMD EPYC 9654", (), "", 16, 128_000, "", ("avx2", "avx512f"))
SLURM = {"SLURM_JOB_ID": "7", "NCCL_SOCKET_IFNAME": "eth1", "CUDA_VISIBLE_DEVICES": "3", "OMP_NUM_THREADS": "8"}


@pytest.mark.parametrize(
    "allocated",
    [
        replace(ON_GPU, devices=(replace(H100, index=3, uuid="GPU-d", only_by_uuid=True, memory_mib=81_251),)),
        replace(ON_GPU, devices=(H100, replace(H100, index=1, uuid="GPU-b"))),
        replace(ON_GPU, cores=4, memory_mib=64_000, instruction_sets=("avx2",)),
    ],
    ids=["another GPU of the node", "more GPUs than are used", "another host"],
)
def test_another_allocation_of_the_same_gpu_model_is_the_same_accelerator(allocated: Accelerator) -> None:
    assert accelerator_identity(allocated, SLURM) == accelerator_identity(ON_GPU, {})


@pytest.mark.parametrize(
    "changed",
    [
        {"devices": (replace(H100, name="NVIDIA H200"),)},
        {"devices": (replace(H100, capability="sm100"),)},
        {"devices": (replace(H100, memory_mib=40_960),)},
        {"driver": "580.65"},
        {"kind": "cpu", "devices": ()},
    ],
    ids=["model", "capability", "memory", "driver", "the processor"],
)
def test_another_model_or_driver_is_another_accelerator(changed: dict[str, Any]) -> None:
    assert accelerator_identity(replace(ON_GPU, **changed), {}) != accelerator_identity(ON_GPU, {})


@pytest.mark.parametrize("changed", [{"name": "Intel Xeon"}, {"cores": 8}, {"instruction_sets": ("avx2",)}])
def test_on_a_processor_its_model_threads_and_instructions_decide(changed: dict[str, Any]) -> None:
    assert accelerator_identity(replace(ON_CPU, **changed), {}) != accelerator_identity(ON_CPU, {})
    assert accelerator_identity(replace(ON_CPU, memory_mib=1), {}) == accelerator_identity(ON_CPU, {})


def test_a_variable_that_changes_numbers_makes_another_accelerator_of_the_device_it_works_on() -> None:
    tf32, threads = {"NVIDIA_TF32_OVERRIDE": "0"}, {"OMP_NUM_THREADS": "1"}
    gpu, cpu = accelerator_identity(ON_GPU, {}), accelerator_identity(ON_CPU, {})
    assert accelerator_identity(ON_GPU, tf32) != gpu == accelerator_identity(ON_GPU, threads)
    assert accelerator_identity(ON_CPU, threads) != cpu == accelerator_identity(ON_CPU, tf32)
