"""Glossary and references."""
