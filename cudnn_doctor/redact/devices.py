"""Numbers of devices: addresses of networks and of hardware, serial numbers, UUIDs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cudnn_doctor.redact.addresses import private
from cudnn_doctor.redact.search import Signed
from cudnn_doctor.redact.spans import Span

SERIAL = Signed(
    r"(?i)((?:\b|_)(?:serial(?:[ _-]?(?:number|no\.?|num|#))?|(?:gpu|board|chassis|system|product|disk"
    r"|base ?board)[ _]serial(?:[ _]?(?:number|no\.?))?|s/n|asset[ _-]?tag|service[ _-]?tag|machine[ _-]?id"
    r"|boot[ _-]?id|"
    r"host[ _-]?id|system[ _-]?uuid|product[ _]uuid|invocation[ _]id|device[ _-]?id|install(?:ation)?[ _-]?id"
    r"|licen[sc]e[ _-]?(?:id|key|no|number|code|file)|activation[ _-]?(?:code|key)|product[ _-]?key"
    r"|hardware[ _-]?id|dongle)"
    r"\\?['\"]?\s{0,30}[=:#]\s{0,30}\\?['\"]?|<(?:serial|uuid|gpu_uuid|board_serial|chassis_serial_number)>)"
    r"([A-Za-z0-9][A-Za-z0-9-]{5,40})(?![\w.])",
    "serial", "s/n", re.compile("asset[ _-]?tag"), re.compile("service[ _-]?tag"), "uuid>", "dongle",
    *(re.compile(w + r"\w{0,5}[ _-]?(?:id|uuid|key|code|no|number|file)?[\\'\"]{0,3}\s{0,30}[=:#]") for w in (
        "machine", "boot", "host", "device", "install", "licen", "activation", "product", "hardware",
    )),
)  # fmt: skip
UUID = Signed(
    r"(?i)(?<![\w-])(?:(?:GPU|MIG)-[0-9a-f]{4,8}(?:-[0-9a-f]{4}){0,3}(?:-[0-9a-f]{12})?"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?![\w-])"
    r"|(?<=MIG-)GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "gpu-", "mig-", re.compile("-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-"),
)  # fmt: skip
MAC = Signed(
    r"(?i)(?<![0-9a-f:-])(?:[0-9a-f]{2}:){5,19}[0-9a-f]{2}(?![0-9a-f:-]|\.\d)"
    r"|(?<![0-9a-f:-])(?:[0-9a-f]{2}-){5}(?:[0-9a-f]{2}-[0-9a-f]{2}-)?[0-9a-f]{2}(?![0-9a-f:-])|"
    r"(?<![\w.])[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}(?![\w.])",
    re.compile(":[0-9a-f]{2}:[0-9a-f]{2}:[0-9a-f]{2}:"),
    re.compile("-[0-9a-f]{2}-[0-9a-f]{2}-[0-9a-f]{2}-"), re.compile(r"\.[0-9a-f]{4}\.[0-9a-f]{4}"),
)  # fmt: skip
_ETHER = re.compile(r"(?i)(?:ether|mac|hw|lladdr|address|physical|bssid|link)\w*[ :=/-]{1,4}$")
GUID = Signed(
    r"(?i)((?:guid|lid_guid|wwn|wwpn|wwid|hca_id|ca_guid|eui)['\"]?\s{0,20}[:=]?\s{1,20}|\b(?:guid|wwn|wwid)[=:])"
    r"(0x[0-9a-f]{12,16}|[0-9a-f]{4}(?::[0-9a-f]{4}){3}|[0-9a-f]{16})\b",
    "guid",
    "wwn",
    "wwid",
    "wwpn",
    "hca_id",
    "eui",
)
QUAD = Signed(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d]|\.\d)", re.compile(r"\.\d{1,3}\.\d{1,3}\."))
DASHED = Signed(r"(?i)(?<![\d-])((?:\d{1,3}-){3}\d{1,3})(?![\d-])", re.compile(r"-\d{1,3}-\d{1,3}-\d"))
IPV6 = Signed(
    r"(?:(?<![\w:.])|(?<=ib\d:)|(?<=[g-z]\d:))(?:[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){7}|(?:[0-9a-fA-F]{1,4}"
    r"(?::[0-9a-fA-F]{1,4}){0,6})?::(?:[0-9a-fA-F]{1,4}:){0,6}[0-9a-fA-F]{0,4})(?:%\w{1,16})?(?![\w:]|\.\d)",
    "::", re.compile(":[0-9a-f]{1,4}:[0-9a-f]{1,4}:[0-9a-f]{1,4}:"),
)  # fmt: skip


def find(text: str, folded: str) -> Iterator[Span]:
    """Every address and number of a device."""
    for m in SERIAL.finditer(text, folded):
        value = m[2]
        if re.search(r"\d", value) and not re.fullmatch(r"0x[0-9a-f]+|v?\d{1,4}(?:-\d{1,4}){0,2}", value):
            yield Span(m.start(2), m.end(2), "serial")
    for m in UUID.finditer(text, folded):
        yield Span(m.start(), m.end(), "uuid")
    for m in MAC.finditer(text, folded):
        if (
            re.search(r"[a-fA-F]", m[0])
            or m[0].startswith("00")
            or _ETHER.search(text[max(0, m.start() - 24) : m.start()])
        ):
            yield Span(m.start(), m.end(), "mac")
    for m in GUID.finditer(text, folded):
        yield Span(m.start(2), m.end(2), "serial")
    for pattern in (QUAD, IPV6):
        for m in pattern.finditer(text, folded):
            yield Span(m.start(), m.end(), "address")
    for m in DASHED.finditer(text, folded):
        parts = [int(n) for n in m[1].split("-")]
        before = text[max(0, m.start() - 8) : m.start()].lower()
        if all(n <= 255 for n in parts) and (
            (private(parts) and re.search(r"[a-z]-?$", before)) or before.endswith(("ip-", "ec2-", "host-"))
        ):
            yield Span(m.start(), m.end(), "address")
