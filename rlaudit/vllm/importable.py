"""What can be imported from each release: modules, and the names at the top of each; and what its objects have.

One file for all releases, data/importable.json, made with the catalogue: most modules stay as they are for many
releases, and are said once.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from packaging.version import Version

from rlaudit.vllm.catalogue import DATA

FILE = "importable.json"
# Marks in a module's list of names: the module itself, a name that it only imports, a module that gives any name.
ITSELF, HANDED_ON, ANYTHING = ".", "~", "*"
# Modules that a wheel has and the sources have not: compiled ones, and copies of other projects.
COPIED_IN = ("vllm._C", "vllm._moe_C", "vllm._rocm_C", "vllm._flashmla", "vllm._qutlass_C", "vllm.cumem_allocator",
             "vllm.vllm_flash_attn", "vllm.third_party", "vllm._version", "vllm.commit_id")  # fmt: skip
