"""How a metric is measured: summed over a stream, with its interval, and contrasted between two arms."""
