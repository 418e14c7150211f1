// The panels below the chart: a request, two side by side, summaries, search, tables.
"use strict";
const PREVIEW = 400;

Foldline.Number = ({ name, value, more }) => html`
  <div class="number" title=${Foldline.meaning(name)}>
    <dt>${name}</dt><dd>${value}${more ? html` <small>${more}</small>` : null}</dd>
  </div>`;

Foldline.Waiting = () => html`<p class="waiting" role="status">Opening the texts …</p>`;

// One of a few: buttons of which one is pressed.
Foldline.Choice = ({ label, value, set, options }) => html`<span class="choice-of" role="group" aria-label=${label}>${options.map(([name, title]) => html`<button aria-pressed=${name === value} onClick=${() => set(name)}>${title}</button>`)}</span>`;

Foldline.Text = function ({ text, most = PREVIEW }) {
  const [whole, setWhole] = useState(false);
  const long = text.length > most && !whole;
  return html`<pre class="text">${long ? text.slice(0, most) : text}${long
    ? html`<button class="link" onClick=${() => setWhole(true)}>… ${Foldline.number(text.length - most)} more characters</button>` : null}</pre>`;
};

Foldline.kindOf = function (value) {
  if (!value || typeof value !== "object") return "";
  if (value.type) return String(value.type).replaceAll("_", " ");
  for (const name of ["functionCall", "functionResponse", "text", "inlineData"]) if (name in value) return name;
  return "";
};

// One request: its pieces in order, message by message.
Foldline.pieces = function (run, call) {
  const marks = new Map(run.requests.marks[call]), kept = run.requests.kept[call];
  let role = "", field = "";
  return run.piecesOf(call).map((number, place) => {
    const slot = run.pieces.slot[number], opens = slot.includes("/");
    const value = JSON.parse(run.contents.pieces[number]);
    if (slot && !slot.startsWith("=")) field = slot.split("/")[0];
    if (opens) role = value.role || "";
    const own = slot && !opens ? (slot.startsWith("=") ? slot.slice(1) : value.role || field) : role;
    return { number, slot, opens, value, role: own, mark: marks.get(place), isNew: place >= kept, version: run.pieces.version[number] };
  }).filter((piece) => !piece.opens);
};

Foldline.Piece = function ({ run, piece, go, sign }) {
  const type = Foldline.kindOf(piece.value), name = piece.value?.name || piece.value?.function?.name || "";
  return html`
    <li class=${"piece" + (sign === "+" ? " added" : sign === "-" ? " removed" : piece.isNew && sign === undefined ? " new" : "")}>
      <div class="head">
        ${sign && sign !== " " ? html`<b class="sign">${sign === "+" ? "+ only in the second" : "− only in the first"}</b>` : null}
        <span class="role">${piece.role}</span> <span class="type">${type}${name ? " " + name : ""}</span>
        ${piece.version ? html` <${Foldline.BlockLink} run=${run} version=${piece.version} go=${go} />` : null}
        ${piece.isNew && sign === undefined ? html` <span class="badge" title="Not in the request of the call before">new</span>` : null}
      </div>
      <${Foldline.Text} key=${piece.number} text=${Foldline.words(piece.value)} />
      ${piece.mark ? html`<p class="mark" title=${Foldline.meaning("cache point")}>cache point: everything up to here is to be kept ${Foldline.markWords(piece.mark)}</p>` : null}
    </li>`;
};

Foldline.markWords = function (mark) {
  const ttl = Object.values(JSON.parse(mark))[0]?.ttl;
  return ttl ? `(${ttl})` : "";
};

