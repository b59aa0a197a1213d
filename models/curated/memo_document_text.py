from lake.kernels import memo
from transforms.text.document_text import DOCUMENT_TEXT


def model(dbt, session):
    return memo.extend(session, DOCUMENT_TEXT, dbt.ref("int_document_text__asked"), scope="_changed")
