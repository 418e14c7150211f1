"""Prints the script of roles: `python -m persistence.postgres [--schema S] [--retention] [ROLE=TENANT ...]`."""

import sys
from argparse import ArgumentParser

from blocks import MisuseError
from persistence.postgres._roles import roles


def main() -> int:
    """Print the script; this connects to no server."""
    parser = ArgumentParser(prog="python -m persistence.postgres", description=roles.__doc__)
    parser.add_argument("--schema", default="foldline", help="where the tables are")
    parser.add_argument(
        "--retention", action="store_true", help="let programs remove and rewrite events"
    )
    parser.add_argument("tenants", nargs="*", metavar="ROLE=TENANT", help="a login of one tenant")
    given = parser.parse_args()
    pairs = [(role, tenant) for role, _, tenant in (each.partition("=") for each in given.tenants)]
    try:
        sys.stdout.write(roles(given.schema, pairs, "DELETE, UPDATE" if given.retention else ""))
    except MisuseError as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