Foldline.Billed = function ({ run, call }) {
  const c = run.calls, usage = c.usage[call], [uncached, read, write, output] = run.usage(call);
  const total = Math.max(uncached + read + write, 1);
  return html`
    <div class="billed" role="img" aria-label=${`read ${read}, written ${write}, uncached ${uncached} tokens`}>
      <i class="read" style=${{ width: (100 * read) / total + "%" }}></i><i class="write" style=${{ width: (100 * write) / total + "%" }}></i><i class="uncached" style=${{ width: (100 * uncached) / total + "%" }}></i>
    </div>
    <dl class="numbers">
      <${Foldline.Number} name="tokens" value=${Foldline.number(c.tokens[call])} more=${"of " + Foldline.number(run.window)} />
      <${Foldline.Number} name=${run.fullName} value=${Foldline.number(c.full[call])} />
      <${Foldline.Number} name="read" value=${Foldline.number(read)} more=${Foldline.share(read, total)} />
      <${Foldline.Number} name="written" value=${Foldline.number(write)} />
      <${Foldline.Number} name="uncached" value=${Foldline.number(uncached)} />
      <${Foldline.Number} name="paid" value=${Foldline.money(c.paid[call], run.facts.guess)} />
      <${Foldline.Number} name="system" value=${Foldline.number(c.system[call])} />
      <${Foldline.Number} name="tools" value=${Foldline.number(c.tools[call])} />
      <${Foldline.Number} name="summary" value=${Foldline.number(c.summary[call])} />
    </dl>
    <p class="hint">${usage ? `Read, written and uncached are what the provider reported; the answer had ${Foldline.plural(output, "token")}.` : "Read, written and uncached are simulated by the provider's rules for its cache."}${c.bust[call] ? " It lost a prefix that was still in the provider's cache." : ""}</p>`;
};

Foldline.callWords = (run, call) => [`call ${call + 1} of ${run.length}: ${Foldline.number(run.calls.tokens[call])} tokens`, Foldline.decided(run, call)].filter(Boolean).join(", ");

Foldline.exactWords = function (run, call) {
  if (run.calls.exact[call]) return "Exact: rendered again from the log, it has the hash that was recorded when the request was sent.";
  if (!run.calls.rendered[call]) {
    const sent = run.calls.usage[call] ? ` The agent sent another one, of ${Foldline.number(run.calls.tokens[call])} tokens, as the provider reported.` : "";
    return `The log has no request for this answer. Below is the request that the log renders to at that point, without new decisions.${sent}`;
  }
  if (run.facts.withheld) return "Not exactly what was sent: this report leaves out blocks hidden on request, or the system prompt and tools were not given.";
  return "Not exactly what was sent: the log does not have the system prompt and the tools (give --system and --tools), or the request was rendered with other settings.";
};

Foldline.RequestPanel = function ({ run, call, go, ready }) {
  const [raw, setRaw] = useState(false);
  const pieces = useMemo(() => (ready ? Foldline.pieces(run, call) : []), [run, call, ready]);
  const [most, setMost] = useState(PAGE);
  const box = useRef();
  useEffect(() => setMost(PAGE), [run, call]);
  useEffect(() => { if (box.current) box.current.scrollTop = box.current.scrollHeight; }, [run, call, ready, raw]);
  if (!ready) return html`<${Foldline.Waiting} />`;
  const fresh = pieces.filter((piece) => piece.isNew).length;
  const from = Math.max(0, pieces.length - most);
  return html`
    <h3>Request of ${Foldline.callWords(run, call)}</h3>
    <p class="hint">${Foldline.when(run.calls.at[call])}. ${Foldline.exactWords(run, call)}</p>
    <${Foldline.Billed} run=${run} call=${call} />
    <div class="row">
      <button onClick=${() => setRaw(!raw)} aria-pressed=${raw}>${raw ? "As text" : "As JSON"}</button>
      <button onClick=${() => go({ tab: "compare", other: Math.max(call - 1, 0) })}>Compare with the call before</button>
      <button onClick=${() => Foldline.copied(JSON.stringify(run.request(call)))}>Copy as JSON</button>
      <span class="hint">${Foldline.plural(pieces.length, "piece")}, ${Foldline.number(fresh)} new since the call before</span>
    </div>
    ${raw ? html`<pre class="text json" tabindex="0">${JSON.stringify(run.request(call), null, 2)}</pre>` : html`
      <div class="scroll boxed" tabindex="0" role="region" aria-label="The request, piece by piece" ref=${box}>
      ${from ? html`<button onClick=${() => setMost(most + 5 * PAGE)}>Show earlier pieces (${Foldline.number(from)} more)</button>` : null}
      <ol class="pieces" start=${from + 1}>${pieces.slice(from).map((piece, at) => html`<${Foldline.Piece} key=${from + at} run=${run} piece=${piece} go=${go} />`)}</ol></div>`}`;
};

