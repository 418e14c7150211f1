"""What stores in relational databases have in common; a folder beside this one each has what differs."""
