"""How far apart rollout and trainer logprobs are: one metric a file.

To add one, imitate `k3.py`. Bind METRIC: its `columns` are per-token or per-sequence terms, its `combine` makes the
figure of their means. The interval comes from `measurement/`. The docstring says what is covered, what is not, and the
source. It stands in `rlaudit explain`, `list metrics` and report.json; the text shows those that layer 3 names (SHOWN
of `diagnosis/objective.py`), and what dashboards call it goes into `curves/metric_names.yaml` (and QUANTITIES of
`curves/metric_translation.py`, if the quantity has another name there). `pytest tests/metrics` asks for its value on a
table computed by hand (BY_HAND); one that stands in the text of a report moves the case studies: `UPDATE_EXAMPLES=1
pytest tests/examples/test_case_studies.py`, then `git diff`.
"""

# What a metric says of clipping if it says nothing else.
UNCLIPPED = "before any truncation or clipping"
