"""Which layer is blamed, when the defect is planted: a meaning, a path, or none at all."""

from laboratories import ONE_FACTOR, V1, V1_WITH_FLOAT32_HEAD, Laboratory

IN_BFLOAT16 = {"engine_args": {"dtype": "bfloat16"}, "trainer": {"dtype": "bfloat16"}}
PROCESSED = {"version": V1, "levels": {"logprobs-mode": "processed"}}


def test_processed_logprobs_match_in_every_layer_and_end_with_exit_code_0(laboratory: Laboratory) -> None:
    # 1 % clipping can be ruled out by 300 prompts, with none clipped: a tiny model makes them cheap.
    prompts = laboratory.folder / "many.txt"
    prompts.write_text("".join(f"question {number}\n" for number in range(400)))
    block = {"name": "clean", "candidate": PROCESSED, "repeats": 0}
    run = laboratory.ablate(laboratory.recipe(block, prompts=str(prompts), samples=1, max_tokens=3))
    assert [layer["verdict"] for layer in run.report["layers"]] == ["match", "match", "match"]
    assert run.exit_code == 0


def test_numbers_that_compiled_kernels_move_are_blamed_on_the_path_and_on_the_factor_that_fixes_it(
    laboratory: Laboratory,
) -> None:
    block = {
        "name": "drift",
        "candidate": PROCESSED,
        "factors": {"enforce-eager": "on", "prefix-caching": "off"},
        "repeats": 0,
    }
    drift = {"FAKE_VLLM_DRIFT": "0.15"}
    run = laboratory.ablate(laboratory.recipe(block, environment_variables=drift, max_tokens=40))
    assert run.layer("semantic")["verdict"] == "match"
    path = run.layer("inference path")
    assert (path["verdict"], path["cause"]) == ("mismatch", "enforce-eager")
    assert "-0%" not in path["because"]
    assert run.effects("k2") == {
        "enforce-eager=on": "removes the mismatch",
        "prefix-caching=off": "within the noise of repeats",
    }
    assert run.exit_code == 1


def many_prompts(laboratory: Laboratory) -> str:
    path = laboratory.folder / "many.txt"
    path.write_text("".join(f"question {number}\n" for number in range(100)))
    return str(path)


def drifting(drift: str) -> dict[str, object]:
    return {**PROCESSED, "environment_variables": {"FAKE_VLLM_DRIFT": drift}}


def test_an_engine_as_far_off_as_the_reference_matches_and_what_it_clips_is_the_objectives(
    laboratory: Laboratory,
) -> None:
    block = {"name": "migration", "reference": drifting("0.05"), "candidate": drifting("0.05"), "repeats": 0}
    keys = {"prompts": many_prompts(laboratory), "max_tokens": 20} | IN_BFLOAT16
    run = laboratory.ablate(laboratory.recipe(block, **keys))
    path, objective = run.layer("inference path"), run.layer("objective")
    assert path["verdict"] == "match"
    assert any("times the reference's" in line for line in path["evidence"])
    assert (objective["verdict"], objective["cause"]) == (
        "mismatch",
        "a mismatch of the backend no larger than the reference's still pushes tokens or sequences out of the clip "
        "range",
    )
    (judged,) = run.report["blocks"]
    assert (judged["distance"]["yardstick"], judged["distance"]["against"]["paired"]) == ("reference", True)
    assert run.exit_code == 1


def test_a_reference_farther_off_than_its_dtype_ever_is_does_not_vouch_for_an_engine_that_is_so_too(
    laboratory: Laboratory,
) -> None:
    block = {"name": "broken", "reference": drifting("0.15"), "candidate": drifting("0.15"), "repeats": 0}
    run = laboratory.ablate(laboratory.recipe(block, prompts=many_prompts(laboratory), max_tokens=20))
    path = run.layer("inference path")
    assert path["verdict"] == "inconclusive"
    assert "may have the same fault" in path["because"]
    assert run.exit_code == 3


def test_an_engine_farther_off_than_the_reference_is_blamed_on_the_factor_that_brings_it_back(
    laboratory: Laboratory,
) -> None:
    block = {
        "name": "migration",
        "reference": drifting("0.15"),
        "candidate": drifting("0.4"),
        "factors": {"enforce-eager": "on"},
        "repeats": 0,
    }
    run = laboratory.ablate(laboratory.recipe(block, max_tokens=40, samples=4))
    path = run.layer("inference path")
    assert (path["verdict"], path["cause"]) == ("mismatch", "enforce-eager")
    (effect,) = [one for one in run.report["effects"] if one["metric"] == "k2"]
    # What the reference has as well needs no explanation: taking more than the rest away is more than all of it.
    assert effect["share"] > 1


def test_an_equivalence_margin_of_the_recipe_wins_over_the_reference(laboratory: Laboratory) -> None:
    block = {"name": "migration", "reference": drifting("0.15"), "candidate": drifting("0.15"), "repeats": 0}
    run = laboratory.ablate(laboratory.recipe(block, max_tokens=40, equivalence_margin=1e-6))
    path = run.layer("inference path")
    assert path["verdict"] == "mismatch"
    assert any("your margin: 1e-06 nats (equivalence_margin" in line for line in path["evidence"])


