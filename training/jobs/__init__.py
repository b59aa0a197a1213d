"""Training jobs: `run` is what they have in common, and each training method has a module of its own."""
