from lake.kernels import memo
from transforms.ngrams.contamination import CONTAMINATION


def model(dbt, session):
    items = dbt.ref("int_contamination__items")
    return memo.extend(session, CONTAMINATION, dbt.ref("int_contamination__asked"), context=items)
