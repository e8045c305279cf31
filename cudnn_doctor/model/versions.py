"""Version numbers as the field writes them, compared as integers (9.28 is newer than 9.3)."""

from __future__ import annotations

from functools import lru_cache

Numbers = tuple[int, ...]
LONGEST = 18  # digits of one number; Python refuses to read 4300, and no release has as many


class NotAVersionError(ValueError):
    """A text that should be a version and begins with no number."""


@lru_cache(maxsize=4096)
def numbers(version: str) -> Numbers:
    """The leading numbers: "9.10.2.21" -> (9, 10, 2, 21), "2.15.0.post1" -> (2, 15, 0), "2.11.0+cu130" -> (2, 11, 0).

    Raises:
        NotAVersionError: the text does not begin with a number.
    """
    found: list[int] = []
    for part in version.split("+", maxsplit=1)[0].split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits or len(digits) > LONGEST:
            break
        found.append(int(digits))
        if digits != part:  # "0rc1": what follows is no release number
            break
    if not found:
        raise NotAVersionError(f"{version!r} is not a version number")
    return tuple(found)


def minor(version: str) -> str:
    """Major and minor: "9.10.2.21" -> "9.10"; a major alone stays alone."""
    return dotted(numbers(version)[:2])


def dotted(parts: Numbers) -> str:
    return ".".join(map(str, parts))


def padded(version: str, length: int) -> Numbers:
    """Exactly `length` numbers, missing ones as zero."""
    parts = numbers(version)[:length]
    return parts + (0,) * (length - len(parts))


def within(version: str, first: str, last: str = "") -> bool:
    """Whether a version lies in `first` .. `last`, both included at the precision given: "9.20" covers 9.20.1."""
    low = numbers(first)
    if padded(version, len(low)) < low:
        return False
    if not last:
        return True
    high = numbers(last)
    return padded(version, len(high)) <= high


def below(version: str, limit: str) -> bool:
    """Whether a version is older than `limit`, missing numbers taken as zero."""
    length = max(len(numbers(version)), len(numbers(limit)))
    return padded(version, length) < padded(limit, length)


def at_least(have: str, needed: str) -> bool | None:
    """Whether a driver release satisfies a minimum; None when `have` is too short to tell ("525" against 525.60.13)."""
    mine, least = numbers(have), numbers(needed)
    common = min(len(mine), len(least))
    if mine[:common] != least[:common]:
        return mine[:common] > least[:common]
    return True if len(mine) >= len(least) else None


def from_cudnn_number(value: int) -> str:
    """cudnnGetVersion in words: 8907 -> "8.9.7", 92800 -> "9.28.0" (the base changed with cuDNN 9)."""
    base = 10000 if value >= 90000 else 1000
    return f"{value // base}.{value % base // 100}.{value % 100}"


def cuda_version(text: str) -> str:
    """CUDA as TensorFlow's build info writes it, made plain: "64_112" -> "11.2" (a DLL suffix), "12.5.1" -> "12.5"."""
    suffix = text.removeprefix("64_")
    if suffix != text and suffix.isdigit() and len(suffix) > 1:
        return f"{suffix[:-1]}.{suffix[-1]}"
    return minor(text)


@lru_cache(maxsize=4096)
def in_python_range(version: str, ranges: str) -> bool:
    """Whether a Python fits "2.7 3.3-3.6" (TensorFlow's table) or ">=3.9.0" (Requires-Python)."""
    here = numbers(version)[:2]
    for part in ranges.split():
        if part.startswith(">="):
            if here >= numbers(part[2:])[:2]:
                return True
            continue
        first, _, last = part.partition("-")
        if numbers(first)[:2] <= here <= numbers(last or first)[:2]:
            return True
    return False


def in_ranges(version: str, ranges: tuple[str, ...]) -> bool:
    """Whether major.minor lies in one of "10.2", "11.0-11.4"."""
    here = padded(version, 2)
    for part in ranges:
        first, _, last = part.partition("-")
        if padded(first, 2) <= here <= padded(last or first, 2):
            return True
    return False


def capability(code: str) -> str:
    """ "sm_90a" or "90" -> "9.0", "compute_120" -> "12.0".

    Raises:
        NotAVersionError: no two or three digits are in it.
    """
    digits = code.rpartition("_")[2].rstrip("af")
    if not (digits.isascii() and digits.isdigit() and 2 <= len(digits) <= 3):
        raise NotAVersionError(f"{code!r} is not the name of a GPU architecture")
    return dotted((int(digits[:-1]), int(digits[-1])))
