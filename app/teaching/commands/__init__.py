"""The menus of lessons and presenting."""
