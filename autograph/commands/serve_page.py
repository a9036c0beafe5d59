"""The page of `autograph serve`: an editor on the left, a stage of the program on the right."""

from __future__ import annotations

import html
from collections.abc import Sequence

_EXAMPLE = """\
import autograph as ag


@ag.function
def root(a):
    x = a
    while ag.abs(x * x - a) > 1e-6 * a:
        x = 0.5 * (x + a / x)
    return x
"""

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --bad: #c0392b; }
* { box-sizing: border-box; }
body { margin: 0; height: 100vh; display: grid; grid-template-rows: auto 1fr; font: 14px/1.45 system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: .4rem 1rem; align-items: center; padding: .5rem .8rem;
         border-bottom: 1px solid var(--line); }
h1 { font-size: 1rem; margin: 0; }
label { display: flex; gap: .4rem; align-items: center; }
input { font: 13px ui-monospace, monospace; padding: .2rem .4rem; min-width: 0; }
#signature { width: 20rem; max-width: 70vw; }
main { display: grid; grid-template-columns: 1fr 1fr; min-height: 0; }
section { display: grid; grid-template-rows: auto 1fr; min-height: 0; min-width: 0; }
textarea, pre { margin: 0; padding: .8rem; border: 0; font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
textarea { width: 100%; height: 100%; resize: none; outline: none; background: var(--soft);
           grid-row: 1 / 3; tab-size: 4; }
#right { border-left: 1px solid var(--line); }
pre { overflow: auto; white-space: pre; }
pre.bad { color: var(--bad); white-space: pre-wrap; }
pre.old { opacity: .5; }
pre.wrapped { white-space: pre-wrap; overflow-wrap: anywhere; }
nav { display: flex; flex-wrap: wrap; border-bottom: 1px solid var(--line); }
nav button { font: inherit; color: inherit; background: none; border: 0; border-bottom: 2px solid transparent;
             padding: .4rem .8rem; cursor: pointer; }
nav button[aria-selected=true] { border-color: currentColor; font-weight: 600; }
@media (max-width: 50rem) {
  body { height: auto; } main { grid-template-columns: 1fr; } textarea { height: 45vh; }
  #right { border-left: 0; border-top: 1px solid var(--line); min-height: 50vh; } }
"""

_SCRIPT = """
const at = id => document.getElementById(id);
const buttons = [...document.querySelectorAll('nav button')];
let stage = buttons[0].value, asked = 0, waiting, controller;
async function show() {
  const number = ++asked;
  controller?.abort();
  controller = new AbortController();
  at('shown').classList.add('old');
  let answer;
  try {
    const response = await fetch('show', {method: 'POST', signal: controller.signal, body: JSON.stringify({
      source: at('source').value, function: at('function').value.trim(), signature: at('signature').value, stage})});
    answer = response.ok ? await response.json() : {ok: false, text: await response.text()};
  } catch (error) {
    if (error.name === 'AbortError') return;
    const text = 'The server is gone: start `autograph serve` again, and open the address that it prints.';
    answer = {ok: false, text};
  }
  if (number !== asked) return;
  at('shown').textContent = answer.text;
  at('shown').className = !answer.ok ? 'bad' : stage === 'explain' ? 'wrapped' : '';
}
const later = () => { clearTimeout(waiting); waiting = setTimeout(show, 500); };
for (const id of ['source', 'function', 'signature']) at(id).addEventListener('input', later);
at('source').addEventListener('keydown', event => {
  if (event.key !== 'Tab' || event.shiftKey) return;
  event.preventDefault();
  at('source').setRangeText('    ', at('source').selectionStart, at('source').selectionEnd, 'end');
  later();
});
for (const button of buttons) button.onclick = () => {
  stage = button.value;
  buttons.forEach(each => each.setAttribute('aria-selected', each === button));
  show();
};
show();
"""


def page(stages: Sequence[str]) -> str:
    """The page as text; it needs nothing else but the server's answers."""
    buttons = "".join(
        f'<button role="tab" value="{stage}" aria-selected="{"false" if number else "true"}">{stage}</button>'
        for number, stage in enumerate(stages)
    )
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>autograph</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>
<body>
<header><h1>autograph</h1>
<label>function <input id="function" value="root" size="12" spellcheck="false"></label>
<label>signature <input id="signature" value="a: float32" spellcheck="false"
  placeholder="x: float32[None, 3], n: int32"></label></header>
<main><section><textarea id="source" spellcheck="false" aria-label="source">{html.escape(_EXAMPLE)}</textarea></section>
<section id="right"><nav role="tablist">{buttons}</nav><pre id="shown" aria-live="polite"></pre></section></main>
<script>{_SCRIPT}</script></body></html>
"""
