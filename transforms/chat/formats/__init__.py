"""Formats of chats, one module each: `units(record)` gives a parsed record's units; see `transforms.chat.chats`."""
