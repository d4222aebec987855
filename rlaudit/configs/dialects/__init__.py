"""One folder or file per dialect: how it is recognised, where its settings are, what its own code makes of them."""
