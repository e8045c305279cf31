"""The look of the HTML report: light and dark by the reader's setting, narrow screens, paper."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --code: #eef1f4; --link: #0550ae;
  --ok: #116329; --ok-bg: #e3f6e8; --warning: #7d4e00; --warning-bg: #fff3cd; --error: #a40e26; --error-bg: #ffe9ea;
  --unknown: #6639ba; --unknown-bg: #f3ecff; --note: #0550ae; --note-bg: #e6f1ff; --skipped: #57606a;
  --skipped-bg: #eef1f4; --crashed: #86156e; --crashed-bg: #ffe8f7;
}
@media (prefers-color-scheme: dark) { :root {
  --page: #0f1318; --card: #181d24; --ink: #e6edf3; --soft: #9aa5b1; --line: #363e48; --code: #232a33; --link: #79b8ff;
  --ok: #6fdd8b; --ok-bg: #12301d; --warning: #f2c14e; --warning-bg: #3a2c06; --error: #ff9a9e; --error-bg: #431419;
  --unknown: #cdb4ff; --unknown-bg: #2c2145; --note: #8cc1ff; --note-bg: #132a44; --skipped: #9aa5b1;
  --skipped-bg: #232a33; --crashed: #ff9fe2; --crashed-bg: #421236;
} }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 64rem; margin: 0 auto; padding: 1.25rem 1rem 3rem; }
h1 { font-size: 1.1rem; font-weight: 600; margin: 0 0 .75rem; color: var(--soft); }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .7rem; }
h3 { font-size: 1.05rem; margin: 0 0 .4rem; overflow-wrap: anywhere; }
p { margin: .4rem 0; overflow-wrap: anywhere; }
a { color: var(--link); }
code, pre, .mono { font: .875em/1.5 ui-monospace, "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace; }
code { overflow-wrap: anywhere; }
pre { background: var(--code); border-radius: 6px; padding: .55rem .75rem; margin: .35rem 0; white-space: pre-wrap;
  overflow-wrap: anywhere; }
.banner, .card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: .9rem 1.1rem; }
.card { margin: .8rem 0; border-left: 5px solid var(--line); break-inside: avoid; }
.banner { border-width: 2px; }
.banner .word { font-size: 1.6rem; font-weight: 700; line-height: 1.2; margin: 0 0 .2rem; }
.banner .reason { font-size: 1.1rem; font-weight: 600; }
.soft { color: var(--soft); }
.small { font-size: .875rem; }
.badge { display: inline-block; border-radius: 5px; padding: 0 .5em; font-size: .85rem; font-weight: 600;
  white-space: nowrap; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; background: var(--card); font-size: .925rem; }
caption { text-align: left; color: var(--soft); font-size: .875rem; padding: .2rem 0 .4rem; }
th, td { border: 1px solid var(--line); padding: .4rem .6rem; text-align: left; vertical-align: top; }
th { background: var(--code); font-weight: 600; }
td p { margin: 0; }
ul { margin: .4rem 0; padding-left: 1.3rem; }
li { overflow-wrap: anywhere; }
dt { font-weight: 600; margin-top: .5rem; }
dd { margin: 0; }
details { background: var(--card); border: 1px solid var(--line); border-radius: 8px; margin: .5rem 0;
  padding: .5rem .9rem; }
summary { cursor: pointer; font-weight: 600; }
.card details { border: 0; padding: 0; margin: .5rem 0 0; }
.card summary { font-weight: 400; color: var(--soft); }
.bar { display: flex; height: 2.1rem; border: 1px solid var(--soft); border-radius: 6px; overflow: hidden; }
.bar span { display: block; text-align: center; line-height: 2rem; overflow: hidden; color: #fff; font-weight: 600; }
.key { display: inline-block; min-width: 1.7em; text-align: center; border-radius: 4px; color: #fff; font-weight: 600; }
.seg0 { background: #1d4ed8; } .seg1 { background: #9a3d06; } .seg2 { background: #04694b; }
.seg3 { background: #6d28d9; } .seg4 { background: #b01030; } .seg5 { background: #0e6a66; }
.rest { background: #4b5563; }
.overview { list-style: none; padding: 0; border: 1px solid var(--line); border-radius: 10px; overflow: hidden; }
.overview li { display: grid; grid-template-columns: 8.5rem 7rem 1fr; gap: .2rem .6rem; padding: .5rem .9rem;
  background: var(--card); border-bottom: 1px solid var(--line); }
.overview li:last-child { border-bottom: 0; }
.overview p { margin: 0; }
.picture { min-width: 42rem; width: 100%; height: auto; display: block; }
.picture .box { fill: var(--card); stroke: var(--line); stroke-width: 1.5; }
.picture .wins { fill: var(--ok-bg); stroke: var(--ok); stroke-width: 2; }
.picture .loses { fill: var(--page); stroke: var(--soft); stroke-dasharray: 6 4; }
.picture .edge { fill: none; stroke: var(--ok); stroke-width: 2.5; }
.picture text { fill: var(--ink); font: 14px system-ui, sans-serif; }
.picture .strong { font-weight: 700; }
.picture .fine { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: var(--soft); }
.picture .tag-wins { fill: var(--ok); font-weight: 700; } .picture .tag-loses { fill: var(--soft); font-weight: 700; }
.picture .arrow { fill: var(--ok); }
.heat td { text-align: center; min-width: 8rem; }
.heat th[scope=row] { min-width: min(19rem, 45vw); }
.heat .sub { display: block; font-size: .8rem; font-weight: 400; }
@media (max-width: 40rem) {
  main { padding: .8rem .6rem 2rem; } th, td { padding: .35rem .45rem; }
  .overview li { grid-template-columns: 1fr auto; } .overview li div { grid-column: 1 / -1; }
  .wide { min-width: 34rem; }
}
@media print {
  :root { --page: #fff; --card: #fff; } body { font-size: 11pt; } main { max-width: none; padding: 0; }
  details::details-content { content-visibility: visible; block-size: auto; }
  .bar span, .key, .badge { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  pre, .card, tr, li { break-inside: avoid; } .scroll { overflow: visible; } .picture { min-width: 0; }
}
"""

STATES = ("ok", "note", "warning", "error", "unknown", "skipped", "crashed")
STYLE += "".join(
    f".{s} {{ color: var(--{s}); background: var(--{s}-bg); }} .card.{s}-edge, .banner.{s}-edge "
    f"{{ border-color: var(--{s}); }} .card.{s}-edge {{ border-color: var(--line); border-left-color: var(--{s}); }}\n"
    for s in STATES
)
