// The live view: the server's list of timelines, and one timeline as it grows.
"use strict";

Foldline.fetched = async function (address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return answer.json();
};

// Fetches again whenever the server reports a change: one request at a time, with a pause in between.
Foldline.following = function (address, look, said) {
  let wanted = false, busy = false;
  const again = async () => {
    wanted = true;
    if (busy) return;
    busy = true;
    while (wanted) {
      wanted = false;
      const began = performance.now();
      try {
        await look();
        said("");
      } catch (error) {
        said(String(error.message || error));
        setTimeout(again, 2000);
      }
      await new Promise((done) => setTimeout(done, Math.max(300, 3 * (performance.now() - began))));
    }
    busy = false;
  };
  const source = new EventSource(address);
  source.onmessage = again;
  source.onerror = () => said("The server does not answer; trying again.");
  again();
};

Foldline.Banner = ({ words }) => (words ? html`<p class="banner" role="status">${words}</p>` : null);

// One timeline. Fetched texts are kept, and only new ones are requested.
Foldline.startLive = function () {
  const { id } = Foldline.given(), query = "id=" + encodeURIComponent(id), place = document.getElementById("app");
  let held = null, runs = null, words = "";
  const load = async () => {
    const since = held ? `&epoch=${held.epoch}&blocks=${held.texts.length}&pieces=${held.pieces.length}&summaries=${held.summaries.length}&changes=${held.changes}` : "";
    const found = await Foldline.fetched("contents.json?" + query + since);
    if (!held || held.epoch !== found.epoch) return (held = found);
    for (const name of ["paths", "texts", "names", "calls", "pieces", "summaries"]) held[name] = held[name].concat(found[name]);
    Object.assign(held.stands, found.stands);
    held.changes = found.changes;
    return held;
  };
  const show = () => {
    if (runs) htmPreact.render(html`<${Foldline.Banner} words=${words} /><${Foldline.App} runs=${runs} report=${{ back: "./" }} follow=${true} />`, place);
    else if (words) place.querySelector("h1").textContent = words;
  };
  Foldline.following("changes?" + query, async () => {
    const { facts, ...overview } = await Foldline.fetched("overview.json?" + query);
    const run = new Foldline.Run(facts, overview, load);
    if (held) await run.open();
    runs = [run];
    show();
  }, (said) => { words = said; show(); });
};

Foldline.List = function ({ found, words }) {
  const [query, setQuery] = useState("");
  const rows = found.rows.filter((row) => (row.id + " " + row.prompt + " " + row.model).toLowerCase().includes(query.toLowerCase()));
  return html`<header><h1>Timelines</h1><span class="spacer"></span><label>filter <input id="query" type="search" value=${query} onInput=${(event) => setQuery(event.target.value)} /></label></header>
    <main><${Foldline.Banner} words=${words} />${found.savings.length ? html`<section class="card" aria-label="Savings">${found.savings.map((text) => html`<p>${text}</p>`)}</section>` : null}<section class="card">
      ${rows.length ? html`<div class="scroll" tabindex="0" role="region" aria-label="Timelines"><table class="list"><thead><tr>${[["timeline", "Its name in the store."], ["first prompt", "What the user asked first."], ["model", "The model that answered last."], ["calls", Foldline.meaning("calls")], ["prompt tokens", "Tokens of all prompts, as the provider reported them; estimated if it reported nothing."], ["cost", "Dollars by what the provider reported and the model's prices; – if one of the two is unknown. Of calls through a gateway with the answers, of others the prompts alone."], ["saved", "What the gateway has saved, or cost, against sending everything."], ["last event", "When something was last appended."]].map(([name, means]) => html`<th scope="col" title=${means}>${name}</th>`)}</tr></thead>
        <tbody>${rows.map((row) => html`<tr key=${row.id}><td><a href=${"timeline?id=" + encodeURIComponent(row.id)}>${row.id}</a></td><td>${row.prompt}</td><td>${row.model || "–"}</td><td data-name="calls">${Foldline.number(row.calls)}</td><td data-name="prompt tokens">${Foldline.short(row.tokens)}</td><td data-name="cost">${row.dollars == null ? "–" : Foldline.money(row.dollars)}</td><td>${row.verdict || "–"}</td><td>${Foldline.when(row.updated)}</td></tr>`)}</tbody></table></div>`
        : html`<p>${query ? "No timeline matches." : "No timelines yet. They appear here as soon as there are some."}</p>`}
      ${found.all > found.rows.length ? html`<p class="hint">The newest ${Foldline.number(found.rows.length)} of ${Foldline.number(found.all)} are shown.</p>` : null}
    </section></main>`;
};

Foldline.startList = function () {
  let found = { all: 0, rows: [], savings: [] }, words = "";
  const show = () => {
    document.documentElement.dataset.theme = Foldline.dark.matches ? "dark" : "light";
    htmPreact.render(html`<${Foldline.List} found=${found} words=${words} />`, document.getElementById("app"));
  };
  Foldline.following("changes", async () => { found = await Foldline.fetched("timelines.json"); show(); }, (said) => { words = said; show(); });
};
