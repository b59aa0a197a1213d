"""From releases to training jobs: streams, shards, checks and runs. Changes no row: what must change is a model."""
