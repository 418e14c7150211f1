// Beside the charts: the calls, the largest parts, or one block with all that became of it. Where that place is not on
// the screen, as on a small one, the details lie over the page.
"use strict";

Foldline.ASIDES = [["calls", "Calls"], ["largest", "Largest"], ["block", "Block"]];

Foldline.Aside = function (parts) {
  const { state, go } = parts, shown = { calls: Foldline.Calls, largest: Foldline.Largest, block: Foldline.BlockDetails }[state.aside];
  const box = useRef(), place = useRef(), [isSheet, setSheet] = useState(false), began = useRef(true);
  useEffect(() => {
    box.current.scrollTop = 0;
    const { top, bottom } = place.current.getBoundingClientRect(), isAway = bottom < 200 || top > innerHeight - 200;
    if (!began.current && isAway) setSheet(true);
    began.current = false;
  }, [state.aside, state.block, state.inside]);
  useEffect(() => {
    if (!isSheet) return;
    const close = (event) => {
      const { top, bottom } = place.current.getBoundingClientRect();
      const isBack = event.type === "scroll" && innerWidth > 1000 && bottom > 300 && top < innerHeight - 300;
      if (isBack || event.key === "Escape" || (event.type === "pointerdown" && !event.target.closest(".sheet"))) setSheet(false);
    };
    const events = ["keydown", "pointerdown", "scroll"];
    events.forEach((name) => document.addEventListener(name, close));
    return () => events.forEach((name) => document.removeEventListener(name, close));
  }, [isSheet]);
  return html`<div class="beside" ref=${place}><aside class=${isSheet ? "card sheet" : "card"} aria-label="Details">
    ${isSheet ? html`<button class="close" aria-label="Close" onClick=${() => setSheet(false)}>✕</button>` : null}
    <${Foldline.Tabs} name="aside" label="Details" shown=${Foldline.ASIDES} chosen=${state.aside} choose=${(aside) => go({ aside })} />
    <div id="aside" class="inner" role="tabpanel" aria-labelledby=${"tab-" + state.aside} tabindex="0" ref=${box}><${shown} ...${parts} /></div>
  </aside></div>`;
};

// A table sorted by any column; `columns`: {name, value of a row, show, words}.
Foldline.Table = function ({ label, columns, rows, by = 0, down = false, chosen }) {
  const [order, setOrder] = useState({ at: by, down }), [most, setMost] = useState(PAGE);
  const { value } = columns[Math.min(order.at, columns.length - 1)];
  const sorted = useMemo(() => {
    const compared = (a, b) => (a == null || b == null ? (a == null) - (b == null) : (order.down ? -1 : 1) * (typeof a === "string" ? a.localeCompare(b) : a - b));
    return rows.map((row) => [value(row), row]).sort(([a], [b]) => compared(a, b)).map(([, row]) => row);
  }, [rows, order]);
  const sort = (at) => setOrder({ at, down: at === order.at ? !order.down : !columns[at].words && at > 0 });
  const head = ({ name, words }, at) => html`<th scope="col" class=${words ? "words" : ""} title=${Foldline.meaning(name)} aria-sort=${at !== order.at ? "none" : order.down ? "descending" : "ascending"}><button class="sort" onClick=${() => sort(at)}>${name}<span aria-hidden="true">${at !== order.at ? "" : order.down ? " ▾" : " ▴"}</span></button></th>`;
  const cell = (row) => ({ value, show, words }) => html`<td class=${words ? "words" : ""}>${show ? show(row) : typeof value(row) === "number" ? Foldline.number(value(row)) : value(row)}</td>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label}><table class="numeric"><thead><tr>${columns.map(head)}</tr></thead><tbody>${sorted.slice(0, most).map((row) => html`<tr class=${row === chosen ? "chosen" : ""}>${columns.map(cell(row))}</tr>`)}</tbody></table></div>
    ${sorted.length > most ? html`<button onClick=${() => setMost(most + 5 * PAGE)}>${Foldline.number(sorted.length - most)} more</button>` : null}`;
};

Foldline.CALL = (go, to) => ({ name: "call", value: (call) => call, show: (call) => html`<${Foldline.CallLink} call=${call} go=${go} to=${to} />` });
Foldline.MONEY_OF = (run, value) => ({ name: "money", value, show: (row) => Foldline.money(value(row), run.facts.guess) });

Foldline.Calls = function ({ run, state, go }) {
  const rows = useMemo(() => Array.from({ length: run.length }, (_, call) => call), [run]), c = run.calls;
  const columns = [
    Foldline.CALL(go, {}),
    { name: "time", value: (call) => c.at[call], show: (call) => Foldline.clock(c.at[call]) },
    { name: "tokens", value: (call) => run.sent(call) },
    Foldline.MONEY_OF(run, (call) => run.paid[call]),
  ];
  return html`<${Foldline.CallMoney} run=${run} call=${state.call} go=${go} />
    <${Foldline.Table} label="Calls" columns=${columns} rows=${rows} by=${3} down=${true} chosen=${state.call} />`;
};

