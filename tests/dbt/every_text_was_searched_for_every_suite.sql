-- depends_on: {{ ref('memo_contamination') }}
-- A benchmark that was landed later meets the old texts, a new text meets the old benchmarks.
select
    text_hash,
    missing
from {{ ref("int_contamination__texts") }}
