"""Pure kernels: Arrow batches in, Arrow batches out; no files, no network, no clock, no global state."""
