"""`python -m cudnn_doctor.explain --format json FILE`: until the command line has `explain`."""

from __future__ import annotations

import json
import sys

from cudnn_doctor.explain import InputError, answer


def main(arguments: list[str]) -> int:
    files = [a for a in arguments if a not in ("--format", "json")]
    try:
        document = answer(files)
    except InputError as e:
        sys.stderr.write(f"{e}\n")
        return 2
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
