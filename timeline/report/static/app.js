// The page: numbers on top, the curve and the lanes, and one of the panels below.
"use strict";

Foldline.dark = matchMedia("(prefers-color-scheme: dark)");
Foldline.TABS = [["request", "Request"], ["compare", "Two requests"], ["summary", "Summaries"], ["block", "Block"], ["search", "Search"], ["calls", "All calls"], ["policies", "Side by side"], ["numbers", "Numbers"]];

Foldline.Picture = function ({ runs, state, go, theme }) {
  const run = runs[state.run], chart = useRef(), canvas = useRef(), live = useRef({}), readout = useRef();
  const [by, setBy] = useState("state"), [full, setFull] = useState(true);
  live.current = { ...live.current, state, full };
  const others = runs.filter((other) => other !== run && other.facts.session === run.facts.session && other.length === run.length);
  useEffect(() => {
    const lanes = new Foldline.Lanes(canvas.current, run), zoomed = live.current.zoomed;
    lanes.by = by;
    let queued = 0;
    const paint = () => {
      queued = 0;
      lanes.draw(live.current.state.call, live.current.state.block);
    };
    const soon = () => (queued ||= requestAnimationFrame(paint));
    const plot = Foldline.curve(chart.current, run, others, {
      selected: () => live.current.state.call,
      full: () => live.current.full,
      select: (call) => go({ call: Math.min(call, run.length - 1) }),
      range: (low, high) => {
        lanes.range = [low, high];
        live.current.zoomed = high - low < run.length ? [low, high] : null;
        soon();
      },
      hover: (call) => (readout.current.textContent = call == null || call >= run.length ? "" : "under the pointer: " + Foldline.callWords(run, call)),
    });
    const sized = () => {
      plot.setSize({ width: chart.current.clientWidth, height: plot.height });
      lanes.left = plot.bbox.left / devicePixelRatio;
      lanes.width = plot.bbox.width / devicePixelRatio;
      soon();
    };
    const watch = new ResizeObserver(sized);
    watch.observe(chart.current);
    live.current.repaint = () => { plot.redraw(false); soon(); };
    live.current.plot = plot;
    live.current.lanes = lanes;
    Foldline.shown = { run, plot, lanes }; // for the browser's console and for tests
    sized();
    if (zoomed) plot.setScale("x", { min: zoomed[0], max: zoomed[1] });
    return () => { watch.disconnect(); cancelAnimationFrame(queued); plot.destroy(); };
  }, [run, theme, by, full]);
  useEffect(() => live.current.repaint?.(), [state.call, state.block]);

  const zoom = (factor) => {
    const { plot } = live.current, { min, max } = plot.scales.x, all = run.length + 1;
    const wide = Math.min((max - min) * factor, all);
    const middle = factor < 1 ? Math.min(Math.max(state.call + 1, min), max) : (min + max) / 2;
    const from = Math.min(Math.max(middle - wide / 2, 0.5), 0.5 + all - wide);
    plot.setScale("x", { min: from, max: from + wide });
  };
  const move = (call) => {
    const to = Math.min(Math.max(call, 0), run.length - 1), { plot } = live.current, { min, max } = plot.scales.x;
    if (to + 1 < min || to + 1 > max) plot.setScale("x", { min: to + 1 - (max - min) / 2, max: to + 1 + (max - min) / 2 });
    go({ call: to });
  };
  const keys = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -1e9, End: 1e9 };
  const key = (event) => {
    if (event.key in keys) move(state.call + keys[event.key]);
    else if (event.key === "+" || event.key === "=") zoom(0.5);
    else if (event.key === "-") zoom(2);
    else if (event.key === "0") zoom(1e9);
    else return;
    event.preventDefault();
  };
  const clicked = (event) => {
    const bounds = canvas.current.getBoundingClientRect(), { lanes } = live.current;
    const block = lanes.hit(event.clientX - bounds.left, event.clientY - bounds.top);
    if (block != null) go({ tab: "block", block });
  };
  const over = (event) => {
    const bounds = canvas.current.getBoundingClientRect(), { lanes } = live.current;
    const block = lanes.hit(event.clientX - bounds.left, event.clientY - bounds.top);
    canvas.current.style.cursor = block == null ? "default" : "pointer";
    readout.current.textContent = block == null ? "" : `under the pointer: v${run.blocks.version[block]}, ${run.kind(block)}, ${Foldline.number(run.blocks.tokens[block])} tokens, ${run.stateName(lanes.states[block])}`;
  };
  const present = new Set(run.calls.decisions.flat());
  const stateNames = [...run.stateNames, ...(run.length > 1 ? ["not there yet"] : [])];
  return html`
    <section class="card" aria-label="Curve and lanes">
      <div class="row">
        <h2>Tokens of each call, and where every block is</h2>
        <span class="spacer"></span>
        <button onClick=${() => zoom(0.5)} title="Zoom in (+); or drag across the curve">+</button><button onClick=${() => zoom(2)} title="Zoom out (-)">−</button><button onClick=${() => zoom(1e9)} title="Show all calls (0)">all</button>
        <label title="Extend the scale to the tokens of sending everything"><input type="checkbox" checked=${full} onChange=${() => setFull(!full)} /> scale to everything</label>
        <label>colour by <select value=${by} onChange=${(event) => setBy(event.target.value)}><option value="state">state</option><option value="kind">kind</option></select></label>
      </div>
      <p class="legend"><span><i class="line accent"></i>this request</span><span title=${Foldline.meaning(run.fullName)}><i class="line everything"></i>${run.fullName}</span><span title=${Foldline.meaning("window")}><i class="line limit"></i>window (${Foldline.number(run.window)})</span>${others.length ? html`<span title="The requests of the other replays of this session"><i class="line other"></i>other replays</span>` : null}
        ${Foldline.MARKS.filter(([, , words]) => words.some((word) => present.has(word))).map(([sign, color, , name, words]) => html`<span title=${words}><b style=${{ color: `var(${color})` }}>${sign}</b> ${name}</span>`)}</p>
      <div class="slider" role="slider" tabindex="0" aria-label="Chosen call" aria-valuemin="1" aria-valuemax=${run.length} aria-valuenow=${state.call + 1} aria-valuetext=${Foldline.callWords(run, state.call)} onKeyDown=${key}>
        <div class="chart" ref=${chart}></div>
        <div class="lanes"><canvas ref=${canvas} aria-hidden="true" onClick=${clicked} onPointerMove=${over}></canvas></div>
      </div>
      <p class="legend" aria-label="Colours of the lanes">${by === "state"
        ? stateNames.map((name) => html`<span title=${(Foldline.STATES[name] || ["", ""])[1]}><i class="box" style=${{ background: `var(${(Foldline.STATES[name] || ["--muted"])[0]})` }}></i>${name}</span>`)
        : Foldline.LANES.map(([, name], lane) => html`<span><i class="box" style=${{ background: `var(${Foldline.KIND_COLORS[lane]})` }}></i>${name}</span>`)}</p>
      <p class="readout"><b>${Foldline.callWords(run, state.call)}</b> <span ref=${readout}></span></p>
      <p class="hint">Click the curve to choose a call, a block to see where it went; drag across the curve to zoom. Keys, on the curve: ← → one call, Page Up and Page Down ten, Home, End; + − 0 zoom. States are those of the chosen call.</p>
    </section>`;
};

