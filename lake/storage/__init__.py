"""Storage: the only room that knows Delta. Tables, the Parquet files below them, views on their versions, and refs."""
