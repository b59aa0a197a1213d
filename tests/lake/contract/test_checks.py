"""Which checks judge a row by itself: these ask new rows alone, so a wrong yes would let old rows pass unseen."""

from __future__ import annotations

import pytest

from lake.contract.checks import _counts_rows


@pytest.mark.parametrize(
    ("query", "counts"),
    [
        ("select count(*) from t where a > 1", True),
        ("select count(*) from t where len(list_filter(a, lambda m: m.role = 'x')) > 0", True),
        ("select count(*) from t", True),
        ("select count(a) from t where a > 1", False),
        ("select max(a) from t", False),
        ("select count(distinct a) from t", False),
        ("select count(*) - max(a) from t", False),
        ("select count(*) from t where a > (select avg(a) from t)", False),
        ("select count(*) from t where a in (select a from u)", False),
        ("select count(*) from t join u on t.a = u.a", False),
        ("select count(*) from t, u where t.a = u.a", False),
        ("select count(*) from (select a from t group by a having count(*) > 1)", False),
        ("with x as (select a from t) select count(*) from x", False),
        ("select count(*) from (select a from t qualify row_number() over (partition by a) > 1)", False),
        ("select count(*) from t where a > 1 union all select count(*) from t", False),
        ("select a from t", False),
        ("select count(*) from t group by a", False),
        ("select count(*) from t having count(*) > 5", False),
        ("select count(*) from range(5)", False),
    ],
)
def test_only_a_count_of_rows_that_a_predicate_picks_is_of_rows(query: str, counts: bool) -> None:
    assert _counts_rows(query) is counts
