# %% [markdown]
# A move of vLLM, looked at from Python. Cells as VS Code, Jupyter (with jupytext) and Spyder read them; run from here.

# %%
import os
import tempfile

import pandas as pd

import rlaudit

# %% [markdown]
# What the next release does to a config: no GPU, nothing is started.

# %%
report = rlaudit.inspect("../verl/v1-to-v1/run_grpo.sh", before="0.11.2", after="0.22.0")
for finding in report["findings"]:
    print(f"{finding.severity:<8} {finding.rule}{' (so today already)' if finding.so_today else ''}")

# %% [markdown]
# What logged tokens say, here those of TRL 0.23.1 on vLLM 0.8.5 and on 0.10.2.

# %%
recorded = "../recorded/trl-0.8.5-to-0.10.2"
report = rlaudit.compare(f"{recorded}/v1", before=f"{recorded}/v0")
for change in report["move"].changes:
    print(f"{change.layer}: {change.change}")
for layer in report["layers"]:
    print(f"{layer.layer}: {layer.verdict}{f', {layer.cause}' if layer.cause else ''}")
ratio = report["comparisons"][-1].measurements["mean_ratio_minus_one"]
print(f"mean ratio - 1: {ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]")

# %% [markdown]
# A DataFrame is a table of tokens, too: one row per token, or one per sequence with lists.

# %%
tokens = pd.read_parquet("../../rlaudit/demo/vllm-0.18.1-processed.parquet")
report = rlaudit.compare(tokens, temperature=0.7)
print([f"{layer.layer}: {layer.verdict}" for layer in report["layers"]])

# %% [markdown]
# Engines that are built inside are recorded, with what they are asked and what they return. Here none is.

# %%
with tempfile.TemporaryDirectory() as folder, rlaudit.record(folder) as recording:
    print([name for name in ("PYTHONPATH", "RLAUDIT_RECORD") if str(recording) in os.environ[name]])
