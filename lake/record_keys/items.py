"""Keys of benchmark items that no entry of contracts/reference/benchmarks.csv describes.

The SQL half is the macro `usual_fields` (transforms/macros/benchmark.sql), which cannot import this; a test holds the
two equal.
"""

QUESTION_KEYS = ("question", "QUESTION", "Question", "problem", "prompt", "query", "instruction", "goal")
# Of a file of answers alone. Fewer than an item may have: `completion` and `output` there are a model's samples.
GROUND_TRUTH_KEYS = ("ground_truth", "answer", "answers", "target", "gold")
