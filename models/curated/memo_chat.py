from lake import memo
from transforms.chats import CHAT


def model(dbt, session):
    return memo.extend(session, CHAT, dbt.ref("asked_chat"))