Foldline.copied = function (text) {
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
  Foldline.announce("Copied");
};
Foldline.announce = (words) => (document.getElementById("said").textContent = words);

Foldline.CallChoice = function ({ label, runs, at, call, set }) {
  const run = runs[at];
  const choose = (event) => {
    const wanted = Number(event.target.value) - 1;
    if (wanted >= 0 && wanted < run.length) set({ call: wanted });
  };
  return html`<fieldset class="choice"><legend>${label}</legend>
    ${runs.length > 1 ? html`<label>Of <select value=${at} onChange=${(event) => set({ run: Number(event.target.value) })}>${runs.map((each, number) => html`<option value=${number}>${each.facts.name}</option>`)}</select></label>` : null}
    <label>call <input type="number" min="1" max=${run.length} value=${call + 1} onChange=${choose} /></label>
    <span class="hint">${Foldline.callWords(run, call)}</span></fieldset>`;
};

Foldline.ComparePanel = function ({ runs, state, go, ready }) {
  const first = { run: state.otherRun, call: Math.min(state.other, runs[state.otherRun].length - 1) };
  const second = { run: state.run, call: state.call };
  const found = useMemo(() => {
    if (!ready) return [];
    const [old, now] = [first, second].map(({ run, call }) => Foldline.pieces(runs[run], call));
    const key = (piece) => piece.role + "\n" + JSON.stringify(piece.value);
    return Foldline.diff(old.map(key), now.map(key)).map(([sign, , a, b]) => ({ sign, piece: sign === "-" ? old[a] : now[b] }));
  }, [ready, first.run, first.call, second.run, second.call]);
  if (!ready) return html`<${Foldline.Waiting} />`;
  const groups = [];
  for (const { sign, piece } of found) {
    let last = groups[groups.length - 1];
    if (!last || Boolean(last.same) !== (sign === " ")) groups.push((last = sign === " " ? { same: [] } : { old: [], now: [] }));
    (last.same || (sign === "-" ? last.old : last.now)).push(piece);
  }
  const count = (sign) => found.filter((each) => each.sign === sign).length;
  return html`
    <h3>Two requests side by side</h3>
    <div class="row wide">
      <${Foldline.CallChoice} label="First" runs=${runs} at=${first.run} call=${first.call} set=${(to) => go({ otherRun: to.run ?? first.run, other: to.call ?? first.call })} />
      <${Foldline.CallChoice} label="Second" runs=${runs} at=${second.run} call=${second.call} set=${go} />
    </div>
    <p>${Foldline.plural(count(" "), "piece")} in both, ${Foldline.number(count("-"))} only in the first, ${Foldline.number(count("+"))} only in the second.</p>
    <div class="scroll boxed" tabindex="0" role="region" aria-label="What differs"><div class="sides">${groups.map((group) => group.same
      ? html`<details class="same"><summary>${Foldline.plural(group.same.length, "piece")} the same</summary><${Foldline.Side} run=${runs[second.run]} pieces=${group.same} go=${go} sign=" " /></details>`
      : html`<${Foldline.Side} run=${runs[first.run]} pieces=${group.old} go=${go} sign="-" /><${Foldline.Side} run=${runs[second.run]} pieces=${group.now} go=${go} sign="+" />`)}</div></div>`;
};

Foldline.Side = ({ run, pieces, go, sign }) => html`<ol class="pieces">${pieces.slice(0, PAGE).map((piece) => html`<${Foldline.Piece} run=${run} piece=${piece} go=${go} sign=${sign} />`)}${pieces.length > PAGE ? html`<li class="hint">and ${Foldline.number(pieces.length - PAGE)} more</li>` : null}</ol>`;

