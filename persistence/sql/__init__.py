"""Common code of stores in relational databases; `sqlite` and `postgres` have what differs."""
