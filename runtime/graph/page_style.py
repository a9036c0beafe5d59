"""Style and script of the page of a graph (`page.py`)."""

STYLE = """
:root { --ink: #1d2430; --faint: #6b7685; --line: #dfe3e9; --paper: #ffffff; --soft: #f5f7fa; --mark: #fff1c2;
        --name: #0b57a4; --kind: #7a3e9d; --type: #2e7d4f; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e3e7ee; --faint: #93a0b2; --line: #323a47; --paper: #161a20; --soft: #1e242d; --mark: #4a4119;
          --name: #82b7f2; --kind: #d0a3ec; --type: #85cfa2; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--paper); font: 15px/1.5 system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: .3rem 1.5rem; align-items: baseline; padding: .7rem 1.2rem;
         border-bottom: 1px solid var(--line); }
h1 { font-size: 1.15rem; margin: 0; }
header p { margin: 0; color: var(--faint); min-width: 0; overflow-wrap: anywhere; }
.buttons { margin-left: auto; }
button { font: inherit; font-size: .85rem; color: inherit; background: var(--soft); border: 1px solid var(--line);
         border-radius: 4px; padding: .1rem .6rem; cursor: pointer; }
main { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); }
section, aside { padding: 1rem 1.2rem; font: 13px/1.65 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
aside { border-left: 1px solid var(--line); position: sticky; top: 0; align-self: start; max-height: 100vh;
        overflow: auto; }
h2 { font: 600 .8rem system-ui, sans-serif; color: var(--faint); margin: 0 0 .5rem; overflow-wrap: anywhere; }
pre { margin: 0 0 1.5rem; overflow-x: auto; font: inherit; }
pre span { display: block; padding-left: 3.2em; text-indent: -3.2em; white-space: pre-wrap; overflow-wrap: anywhere; }
pre i { display: inline-block; width: 3.2em; padding-right: 1em; text-align: right; color: var(--faint);
        font-style: normal; text-indent: 0; user-select: none; }
pre b { font-weight: 400; }
pre .word { color: var(--kind); }
pre .text { color: var(--type); }
pre .note { color: var(--faint); }
pre .used i { color: var(--ink); font-weight: 600; }
.row { padding: 0 .4rem; border-radius: 3px; overflow-wrap: anywhere; }
summary > .row { display: inline; /* on the line of the marker, also where it wraps */ }
.name { color: var(--name); font-weight: 600; }
.name::after { content: " ="; color: var(--faint); font-weight: 400; }
.own { color: var(--name); font-weight: 600; }
.kind { color: var(--kind); }
.type { color: var(--type); }
.attrs, .faint, .gap { color: var(--faint); }
.at { color: var(--faint); margin-left: .9em; font-size: .85em; }
a { color: inherit; text-decoration: none; }
a:hover { text-decoration: underline; }
details { margin: 0; }
details > details { margin: .15rem 0 .35rem 1.1rem; padding-left: .7rem; border-left: 2px solid var(--line); }
summary { cursor: pointer; }
summary::marker { color: var(--faint); }
.region > details { margin-left: 0; padding-left: 0; border: 0; }
.on { background: var(--mark); }
.read { outline: 1px solid var(--faint); }
@media (max-width: 60rem) {
  main { display: block; } aside { position: static; max-height: none; border: 0; border-top: 1px solid var(--line); } }
"""

SCRIPT = """
const all = selector => [...document.querySelectorAll(selector)];
const clear = () => all('.on, .read').forEach(each => each.classList.remove('on', 'read'));
for (const row of all('.row')) {
  row.addEventListener('mouseenter', () => {
    clear();
    row.classList.add('on');
    const line = row.dataset.at && document.getElementById(row.dataset.at);
    if (line) { line.classList.add('on'); line.scrollIntoView({block: 'nearest'}); }
    for (const link of row.querySelectorAll('a'))
      document.getElementById(link.getAttribute('href').slice(1))?.classList.add('read');
  });
}
for (const line of all('.source .used'))
  line.addEventListener('mouseenter', () => {
    clear();
    line.classList.add('on');
    all(`.row[data-at="${line.id}"]`).forEach(row => row.classList.add('on'));
  });
// A folded region opens when something in it is asked for.
addEventListener('hashchange', () => {
  const row = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let at = row; at; at = at.parentElement) if (at.tagName === 'DETAILS') at.open = true;
  if (row) { row.scrollIntoView({block: 'nearest'}); clear(); row.classList.add('on'); }
});
document.getElementById('fold').onclick = () => all('details').forEach(each => each.open = false);
document.getElementById('unfold').onclick = () => all('details').forEach(each => each.open = true);
"""