Foldline.Entries = ({ of }) => html`<table class="facts"><tbody>${Object.entries(of).filter(([, value]) => value != null && value !== "" && value !== 0 && value !== false && !(Array.isArray(value) && !value.length) && !(value && typeof value === "object" && !Object.keys(value).length)).map(([name, value]) => html`
  <tr><th scope="row">${name.replaceAll("_", " ")}</th><td>${Array.isArray(value)
    ? html`<details><summary>${Foldline.number(value.length)}</summary><ul>${value.slice(0, 200).map((each) => html`<li>${typeof each === "object" ? Object.entries(each).map(([key, item]) => `${key.replaceAll("_", " ")}: ${typeof item === "object" ? JSON.stringify(item) : item}`).join("; ") : String(each)}</li>`)}</ul></details>`
    : typeof value === "object" ? html`<details><summary>${Object.keys(value).map((key) => key.replaceAll("_", " ")).join(", ")}</summary><pre>${Foldline.indented(value)}</pre></details>` : typeof value === "number" ? Foldline.number(value) : String(value)}</td></tr>`)}</tbody></table>`;

Foldline.SummaryPanel = function ({ run, state, go, ready }) {
  const [as, setAs] = useState("document");
  const { summaries } = run, at = Math.min(state.summary, summaries.length - 1);
  if (!summaries.length) return html`<p>Nothing was folded in this timeline, so there is no summary.</p>`;
  if (!ready) return html`<${Foldline.Waiting} />`;
  const row = summaries[at], text = run.contents.summaries[at], before = at ? run.contents.summaries[at - 1] : "";
  const facts = { "covers versions": `${row.start} to ${row.cut - 1}`, blocks: row.blocks, "turns covered": row.turns, "turn that it splits": row.split, "carried word for word": (row.carried || []).map((version) => "v" + version), "why then": { proactive: "the request had grown over its budget", cold: "the provider's cache was cold anyway", forced: "somebody asked for it" }[row.trigger] || row.trigger, "stands in place of the summary at version": row.replaces || "", degraded: row.degraded ? "yes: the model failed, so it was written without one" : "" };
  const source = row.provenance, cost = source.cost_usd;
  const writer = { "written by": source.model || "the extractive summariser, without a model", instruction: source.prompt, "input tokens": source.input_tokens, "of these from the cache": source.cached_tokens, "output tokens": source.output_tokens, cost: source.reused ? "nothing: a summary of equal content had been paid for" : cost ? Foldline.money(cost) : "nothing", "stopped because": source.stop_reason, "hash of what was folded": source.source_hash };
  return html`
    <h3>Summaries</h3>
    <div class="columns">
      <ol class="choices" aria-label="Summaries, oldest first">${summaries.map((each, number) => html`<li><button aria-pressed=${number === at} onClick=${() => go({ summary: number })}>${number + 1}: before call ${each.call + 1}<br /><small>${each.replaces ? "rewritten later" : `${Foldline.short(each.before)} → ${Foldline.short(each.after)} tokens, ${Foldline.plural(each.blocks, "block")}`}</small></button></li>`)}</ol>
      <div class="grow">
        <p>${row.before ? html`The request had <b>${Foldline.number(row.before)}</b> tokens before and <b>${Foldline.number(row.after)}</b> after it. ` : null}
          <button class="link" onClick=${() => go({ tab: "request", call: Math.min(row.call, run.length - 1) })}>Show the request that has it first</button>
          ${row.call > 0 ? html` · <button class="link" onClick=${() => go({ tab: "compare", otherRun: state.run, other: row.call - 1, call: Math.min(row.call, run.length - 1) })}>compare with the one before</button>` : null}</p>
        <${Foldline.Choice} label="The text as" value=${as} set=${setAs} options=${[["document", "as a document"], ["text", "as it was sent"], ...(at ? [["changes", "changes since the one before"]] : [])]} />
        ${as === "changes" && at ? html`<${Foldline.LineDiff} old=${before} now=${text} />` : as === "text" ? html`<pre class="text json" tabindex="0">${text}</pre>` : html`<div class="json" tabindex="0" role="region" aria-label="The summary"><${Foldline.Document} text=${text} run=${run} go=${go} /></div>`}
        <div class="thirds">
          <section><h4 title=${Foldline.meaning("coverage")}>Coverage</h4><${Foldline.Entries} of=${facts} /></section>
          <section><h4 title=${Foldline.meaning("provenance")}>Provenance and cost</h4><${Foldline.Entries} of=${writer} /></section>
          <section><h4 title=${Foldline.meaning("digest")}>Digest, all compactions so far</h4><${Foldline.Entries} of=${row.digest} /></section>
        </div>
      </div>
    </div>`;
};

