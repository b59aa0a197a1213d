"""Chats: records of any format to units in the common chat shape, and the rules that join spans to conversations."""
