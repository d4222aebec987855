"""A block without today's engine is no move: it stands beside the layers, and turns none."""

from laboratories import V0, V1


def test_a_mismatch_of_a_block_without_todays_engine_is_evidence_and_turns_no_layer(shared_laboratory):
    processed = {"logprobs-mode": "processed"}
    laboratory = shared_laboratory
    done = laboratory.ablate(
        laboratory.recipe(
            {
                "name": "migration",
                "reference": {"version": V0},
                "candidate": {"version": V1, "levels": processed},
                "repeats": 0,
            },
            {"name": "beside", "candidate": {"version": V1}, "repeats": 0},
        )
    )
    assert done.exit_code == 0, done.stderr
    semantic = done.report["layers"][0]
    assert semantic["verdict"] == "match"
    assert any(line.startswith("block 'beside'") and "raw" in line for line in semantic["evidence"])
    assert done.report["move"]["changes"][0]["change"] == "same"
    assert done.report["move"]["answer"][0].startswith("The move keeps what the logprobs mean")