Foldline.LineDiff = function ({ old, now }) {
  const groups = useMemo(() => {
    const found = [];
    for (const [sign, line] of Foldline.diff(old.split("\n"), now.split("\n"))) {
      const last = found[found.length - 1];
      if (last && last.sign === sign) last.lines.push(line); else found.push({ sign, lines: [line] });
    }
    return found;
  }, [old, now]);
  return html`<div class="text json diff" tabindex="0">${groups.map(({ sign, lines }) => sign === " " && lines.length > 6
    ? html`<details><summary>${Foldline.plural(lines.length, "line")} the same</summary><pre>${lines.join("\n")}</pre></details>`
    : html`<pre class=${sign === "+" ? "added" : sign === "-" ? "removed" : ""}>${lines.map((line) => sign + " " + line).join("\n")}</pre>`)}</div>`;
};

Foldline.SearchPanel = function ({ run, state, go, ready }) {
  const query = state.query.trim().toLowerCase();
  const found = useMemo(() => {
    if (!ready || !query) return [];
    const hits = [];
    run.contents.texts.forEach((text, block) => {
      const at = text.toLowerCase().indexOf(query);
      if (at >= 0 || run.contents.paths[block].toLowerCase().includes(query)) hits.push({ block, at });
    });
    return hits;
  }, [run, ready, query]);
  const states = useMemo(() => run.statesAt(state.call), [run, state.call]);
  if (!query) return html`<p>Type a text or a path into the search field at the top; the blocks that have it are listed here.</p>`;
  if (!ready) return html`<${Foldline.Waiting} />`;
  return html`<h3 aria-live="polite">${Foldline.plural(found.length, "block")} with “${state.query.trim()}”</h3>
    <div class="scroll" tabindex="0" role="region" aria-label="Blocks found"><table><thead><tr><th scope="col">block</th><th scope="col">kind</th><th scope="col">turn</th><th scope="col">at call ${state.call + 1}</th><th scope="col">text</th></tr></thead><tbody>${found.slice(0, 200).map(({ block, at }) => {
      const text = run.contents.texts[block], from = Math.max(0, at - 40), end = at + query.length;
      return html`<tr><td><${Foldline.BlockLink} run=${run} version=${run.blocks.version[block]} go=${go} /></td><td class="name">${run.kind(block)}</td><td>${run.turn(block)}</td><td>${run.stateName(states[block])}</td><td class="snippet">${at < 0 ? run.contents.paths[block] : html`${from ? "…" : ""}${text.slice(from, at)}<mark>${text.slice(at, end)}</mark>${text.slice(end, end + 80)}`}</td></tr>`;
    })}</tbody></table></div>${found.length > 200 ? html`<p class="hint">The first 200 are shown.</p>` : null}`;
};

