"""Text handling that several packages need.

sanitize.py  removes control characters, quotes values in messages, protects spreadsheet cells
spelling.py  suggests the nearest known name; camelCase and snake_case keys
"""
