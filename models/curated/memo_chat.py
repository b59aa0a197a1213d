from lake.kernels import memo
from transforms.chat.chats import CHAT


def model(dbt, session):
    return memo.extend(session, CHAT, dbt.ref("int_chat__asked"), scope="_changed")
