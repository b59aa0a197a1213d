from lake import memo
from transforms.contamination import CONTAMINATION, against  # noqa: F401  lake.project takes the kernel from here


def model(dbt, session):
    items = dbt.ref("contamination_items").to_arrow_table()
    return memo.extend(session, against(items), dbt.ref("asked_contamination"))
