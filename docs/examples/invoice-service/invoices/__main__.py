"""python -m invoices"""

from invoices.cli import main

raise SystemExit(main())
