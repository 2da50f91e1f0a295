"""Child processes of the program: started, asked, limited and ended in one way. Messages are JSON and bytes."""
