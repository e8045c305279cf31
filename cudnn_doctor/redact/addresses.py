"""Whether four dotted numbers are an address or a version, and whether groups of digits are one of IPv6."""

from __future__ import annotations

import re

from cudnn_doctor.redact.patterns import OPEN_ADDRESSES

# What stands before a version: a comparison, the end of a file's or package's name, a product.
_COMPARED = re.compile(r"(?:[=<>~!]=|[^=]=|[<>~])\s?v?$|\.so\.$|@v?$")
_PRODUCT = re.compile(
    r"(?i)\b(?:lib)?(?:nvidia|cuda|cudnn|cublas|cufft|curand|cusolver|cusparse|cutensor|nccl|npp|nvjpeg|nvrtc"
    r"|nvjitlink|nvtx|nvvm|nvml|tensorrt|trt|nvinfer)"
    r"[\w.+-]{0,40}[\"']?(?:[ \t]{1,60}|[ \t]{0,60}[:=|(,/_-][ \t]{0,60})[\"']?v?$"
)
# Of these only have versions that look like an address of somebody's own network, 10.x.y.z.
_TEN = re.compile(
    r"(?i)(?:(?:curand|cufft|cusolver|cusparse|cublas|cutensor|npp|nvjpeg|nvgraph|nvrtc|cudart"
    r"|cuda[_-]runtime)\w{0,12}|(tensorrt|trt|nvinfer)\w{0,24})"
    r"(?:[-_]cu\d{1,3}|[\w-]{0,16})[^\w\n]{0,60}v?$|\.so\.$"
)
_ANY_VERSION = re.compile(
    r"(?i)(?:[-_]v?|\b(?:version|release|ver|v|driver|toolkit|runtime|torch\w*|tensorflow|jax|jaxlib|onnx\w*"
    r"|paddle\w*|keras|mxnet|cupy)[\"']?[:=\s(|]{1,40}v?)$"
)
_VERSION_AFTER = re.compile(
    r"-\d{1,3}(?:[^\w.]|$)|\+|\.(?:dist-info|post|dev|so|whl|tar|zip|deb|rpm)|-py3|[-_](?:hbc|h)?[0-9a-f]{7}_\d"
)
_ADDRESS_NAME = re.compile(r"(?i)(?:addr|host|ip|server|node|endpoint|client|peer)\w{0,12}\s?=\s?$")
_PORT_AFTER = re.compile(r":\d{2,5}\b|:/|/\d{1,2}\b(?!/)|,? port \d|\.?#\d{2,5}|\[\d{2,5}\]")
_ADDRESS_BEFORE = re.compile(
    r"(?i)(?:://|@|\b(?:address|addr|ipv?4?|inet|host|hosts|peer|from|to|at|on|server|listen\w*|bind|bound|via"
    r"|gateway|dns|nameserver|connect\w*|ping|ssh|curl|node|remote|client\w*|master|port"
    r"|endpoint)[\"']?[ =:(]{1,4}\"?)$"
)


def is_version(text: str, start: int, end: int) -> bool:
    """Whether what stands beside four dotted numbers makes them a version. An address of somebody's own network is one
    only right behind a comparison, or NVIDIA's name: `version 10.1.2.3` may be a machine."""
    if ":" in text[start:end] or _PORT_AFTER.match(text, end):
        return False
    before = text[max(0, start - 120) : start].rpartition("\n")[2]
    parts = _parts(text[start:end])
    if private(parts):
        ten = _TEN.search(before)
        return bool(ten) and parts[0] == 10 and parts[1] <= (20 if ten and ten[1] else 9)
    if _COMPARED.search(before) and not _ADDRESS_NAME.search(before):
        return True
    return bool(_PRODUCT.search(before) or _ANY_VERSION.search(before) or _VERSION_AFTER.match(text, end))


def is_address(text: str, start: int, end: int) -> bool:
    """Whether digits in dots or colons are the address of a machine that is nobody else's."""
    found = text[start:end]
    if ":" in found:
        return _is_v6(found)
    parts = _parts(found)
    if found in OPEN_ADDRESSES or any(n > 255 for n in parts) or is_version(text, start, end):
        return False
    if private(parts) or parts[0] > 10 or _PORT_AFTER.match(text, end):
        return True
    return bool(_ADDRESS_BEFORE.search(text[max(0, start - 40) : start]))


def _parts(quad: str) -> list[int]:
    return [int(n) for n in quad.split(".")]


def _is_v6(found: str) -> bool:
    from ipaddress import AddressValueError, IPv6Address

    bare = found.partition("%")[0]
    try:
        address = IPv6Address(bare)
    except AddressValueError:
        return False
    if address.is_loopback or address.is_unspecified:
        return False
    groups = [g for g in bare.split(":") if g]
    telling = re.search(r"\d", bare) or len(groups) >= 4 or re.match(r"(?i)f[cde]", bare)
    return bool(telling) and not (
        len(groups) == 2 and len(bare) < 7 and "." not in bare and not re.match(r"(?i)f[cde]|[23]", bare)
    )


def private(parts: list[int]) -> bool:
    """Whether an address belongs to a network of somebody's own (RFC 1918, 3927, 6598)."""
    a, b = parts[:2]
    return (
        a == 10
        or (a == 172 and 16 <= b <= 31)
        or (a == 192 and b == 168)
        or (a == 169 and b == 254)
        or (a == 100 and 64 <= b <= 127)
    )
