"""Tables in files: formats, batches in, batches out."""
