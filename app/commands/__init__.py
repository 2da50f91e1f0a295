"""Every action of the user, declared once as data; menus, keys, palette and shortcut sheet are made from it."""
