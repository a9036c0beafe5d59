"""Strings that staged code chooses or builds."""
