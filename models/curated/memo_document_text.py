from lake import memo
from transforms.document_text import DOCUMENT_TEXT


def model(dbt, session):
    return memo.extend(session, DOCUMENT_TEXT, dbt.ref("asked_document_text"))
