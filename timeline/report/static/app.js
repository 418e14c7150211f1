// The page: the bill on top, the charts and the details beside them, and one of the panels below.
"use strict";

Foldline.dark = matchMedia("(prefers-color-scheme: dark)");
Foldline.TABS = [["request", "Request"], ["compare", "Two requests"], ["summary", "Summaries"], ["search", "Search"], ["all", "All calls"], ["policies", "Side by side"], ["numbers", "Numbers"]];

// What it cost, what it would have cost, and the difference.
Foldline.Figures = ({ run }) => html`<dl class="figures">${(run.facts.figures || run.figures).map(({ name, dollars, says, is_loss: isLoss, is_guess: isGuess }) => html`
  <div class=${isLoss ? "figure loss" : name.endsWith("saved") && dollars > 0 ? "figure gain" : "figure"} title=${Foldline.meaning(name)}><dt>${name}</dt><dd>${Foldline.money(dollars, isGuess)}</dd><dd class="says">${says}</dd></div>`)}</dl>`;

Foldline.Counts = function ({ run }) {
  const f = Foldline.totals(run);
  return html`<p class="legend counts">${[["calls", `${Foldline.plural(run.length, "call")} in ${Foldline.plural(run.turns.length, "turn")}`], ["tokens a call", `${Foldline.number(f.mean)} tokens a call, at most ${Foldline.number(f.most)}`], ["cache read", `${Foldline.share(f.read, f.all)} read from the cache`], ["compactions", Foldline.plural(f.compactions, "compaction")], ["blocks", Foldline.plural(run.size, "block")], ["policy", [run.facts.format, run.facts.name].filter(Boolean).join(" ")], ["window", `window ${Foldline.number(run.window)}`]].map(([name, words]) => html`<span title=${Foldline.meaning(name)}>${words}</span>`)}</p>`;
};

Foldline.About = function ({ run }) {
  const { facts, times } = run, [from, to] = times || [];
  const when = times && `${Foldline.when(from).slice(0, 16)} to ${Foldline.when(to).slice(Foldline.when(from).slice(0, 10) === Foldline.when(to).slice(0, 10) ? 11 : 0, 16)} UTC (${Foldline.lasting(to - from)})`;
  return html`<p class="about">${[facts.folder && html`<code title=${facts.folder}>${Foldline.shortPath(facts.folder)}</code>`, when, (facts.models || [run.model]).join(", ")].filter(Boolean).map((each) => html`<span>${each}</span>`)}</p>${facts.guess ? html`<p class="about"><b>${facts.guess}</b></p>` : null}`;
};

Foldline.Tabs = function ({ name, label, shown, chosen, choose }) {
  const key = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = shown.findIndex(([each]) => each === chosen), next = shown[(at + step + shown.length) % shown.length][0];
    choose(next);
    document.getElementById("tab-" + next).focus();
    event.preventDefault();
  };
  return html`<div role="tablist" aria-label=${label} onKeyDown=${key}>${shown.map(([each, title]) => html`<button role="tab" id=${"tab-" + each} aria-selected=${each === chosen} aria-controls=${name} tabindex=${each === chosen ? 0 : -1} onClick=${() => choose(each)}>${title}</button>`)}</div>`;
};