def test_only_the_clip_range_that_the_recipe_writes_is_held_against_an_engine(laboratory: Laboratory) -> None:
    block = {"name": "alone", "candidate": drifting("0.01"), "repeats": 0}
    keys = {"prompts": many_prompts(laboratory), "max_tokens": 20}
    verdicts = {}
    for name, objective in (("ppo", {"ppo_epsilon": [0.2, 0.2]}), ("gspo", {"gspo_epsilon": [0.0003, 0.0004]})):
        run = laboratory.ablate(laboratory.recipe(block, name=name, objective=objective, **keys))
        verdicts[name] = run.layer("inference path")["verdict"]
    assert verdicts == {"ppo": "match", "gspo": "mismatch"}


def test_a_reference_with_raw_logprobs_is_a_yardstick_under_what_they_mean(laboratory: Laboratory) -> None:
    raw = {"version": V1, "levels": {"logprobs-mode": "raw"}, "environment_variables": {"FAKE_VLLM_DRIFT": "0.05"}}
    block = {"name": "fixed", "reference": raw, "candidate": drifting("0.05"), "repeats": 0}
    run = laboratory.ablate(laboratory.recipe(block, prompts=many_prompts(laboratory), max_tokens=20, **IN_BFLOAT16))
    assert [change["change"] for change in run.report["move"]["changes"]][:2] == ["fixed", "same"]
    path = run.layer("inference path")
    assert path["verdict"] == "match"
    assert any("times the reference's" in line for line in path["evidence"])


def test_a_trainer_that_ignores_the_temperature_is_told_from_an_engine_that_does(laboratory: Laboratory) -> None:
    block = {"name": "ignored", "candidate": PROCESSED, "repeats": 0, "trainer": {"temperature": "ignore"}}
    run = laboratory.ablate(laboratory.recipe(block, max_tokens=40))
    semantic = run.layer("semantic")
    assert semantic["verdict"] == "mismatch"
    assert semantic["cause"].startswith(
        "the trainer's temperature differs from the sampler's: tokens are sampled and reported at T=0.7"
    )
    assert "raw" not in semantic["cause"]


def test_a_float32_head_on_one_side_is_further_apart_than_on_none_or_both(laboratory: Laboratory) -> None:
    block = {
        "name": "head",
        "candidate": {"version": V1_WITH_FLOAT32_HEAD, "levels": {"logprobs-mode": "processed"}},
        "factors": {"fp32-head": ["both", "rollout", "trainer"]},
        "parity": ["fp32-head"],
        "repeats": 0,
        "engine_args": {"dtype": "bfloat16"},
    }
    run = laboratory.ablate(laboratory.recipe(block, trainer={"dtype": "bfloat16"}, max_tokens=24))
    seen = {arm["name"]: arm["observed"]["fp32-head"]["level"] for arm in run.report["arms"]}
    assert seen == {
        "candidate": "neither",
        "candidate + fp32-head=both": "both",
        "candidate + fp32-head=rollout": "rollout",
        "candidate + fp32-head=trainer": "trainer",
    }
    k3 = {arm["name"]: arm["measurements"]["k3"]["value"] for arm in run.report["arms"]}
    one_sided = min(k3["candidate + fp32-head=rollout"], k3["candidate + fp32-head=trainer"])
    assert one_sided > 1e3 * max(k3["candidate"], k3["candidate + fp32-head=both"], 1e-12)
    # The trainer's side alone needs no engine start of its own.
    cells = {arm["name"]: arm["cell"] for arm in run.report["arms"]}
    assert cells["candidate"] == cells["candidate + fp32-head=trainer"]
    assert cells["candidate"] != cells["candidate + fp32-head=rollout"]


def test_too_few_tokens_are_inconclusive_and_an_audit_that_is_not_finished(laboratory: Laboratory) -> None:
    block = {"name": "few", "candidate": PROCESSED, "repeats": 0, "prompts_used": 3, "samples": 1}
    run = laboratory.ablate(laboratory.recipe(block))
    assert run.layer("semantic")["verdict"] == "inconclusive"
    assert run.layer("objective")["verdict"] == "not tested"
    assert run.exit_code == 3


def test_chat_messages_of_the_shipped_prompt_set_reach_the_engine_as_token_ids(laboratory: Laboratory) -> None:
    block = {"name": "chat", "candidate": {"version": V1}, "repeats": 0, "prompts_used": 2, "samples": 1}
    run = laboratory.ablate(laboratory.recipe(block, prompts="arithmetic", max_tokens=2))
    assert run.report["run"]["provenance"]["prompts"]["name"] == "arithmetic"
    assert run.arm("candidate")["measurements"]["k3"]["tokens"] == 4


def test_without_a_parity_arm_the_path_is_judged_on_the_setting_that_alone_makes_logprobs_mean_the_same(
    shared_laboratory: Laboratory,
) -> None:
    ran = shared_laboratory.ablate(shared_laboratory.recipe(ONE_FACTOR, name="no-parity"))
    assert ran.layer("semantic")["verdict"] == "mismatch"
    path = ran.layer("inference path")
    assert path["verdict"] == "match" and any("logprobs-mode=processed" in line for line in path["evidence"])
