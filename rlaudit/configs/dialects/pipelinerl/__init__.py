"""PipelineRL."""
