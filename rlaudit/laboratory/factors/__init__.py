"""Factors: one file each. A factor is one thing that differs between two engines, and how to prove it did.

To add one, imitate `chunked_prefill.py`: bind FACTOR, whose `set_level` says what to ask of the engine and whose
`observe` says what became of it. If `observe` needs what no report of the loaded engine has yet, the same file names it
(`reads`, as in `cascade_attention.py`). `move` says which level answers for a config that changes its release. `pytest
tests/test_discover.py tests/laboratory/studies/arms` tries it; nothing else moves. To see it through a whole run of the
stand-ins (tests/cli), an engine argument that vLLM's configuration calls otherwise goes into RENAMED of
tests/fakes/vllm/_config.py.
"""