Foldline.CallsPanel = function ({ run, state, go }) {
  const rows = useMemo(() => Array.from({ length: run.length }, (_, call) => call), [run]), { calls: c } = run;
  const tokens = (name, of) => ({ name, value: of });
  const columns = [
    Foldline.CALL(go),
    { name: "time", value: (call) => c.at[call], show: (call) => Foldline.when(c.at[call]).slice(0, 16) },
    tokens("tokens", (call) => c.tokens[call]),
    tokens(run.fullName, (call) => c.full[call]),
    tokens("read", (call) => run.usage(call)[1]),
    tokens("written", (call) => run.usage(call)[2]),
    tokens("uncached", (call) => run.usage(call)[0]),
    { name: "paid", value: (call) => c.paid[call], show: (call) => Foldline.money(c.paid[call], run.facts.guess) },
    ...(run.isRecorded ? [{ name: "recorded", value: (call) => run.paid[call], show: (call) => Foldline.money(run.paid[call]) }] : []),
    { name: "decided before it", words: true, value: (call) => Foldline.decided(run, call) },
  ];
  return html`<h3>All calls</h3><${Foldline.Table} label="All calls" columns=${columns} rows=${rows} chosen=${state.call} />`;
};
Foldline.decided = (run, call) => [...new Set(run.calls.decisions[call])].join(", ");

Foldline.PoliciesPanel = function ({ runs, state, go }) {
  const money = (name, value) => ({ name, value, show: (run) => Foldline.money(value(run), run.facts.guess) });
  const kept = (name, of) => ({ name, value: (run) => run.facts[of], show: (run) => run.facts[of]?.toFixed(2) ?? "–" });
  const all = useMemo(() => new Map(runs.map((run) => [run, Foldline.totals(run)])), [runs]), total = (name, of) => ({ name, value: (run) => all.get(run)[of] });
  const columns = [
    { name: "policy", words: true, value: (run) => run.facts.name, show: (run) => html`<button class="link" onClick=${() => go({ run: runs.indexOf(run) })}>${run.facts.name}</button>` },
    ...(runs.every((run) => run.isRecorded) ? [money("bill", (run) => run.facts.figures[0].dollars), money("with foldline", (run) => run.facts.figures[1].dollars)]
      : [money("cost", (run) => all.get(run).paid), money("sending everything", (run) => all.get(run).full)]),
    kept("older names", "recall"), kept("older lines", "quotes"), kept("user's words", "rules"), kept("whole prompts", "prompts"), kept("next edits", "edits"), kept("instructions", "standing"),
    total("tokens a call", "mean"), total("largest", "most"), total("compactions", "compactions"),
    { name: "cache read", value: (run) => all.get(run).read / all.get(run).all, show: (run) => Foldline.share(all.get(run).read, all.get(run).all) },
    { name: "caches lost", value: (run) => Foldline.sum(run.calls.bust) }, { name: "calls", value: (run) => run.length },
  ];
  return html`<h3>Side by side</h3><p class="hint">The curve of the tokens shows the chosen one in colour and the others, where they have as many calls, as thin lines.</p>
    <${Foldline.Table} label="Side by side" columns=${columns} rows=${runs} chosen=${runs[state.run]} />
    <${Foldline.Meanings} names=${columns.map(({ name }) => name)} />`;
};

Foldline.Meanings = ({ names }) => html`<dl class="glossary">${names.map((name) => html`<div><dt>${name}</dt><dd>${Foldline.meaning(name)}</dd></div>`)}</dl>`;

Foldline.NumbersPanel = () => html`<h3>What the numbers mean</h3><${Foldline.Meanings} names=${Object.keys(Foldline.MEANINGS).sort((a, b) => a.localeCompare(b))} />`;

Foldline.totals = function (run) {
  const c = run.calls;
  let read = 0, all = 0;
  for (let call = 0; call < run.length; call++) {
    const [uncached, cached, write] = run.usage(call);
    read += cached;
    all += uncached + cached + write;
  }
  return {
    read, all, paid: Foldline.sum(c.paid) + (run.facts.summaries || 0), full: Foldline.sum(c.fullPaid),
    mean: Foldline.sum(c.tokens) / Math.max(run.length, 1), most: c.tokens.reduce((a, b) => Math.max(a, b), 0),
    compactions: c.decisions.filter((words) => words.some((word) => ["compacted", "externalized", "cleared", "dropped"].includes(word))).length,
  };
};