Foldline.Tiles = function ({ run }) {
  const f = Foldline.totals(run), about = run.facts.guess;
  const [whole, ours, whose] = run.facts.compared ? [...run.facts.compared, "the recorded bill"] : [f.full, f.paid, "sending everything"];
  return html`<dl class="numbers tiles">
    <${Foldline.Number} name="calls" value=${Foldline.number(run.length)} more=${"in " + Foldline.plural(run.turns.length, "turn")} />
    <${Foldline.Number} name="tokens a call" value=${Foldline.number(f.mean)} more=${"at most " + Foldline.number(f.most)} />
    <${Foldline.Number} name="compactions" value=${Foldline.number(f.compactions)} />
    <${Foldline.Number} name="blocks" value=${Foldline.number(run.size)} />
    <${Foldline.Number} name="cache read" value=${Foldline.share(f.read, f.all)} />
    <${Foldline.Number} name="cost" value=${Foldline.money(f.paid, about)} more=${run.foreign ? "as billed to its agent" : Foldline.share(f.paid, f.full) + " of sending everything"} />
    ${run.foreign ? null : html`<${Foldline.Number} name="saved" value=${(whole < ours ? "−" : "") + Foldline.money(Math.abs(whole - ours), about)} more=${`of ${Foldline.money(whole, about)}, ${whose}`} />`}
  </dl>`;
};

