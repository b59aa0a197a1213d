from lake.kernels import memo
from transforms.ngrams.contamination import CONTAMINATION, against  # noqa: F401  lake.project takes the kernel from here


def model(dbt, session):
    items = dbt.ref("int_contamination__items").to_arrow_table()
    return memo.extend(session, against(items), dbt.ref("int_contamination__asked"))
