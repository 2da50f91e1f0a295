"""Every action of the user, declared once as data. Menus, shortcuts, palette and shortcut sheet are made from it."""
