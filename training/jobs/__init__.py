"""Training jobs, one module per trainer."""
