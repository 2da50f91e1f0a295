"""Every user action, declared once as data. Menus, shortcuts, the palette and the shortcut sheet are built from it."""
