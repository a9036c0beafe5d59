"""The kernel cache on disk: its files, how it stays within its bound, and how files with code are kept from other
users.
"""
