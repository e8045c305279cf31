"""`python -m cudnn_doctor.explain --format json FILE`: until the command line has `explain`."""

from __future__ import annotations

import sys

from cudnn_doctor.explain import explain


def main(arguments: list[str]) -> int:
    import msgspec

    from cudnn_doctor.explain.types import InputError

    files = [a for a in arguments if a not in ("--format", "json")]
    try:
        answer = explain(files)
    except InputError as e:
        sys.stderr.write(f"{e}\n")
        return 2
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(answer), indent=2) + b"\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