// The chosen call, and what its money was for.
Foldline.CallMoney = function ({ run, call, go }) {
  const kinds = run.calls.money[call];
  return html`<p class="readout"><b>Call ${call + 1}</b>, ${Foldline.when(run.calls.at[call])}: ${Foldline.number(run.sent(call))} tokens, <b>${Foldline.money(run.paid[call], run.facts.guess)}</b> <button class="link" onClick=${() => Foldline.below(go, { tab: "request", call })}>what it sent ↓</button>${run.calls.why[call] ? html`<br />${run.calls.why[call]}` : null}</p>
    ${kinds ? html`<p class="legend">${Foldline.MONEY.map(([name, color], kind) => html`<span><i class="box" style=${{ background: `var(${color})` }}></i>${name} ${Foldline.money(kinds[kind])}</span>`).filter((_, kind) => kinds[kind])}</p>` : html`<p class="hint">No usage, or no price, is known of this call.</p>`}`;
};
Foldline.below = function (go, to) {
  go(to);
  document.getElementById("panel").scrollIntoView({ block: "start" });
};

Foldline.Largest = function ({ run, state, go }) {
  const parts = Foldline.parts(run, state.money, state.inside), [part, file] = state.inside.split("/");
  const rows = useMemo(() => (file ? parts.flatMap((each) => each.files[0].blocks) : parts.flatMap((each) => each.files || [each])), [parts]);
  const blocks = (row) => (row.blocks ? row.blocks.map(({ block }) => block) : row.block != null ? [row.block] : []);
  const all = (row, values) => Foldline.sum(blocks(row).map((block) => values[block]));
  const name = (row) => (row.block != null ? html`<${Foldline.BlockLink} run=${run} version=${run.blocks.version[row.block]} go=${go} /> ${row.label} <small>${Foldline.beginnings(run, row.block)[0]?.slice(0, 80)}</small>`
    : row.part == null ? row.label : html`<button class="link" title=${run.spent.files[row.file]} onClick=${() => go(row.blocks.length === 1 ? { block: row.blocks[0].block, aside: "block" } : { inside: row.inside })}>${Foldline.partName(run, row.part)}${row.label ? " · " + row.label : ""}</button>`);
  const columns = [
    { name: file ? "block" : "tool and file", words: true, value: (row) => (row.part == null ? row.label : Foldline.partName(run, row.part) + row.label), show: name },
    ...(file ? [] : [{ name: "blocks", value: (row) => (row.part == null ? null : blocks(row).length), show: (row) => (row.part == null ? "–" : Foldline.number(blocks(row).length)) }]),
    { name: "tokens", value: (row) => (row.part == null ? null : all(row, run.blocks.tokens)), show: (row) => (row.part == null ? "–" : Foldline.short(all(row, run.blocks.tokens))) },
    Foldline.MONEY_OF(run, (row) => (row.part == null ? row.size : all(row, run.spent.dollars))),
  ];
  return html`<p class="row"><${Foldline.Trail} run=${run} inside=${state.inside} go=${go} /></p>
    <${Foldline.Table} key=${state.inside + state.money} label="Largest" columns=${columns} rows=${rows} by=${columns.length - (state.money ? 1 : 2)} down=${true} />
    <p class="hint">Money of a block: what it cost to write, to send first, and to send again until it was cut out.</p>`;
};

Foldline.Trail = function ({ run, inside, go }) {
  const [part, file] = inside.split("/"), steps = [["", "all"]];
  if (part) steps.push([part, Foldline.partName(run, Number(part))]);
  if (file) steps.push([inside, Foldline.fileName(run, Number(file)) || "the rest"]);
  return html`<span>${steps.map(([to, name], at) => html`${at ? " / " : ""}${to === inside ? html`<b>${name}</b>` : html`<button class="link" onClick=${() => go({ inside: to })}>${name}</button>`}`)}</span>`;
};

// A block

Foldline.KIND_NAMES = { "react.tool.call": "call", "react.tool.result": "result", "assistant.completion": "answer", "assistant.thinking": "thinking", "user.prompt": "prompt", "user.followup": "follow-up", "user.steer": "steer" };
Foldline.kindName = (run, block) => Foldline.KIND_NAMES[run.kind(block)] || run.kind(block).replaceAll(".", " ");
Foldline.blockName = function (run, block) {
  const part = run.spent.part[block], file = Foldline.fileName(run, run.spent.file[block]);
  const isTool = run.kind(block).startsWith("react.tool.");
  return [isTool ? Foldline.partName(run, part) : "", file, Foldline.kindName(run, block)].filter(Boolean).join(" ");
};
// The beginning of its text; of a result, first what was asked for.
Foldline.beginnings = function (run, block) {
  const text = (of) => run.contents?.texts[of]?.slice(0, 160).replace(/\s+/g, " ");
  return [run.kind(block) === "react.tool.result" && text(run.mate(block)), text(block)].filter(Boolean);
};
Foldline.blockWords = (run, block) => [`v${run.blocks.version[block]}, turn ${run.turn(block)}, before call ${run.blocks.call[block] + 1}`, ...Foldline.beginnings(run, block)];

