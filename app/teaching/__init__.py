"""The part of the window for teaching: lessons, presenting, homework, handouts, pages and films of lessons."""
