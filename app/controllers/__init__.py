"""Controllers that carry out commands, one subject per file.

Each is created with the window and its model (:class:`app.controllers.program.Program`), and with the few other
controllers that it uses.
"""
