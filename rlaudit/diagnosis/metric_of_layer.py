"""By which metric a layer is judged where engines are held against each other."""

SEMANTIC_METRIC = "mean_ratio_minus_one"
PATH_METRIC = "k2"
