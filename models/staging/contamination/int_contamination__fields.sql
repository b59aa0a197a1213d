-- What is searched for benchmark items: what user and assistant say, and documents; benchmarks are not. Fields of an
-- example are searched apart, so that nothing matches across them. One row per example and field.
{{ searched_fields(ref("example_facts")) }}