Foldline.Tabs = function ({ tab, go, several }) {
  const shown = Foldline.TABS.filter(([name]) => several || name !== "policies");
  const key = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = shown.findIndex(([name]) => name === tab), next = shown[(at + step + shown.length) % shown.length][0];
    go({ tab: next });
    document.getElementById("tab-" + next).focus();
    event.preventDefault();
  };
  return html`<div role="tablist" aria-label="What to show" onKeyDown=${key}>${shown.map(([name, title]) => html`<button role="tab" id=${"tab-" + name} aria-selected=${name === tab} aria-controls="panel" tabindex=${name === tab ? 0 : -1} onClick=${() => go({ tab: name })}>${title}</button>`)}</div>`;
};

Foldline.App = function ({ runs, report, follow }) {
  const [state, setState] = useState(() => Foldline.fromHash(runs)), [ready, setReady] = useState(false);
  const [theme, setTheme] = useState("auto"), [isDark, setDark] = useState(Foldline.dark.matches);
  const go = (to) => setState((old) => Foldline.settled(runs, { ...old, ...to }));
  const run = runs[state.run];
  useEffect(() => {
    let current = true;
    setReady(runs.every((each) => each.contents));
    Promise.all(runs.map((each) => each.open())).then(() => current && setReady(true));
    return () => (current = false);
  }, [runs]);
  useEffect(() => history.replaceState(null, "", Foldline.toHash(state)), [state]);
  useEffect(() => setState((old) => Foldline.settled(runs, follow && old.following ? { ...old, call: runs[old.run].length - 1 } : old)), [runs]);
  useEffect(() => {
    const slash = (event) => {
      if (event.key !== "/" || /input|textarea|select/i.test(event.target.tagName)) return;
      document.getElementById("query").focus();
      event.preventDefault();
    };
    document.addEventListener("keydown", slash);
    return () => document.removeEventListener("keydown", slash);
  }, []);
  useEffect(() => {
    const changed = () => setDark(Foldline.dark.matches);
    Foldline.dark.addEventListener("change", changed);
    return () => Foldline.dark.removeEventListener("change", changed);
  }, []);
  const painted = theme === "auto" ? (isDark ? "dark" : "light") : theme;
  document.documentElement.dataset.theme = painted;
  const themed = () => setTheme({ auto: "dark", dark: "light", light: "auto" }[theme]);
  const parts = { run, runs, state, go, ready, call: state.call };
  const panel = { request: Foldline.RequestPanel, compare: Foldline.ComparePanel, summary: Foldline.SummaryPanel, block: Foldline.BlockPanel, search: Foldline.SearchPanel, calls: Foldline.CallsPanel, policies: Foldline.PoliciesPanel, numbers: Foldline.NumbersPanel }[state.tab];
  const notes = [...(run.facts.notes || []), ...(run.foreign ? [Foldline.FOREIGN] : [])];
  return html`
    <header>
      <div><h1>${report.back ? html`<a href=${report.back}>timelines</a> / ` : null}${run.facts.title}</h1>
        <p class="hint">${run.facts.bill ? html`<b>${run.facts.bill}</b><br />` : null}${[run.facts.format, run.model, "policy " + run.policy, `window ${Foldline.number(run.window)}`].filter(Boolean).join(" · ")}${run.facts.guess ? html`<br /><b>${run.facts.guess}</b>` : null}</p></div>
      <span class="spacer"></span>
      ${runs.length > 1 ? html`<label>replay <select id="run" value=${state.run} onChange=${(event) => go({ run: Number(event.target.value) })}>${runs.map((each, at) => html`<option value=${at}>${each.facts.name}</option>`)}</select></label>` : null}
      ${follow ? html`<label title="Stay with the newest call while the agent works"><input type="checkbox" checked=${state.following} onChange=${() => go({ following: !state.following })} /> follow</label>` : null}
      <label>search <input id="query" type="search" value=${state.query} placeholder="text or path  ( / )" onInput=${(event) => go({ query: event.target.value, tab: "search" })} /></label>
      <button onClick=${themed} title="Light, dark, or the system's setting">theme: ${theme}</button>
    </header>
    <main>
      <${Foldline.Tiles} run=${run} />
      ${run.length ? html`<${Foldline.Picture} runs=${runs} state=${state} go=${go} theme=${painted} />` : html`<section class="card"><p>No request has been made from this timeline yet.</p></section>`}
      <section class="card">
        <${Foldline.Tabs} tab=${state.tab} go=${go} several=${runs.length > 1} />
        <div id="panel" role="tabpanel" aria-labelledby=${"tab-" + state.tab} tabindex="0">${run.length || ["block", "search", "numbers"].includes(state.tab) ? html`<${panel} ...${parts} />` : null}</div>
      </section>
      ${notes.length ? html`<section class="card"><h2>Notes</h2><ul>${notes.map((note) => html`<li>${note}</li>`)}</ul></section>` : null}
    </main>
    <footer class="hint">Made by foldline. ${run.facts.withheld ? "Blocks hidden on request are left out." : ""}</footer>`;
};