Foldline.App = function ({ runs, report, follow }) {
  const [state, setState] = useState(() => Foldline.fromHash(runs)), [ready, setReady] = useState(false);
  const [theme, setTheme] = useState("auto"), [isDark, setDark] = useState(Foldline.dark.matches);
  const go = (to) => setState((old) => Foldline.settled(runs, { ...old, ...(to.run == null || to.run === old.run ? {} : { inside: "" }), ...to }));
  const run = runs[state.run];
  useEffect(() => {
    let current = true;
    setReady(runs.every((each) => each.contents));
    Promise.all(runs.map((each) => each.open())).then(() => current && setReady(true));
    return () => (current = false);
  }, [runs]);
  useEffect(() => performance.mark("bill"), []);
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
  const panel = { request: Foldline.RequestPanel, compare: Foldline.ComparePanel, summary: Foldline.SummaryPanel, search: Foldline.SearchPanel, "all": Foldline.CallsPanel, policies: Foldline.PoliciesPanel, numbers: Foldline.NumbersPanel }[state.tab];
  const notes = [...(run.facts.notes || []), ...(run.foreign ? [Foldline.FOREIGN] : [])];
  const heading = run.facts.title || run.prompt.replace(/^[#\s]+/, "") || run.facts.name;
  return html`
    <header>
      <div class="title"><h1 title=${heading}>${report.back ? html`<a href=${report.back}>timelines</a> / ` : null}${heading}</h1><${Foldline.About} run=${run} /></div>
      <span class="spacer"></span>
      ${runs.length > 1 ? html`<label>replay <select id="run" value=${state.run} onChange=${(event) => go({ run: Number(event.target.value) })}>${runs.map((each, at) => html`<option value=${at}>${each.facts.name}</option>`)}</select></label>` : null}
      ${follow ? html`<label title="Stay with the newest call while the agent works"><input type="checkbox" checked=${state.following} onChange=${() => go({ following: !state.following })} /> follow</label>` : null}
      <label>search <input id="query" type="search" value=${state.query} placeholder="text or path  ( / )" onInput=${(event) => go({ query: event.target.value, tab: "search" })} /></label>
      <button onClick=${themed} title="Light, dark, or the system's setting">theme: ${theme}</button>
    </header>
    <main>
      <${Foldline.Figures} run=${run} /><${Foldline.Counts} run=${run} />
      ${run.length ? html`<div class="first"><${Foldline.Picture} runs=${runs} state=${state} go=${go} theme=${painted} /><${Foldline.Aside} ...${parts} /></div>` : html`<section class="card"><p>No request has been made from this timeline yet.</p></section>`}
      <section class="card">
        <${Foldline.Tabs} name="panel" label="What to show" shown=${Foldline.TABS.filter(([name]) => runs.length > 1 || name !== "policies")} chosen=${state.tab} choose=${(tab) => go({ tab })} />
        <div id="panel" role="tabpanel" aria-labelledby=${"tab-" + state.tab} tabindex="0">${run.length || ["search", "numbers"].includes(state.tab) ? html`<${panel} ...${parts} />` : null}</div>
      </section>
      ${notes.length ? html`<section class="card"><h2>Notes</h2><ul>${notes.map((note) => html`<li>${note}</li>`)}</ul></section>` : null}
    </main>
    <footer class="hint">Made by foldline. ${run.facts.withheld ? "Blocks hidden on request are left out." : ""}</footer>`;
};

Foldline.settled = function (runs, state) {
  const run = runs[state.run] || runs[0], [part, file] = state.inside.split("/"), isThere = part < run.spent.parts.length && !(file >= run.spent.files.length);
  return { ...state, inside: isThere ? state.inside : "", run: runs.indexOf(run), call: Math.min(Math.max(state.call, 0), Math.max(run.length - 1, 0)), otherRun: Math.min(state.otherRun, runs.length - 1) };
};
Foldline.fromHash = function (runs) {
  const given = new URLSearchParams(location.hash.slice(1)), last = Math.max(runs[0].length - 1, 0);
  const number = (name, otherwise) => (/^\d+$/.test(given.get(name) || "") ? Number(given.get(name)) : otherwise);
  const oneOf = (name, list, otherwise) => (list.includes(given.get(name)) ? given.get(name) : otherwise);
  const tab = oneOf("tab", Foldline.TABS.map(([each]) => each), "request"), block = number("block", null), inside = /^\d+(\/\d+)?$/.test(given.get("inside") || "") ? given.get("inside") : "";
  return Foldline.settled(runs, { run: number("run", 0), call: number("call", last + 1) - 1, tab, block, inside, aside: oneOf("aside", Foldline.ASIDES.map(([each]) => each), block == null ? "calls" : "block"), over: oneOf("over", ["tokens"], "money"), view: oneOf("view", ["lanes"], "map"), money: given.get("size") === "money", summary: number("summary", 0), other: number("other", Math.max(last - 1, 0)), otherRun: number("otherRun", 0), query: given.get("query") || "", following: true });
};
Foldline.toHash = function (state) {
  const given = new URLSearchParams();
  for (const name of ["run", "tab", "aside", "over", "view", "inside", "block", "summary", "other", "otherRun", "query"]) if (state[name] != null && state[name] !== "") given.set(name, state[name]);
  given.set("call", state.call + 1);
  if (state.money) given.set("size", "money");
  return "#" + given;
};

// A report: everything is in the file.
Foldline.start = async function () {
  const report = Foldline.given();
  const runs = await Promise.all(report.runs.map(async (facts, at) => new Foldline.Run(facts, await Foldline.inflated(document.getElementById("overview-" + at)), () => Foldline.inflated(document.getElementById("contents-" + at)))));
  htmPreact.render(html`<${Foldline.App} runs=${runs} report=${report} />`, document.getElementById("app"));
};
Foldline.given = () => JSON.parse(document.getElementById("report").textContent);