Foldline.BlockLink = ({ run, version, go }) => {
  const block = run.byVersion.get(version);
  if (block === undefined) return null;
  return html`<button class="link" title="Show this block and what became of it" onClick=${() => go({ aside: "block", block })}>v${version}</button>`;
};
Foldline.CallLink = ({ call, go, to = { tab: "request" } }) => html`<button class="link" onClick=${() => go({ ...to, call })}>call ${call + 1}</button>`;

Foldline.BlockDetails = function ({ run, state, go, ready }) {
  const block = state.block;
  if (block == null || block >= run.size) return html`<p>Choose a block: click one in the chart, in a request or in a table, or search for it.</p>`;
  if (!ready) return html`<h3>${Foldline.blockName(run, block)}</h3><${Foldline.Waiting} />`;
  const { contents } = run, version = run.blocks.version[block], path = contents.paths[block], text = contents.texts[block];
  const born = run.blocks.call[block], calls = run.length, isProse = /^(user\.|assistant\.|turn\.)/.test(run.kind(block));
  const mate = run.mate(block);
  const neighbour = (to) => html`<button disabled=${block + to < 0 || block + to >= run.size} aria-label=${to < 0 ? "block before" : "block after"} onClick=${() => go({ block: block + to })}>${to < 0 ? "←" : "→"}</button>`;
  return html`
    <h3>Block v${version} <small>${Foldline.blockName(run, block)}</small></h3>
    <p><b>${Foldline.plural(run.blocks.tokens[block], "token")}</b>, ${Foldline.money(run.spent.dollars[block], run.facts.guess)} over all calls</p>
    ${run.spent.files[run.spent.file[block]].length > 12 ? html`<p class="hint"><code>${run.spent.files[run.spent.file[block]]}</code></p>` : null}
    <div class="row">${neighbour(-1)}${neighbour(1)}${mate != null ? html`<button onClick=${() => go({ block: mate })}>${run.kind(mate) === "react.tool.call" ? "its call" : run.kind(mate) === "react.tool.result" ? "its result" : "its other half"}</button>` : null}</div>
    <h4>What it says</h4>
    ${isProse && text ? html`<${Foldline.Document} text=${text.slice(0, 20000)} run=${run} go=${go} />` : html`<${Foldline.Text} key=${block} text=${text || "(nothing that a model reads)"} most=${1500} />`}
    <h4>Where it went</h4>
    <ol class="history">
      <li><b>appended</b> ${Foldline.when(run.blocks.at[block])}, turn ${run.turn(block)}; ${born < calls ? html`first in <${Foldline.CallLink} run=${run} call=${born} go=${go} />` : "after the last call"}</li>
      ${run.history(block).map(({ event, state: name, change }) => html`<li><b style=${{ color: `var(${(Foldline.STATES[name] || ["--muted"])[0]})` }}>■</b> <b>${name}</b> ${run.callAt(event) < calls ? html`from <${Foldline.CallLink} run=${run} call=${run.callAt(event)} go=${go} />` : "after the last call"}: ${Foldline.meaning(name)}
        <${Foldline.Stand} run=${run} change=${change} /><${Foldline.Fold} run=${run} event=${event} name=${name} go=${go} /></li>`)}
    </ol>
    <h4>The way back to it</h4>
    <ul class="ways">
      <li><code>foldline show ${run.facts.timeline} '${path}'</code></li>
      <li>the model: <code>read_timeline</code> with <code>${path}</code> or <code>v${version}</code></li>
      <li>a program: <code>timeline.read(${JSON.stringify(path)})</code></li>
    </ul>`;
};
Foldline.Stand = function ({ run, change }) {
  const found = run.contents.stands[change];
  if (!found) return null;
  return html`${found[0] ? html`<${Foldline.Text} text=${"In its place: " + found[0]} />` : null}${found[1] ? html`<p>Artifact <code class="long">${found[1]}</code>; the model gets it back by <code>read_artifact</code>.</p>` : null}`;
};
Foldline.Fold = function ({ run, event, name, go }) {
  const at = run.summaries.findIndex((row) => row.version === event);
  if (at < 0 || !["folded", "carried"].includes(name)) return null;
  return html` <button class="link" onClick=${() => Foldline.below(go, { tab: "summary", summary: at })}>summary ${at + 1}</button>; <code>timeline.expand()</code> undoes the newest one.`;
};
