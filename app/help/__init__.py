"""The glossary and the references."""
