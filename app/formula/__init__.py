"""Typeset formulas with live values."""
