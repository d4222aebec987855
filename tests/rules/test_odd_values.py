"""No rule raises on a value of the wrong kind: a config may say anything, and vLLM is the one to refuse it."""

import random
from pathlib import Path

import pytest
from simulated_audit import simulated_audit

from rlaudit import rules
from rlaudit.rules import known_rules
from rlaudit.vllm.catalogue import Catalogue, known_versions

ODD = [
    None, True, False, 0, 1, -1, 0.7, float("nan"), 10**30, "", "auto", "0", "fp8", "float32", "raw_logprobs", "{bad",
    '{"head_dtype": "float32"}', [], [1], {}, {"a": 1}, {"head_dtype": 3}, {"unknown": "$X is set nowhere"},
]  # fmt: skip
VARIABLES = ["VLLM_USE_V1", "VLLM_USE_FLASHINFER_SAMPLER", "VLLM_ATTENTION_BACKEND", "VLLM_BATCH_INVARIANT"]
FACTS = {"divides_by_temperature": True, "uses_rollout_logprobs": True, "importance_sampling_correction": True}


def engine_arguments_that_rules_read():
    text = "".join(path.read_text(encoding="utf-8") for path in Path(rules.__path__[0]).glob("*.py"))
    return sorted(name for name in Catalogue.at("0.18.1").engine if f'"{name}"' in text)


@pytest.mark.parametrize("seed", range(4))
def test_values_of_the_wrong_kind_make_no_rule_raise(seed):
    chance = random.Random(seed)
    engine, sampling = engine_arguments_that_rules_read(), sorted(Catalogue.at("0.8.5").sampling)
    for _ in range(25):
        before, after = chance.choices(known_versions(), k=2)
        odd = {
            name: {key: chance.choice(ODD) for key in chance.sample(keys, chance.randint(0, len(keys) // 2))}
            for name, keys in (("engine", engine), ("sampling", sampling), ("environment", VARIABLES))
        }
        audit = simulated_audit({"from": str(before), "to": str(after), "trainer": FACTS, **odd})
        for rule in known_rules().values():
            assert all(finding.message for finding in rule.check(audit)), rule.name
