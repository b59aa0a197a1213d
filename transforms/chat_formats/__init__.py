"""Formats of chats, one module each: `units(record)` gives the units of one parsed record, see `transforms.chats`."""
