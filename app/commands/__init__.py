"""Every action of the user, declared once as data. Menus, keys, palette and shortcut sheet are made from it."""