Foldline.settled = function (runs, state) {
  const run = runs[state.run] || runs[0];
  return { ...state, run: runs.indexOf(run), call: Math.min(Math.max(state.call, 0), Math.max(run.length - 1, 0)), otherRun: Math.min(state.otherRun, runs.length - 1) };
};
Foldline.fromHash = function (runs) {
  const given = new URLSearchParams(location.hash.slice(1)), last = Math.max(runs[0].length - 1, 0);
  const number = (name, otherwise) => (/^\d+$/.test(given.get(name) || "") ? Number(given.get(name)) : otherwise);
  const tab = Foldline.TABS.some(([name]) => name === given.get("tab")) ? given.get("tab") : "request";
  return Foldline.settled(runs, { run: number("run", 0), call: number("call", last + 1) - 1, tab, block: given.has("block") ? number("block", null) : null, summary: number("summary", 0), other: number("other", Math.max(last - 1, 0)), otherRun: number("otherRun", 0), query: given.get("query") || "", following: true });
};
Foldline.toHash = function (state) {
  const given = new URLSearchParams();
  for (const name of ["run", "tab", "block", "summary", "other", "otherRun", "query"]) if (state[name] != null && state[name] !== "") given.set(name, state[name]);
  given.set("call", state.call + 1);
  return "#" + given;
};

// A report: everything is in the file.
Foldline.start = async function () {
  const report = Foldline.given();
  const runs = await Promise.all(report.runs.map(async (facts, at) => new Foldline.Run(facts, await Foldline.inflated(document.getElementById("overview-" + at)), () => Foldline.inflated(document.getElementById("contents-" + at)))));
  htmPreact.render(html`<${Foldline.App} runs=${runs} report=${report} />`, document.getElementById("app"));
};
Foldline.given = () => JSON.parse(document.getElementById("report").textContent);
