// The charts: over calls, and below it what was big, or where every block went.
"use strict";

Foldline.Picture = function ({ runs, state, go, theme }) {
  const run = runs[state.run], chart = useRef(), canvas = useRef(), live = useRef({});
  const [by, setBy] = useState("state"), [full, setFull] = useState(true), { over, view, money } = state, inMoney = over === "money";
  live.current = { ...live.current, state, full };
  const others = runs.filter((other) => other !== run && other.facts.session === run.facts.session && other.length === run.length);
  useLayoutEffect(() => {
    const isMap = view === "map", place = isMap ? new Foldline.Treemap(canvas.current, run) : new Foldline.Lanes(canvas.current, run), zoomed = live.current.zoomed;
    place.by = by;
    let queued = 0;
    const paint = () => {
      queued = 0;
      const { call, block, inside } = live.current.state;
      if (isMap) Object.assign(place, { money, inside });
      place.draw(call, block);
    };
    const soon = () => (queued ||= requestAnimationFrame(paint));
    const plot = Foldline.chart(chart.current, run, others, inMoney, {
      selected: () => live.current.state.call,
      full: () => live.current.full,
      select: (call) => go({ call, aside: "calls" }),
      range: (low, high) => {
        place.range = [low, high];
        live.current.zoomed = high - low < run.length ? [low, high] : null;
        if (!isMap) soon();
      },
      hover: (call, event) => Foldline.tip(event, call == null ? null : Foldline.callTip(run, call)),
    });
    const sized = () => {
      plot.setSize({ width: chart.current.clientWidth, height: plot.height });
      place.left = plot.bbox.left / devicePixelRatio;
      place.width = plot.bbox.width / devicePixelRatio;
      soon();
    };
    const watch = new ResizeObserver(sized);
    watch.observe(chart.current);
    Object.assign(live.current, { plot, place, soon, repaint: () => { plot.redraw(false); soon(); } });
    Foldline.shown = { run, plot, [isMap ? "map" : "lanes"]: place }; // for the browser's console and for tests
    sized();
    paint();
    if (zoomed) plot.setScale("x", { min: zoomed[0], max: zoomed[1] });
    return () => { watch.disconnect(); cancelAnimationFrame(queued); Foldline.tip(); plot.destroy(); };
  }, [run, theme, by, full, over, view, money]);
  useEffect(() => live.current.repaint?.(), [state.call, state.block, state.inside]);

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
  const under = (event) => {
    const bounds = canvas.current.getBoundingClientRect();
    return live.current.place.hit(event.clientX - bounds.left, event.clientY - bounds.top);
  };
  const over_ = (event) => {
    const found = under(event);
    canvas.current.style.cursor = found ? "pointer" : "default";
    if (view === "map") live.current.soon();
    Foldline.tip(event, found || view === "map" ? live.current.place.tip() : null);
  };
  const clicked = (event) => { const found = under(event); if (found) go(found); };
  return html`
    <section class="card charts" aria-label="Charts">
      <div class="row">
        <h2>${inMoney ? Foldline.moneyTitle(run) : "Tokens of each call"}</h2><span class="spacer"></span>
        <${Foldline.Choice} label="By call" value=${over} set=${(over) => go({ over })} options=${[["money", "money"], ["tokens", "tokens"]]} />
        <span class="choice-of"><button onClick=${() => zoom(0.5)} title="Zoom in (+); or drag across the chart" aria-label="Zoom in">+</button><button onClick=${() => zoom(2)} title="Zoom out (-)" aria-label="Zoom out">−</button><button onClick=${() => zoom(1e9)} title="Show all calls (0)">all</button></span>
        ${inMoney ? null : html`<label title="Extend the scale to the tokens of sending everything"><input type="checkbox" checked=${full} onChange=${() => setFull(!full)} /> scale to everything</label>`}
      </div>
      <${inMoney ? Foldline.MoneyLegend : Foldline.TokenLegend} run=${run} others=${others} />
      <div class="slider" role="slider" tabindex="0" title="Keys: ← → one call, Page Up and Page Down ten, Home, End; + − 0 zoom" aria-label="Chosen call" aria-valuemin="1" aria-valuemax=${run.length} aria-valuenow=${state.call + 1} aria-valuetext=${Foldline.callWords(run, state.call)} onKeyDown=${key}>
        <div class="chart" ref=${chart}></div>
      </div>
      <div class="row">
        <${Foldline.Choice} label="Below it" value=${view} set=${(view) => go({ view })} options=${[["map", "What was big"], ["lanes", "Where blocks went"]]} /><span class="spacer"></span>
        ${view === "map" ? html`${state.inside ? html`<${Foldline.Trail} run=${run} inside=${state.inside} go=${go} />` : null}<${Foldline.Choice} label="Size" value=${money} set=${(money) => go({ money })} options=${[[false, "by tokens"], [true, "by money"]]} />`
          : html`<label>colour by <select value=${by} onChange=${(event) => setBy(event.target.value)}><option value="state">state</option><option value="kind">kind</option></select></label>`}
      </div>
      <div class=${view === "map" ? "map" : "lanes"}><canvas ref=${canvas} aria-hidden="true" onClick=${clicked} onPointerMove=${over_} onPointerLeave=${() => Foldline.tip()}></canvas></div>
      <${view === "map" ? Foldline.MapLegend : Foldline.LaneLegend} run=${run} by=${by} money=${money} go=${go} />
    </section>`;
};

Foldline.moneyTitle = (run) => ({ recorded: "Recorded bill by call", reported: "Bill by call", simulated: "Money by call: prompts alone, simulated" })[run.priced];

Foldline.MoneyLegend = function ({ run }) {
  const all = Foldline.MONEY.map((_, kind) => Foldline.sum(run.calls.money.map((kinds) => (kinds ? kinds[kind] : 0))));
  const beside = run.isRecorded ? run.facts.figures[0].dollars - Foldline.sum(all) : 0;
  return html`<p class="legend">${Foldline.MONEY.map(([name, color], kind) => (all[kind] ? html`<span title=${Foldline.meaning(name)}><i class="box" style=${{ background: `var(${color})` }}></i>${name} ${Foldline.money(all[kind])}</span>` : null))}
    ${beside > 0.005 ? html`<span title="Not in the chart: calls of sub-agents, or broken off">outside the conversation ${Foldline.money(beside)}</span>` : null}
    ${run.priced === "simulated" ? html`<span title=${Foldline.meaning(run.fullName)}><i class="line everything"></i>${run.fullName}</span>` : null}</p>`;
};

Foldline.TokenLegend = function ({ run, others }) {
  const present = new Set(run.calls.decisions.flat());
  return html`<p class="legend"><span><i class="line accent"></i>this request</span><span title=${Foldline.meaning(run.fullName)}><i class="line everything"></i>${run.fullName}</span><span title=${Foldline.meaning("window")}><i class="line limit"></i>window (${Foldline.number(run.window)})</span>${others.length ? html`<span title="The requests of the other replays of this session"><i class="line other"></i>other replays</span>` : null}
    ${Foldline.MARKS.filter(([, , words]) => words.some((word) => present.has(word))).map(([sign, color, , name, words]) => html`<span title=${words}><b style=${{ color: `var(${color})` }}>${sign}</b> ${name}</span>`)}</p>`;
};

Foldline.MapLegend = function ({ run, money, go }) {
  const parts = Foldline.parts(run, money, ""), whole = Foldline.sum(parts.map((part) => part.size));
  const shown = Math.min(7, parts.filter((part) => part.size / whole >= 0.01).length);
  return html`<p class="legend" aria-label="Colours of the map">${parts.slice(0, shown).map((each) => html`<span><i class="box" style=${{ background: `var(${Foldline.partColor(run, each.part)})` }}></i>${each.part == null ? each.label : html`<button class="link quiet" onClick=${() => go({ inside: String(each.part), aside: "largest" })}>${each.label}</button>`} ${Foldline.share(each.size, whole)}</span>`)}${parts.length > shown ? html`<span>${parts.length - shown} smaller</span>` : null}</p>`;
};

Foldline.LaneLegend = function ({ run, by }) {
  const stateNames = [...run.stateNames, ...(run.length > 1 ? ["not there yet"] : [])];
  return html`<p class="legend" aria-label="Colours of the lanes">${by === "state"
    ? stateNames.map((name) => html`<span title=${(Foldline.STATES[name] || ["", ""])[1]}><i class="box" style=${{ background: `var(${(Foldline.STATES[name] || ["--muted"])[0]})` }}></i>${name}</span>`)
    : Foldline.LANES.map(([, name], lane) => html`<span><i class="box" style=${{ background: `var(${Foldline.KIND_COLORS[lane]})` }}></i>${name}</span>`)}</p>`;
};

Foldline.callTip = function (run, call) {
  const kinds = run.calls.money[call];
  return [`call ${call + 1}, ${Foldline.when(run.calls.at[call])}`, kinds ? `${Foldline.money(run.paid[call], run.facts.guess)}: ` + Foldline.MONEY.map(([name], kind) => (kinds[kind] ? `${name} ${Foldline.money(kinds[kind])}` : "")).filter(Boolean).join(", ") : "no usage is known",
    `${Foldline.number(run.sent(call))} tokens`, run.calls.why[call], Foldline.decided(run, call)].filter(Boolean);
};

// Words at the pointer; without words it goes.
Foldline.tip = function (event, words) {
  const tip = document.getElementById("tip");
  tip.hidden = !words;
  if (!words) return;
  tip.replaceChildren(...words.map((line) => Object.assign(document.createElement("div"), { textContent: line })));
  const { offsetWidth: width, offsetHeight: height } = tip;
  tip.style.left = Math.max(4, event.clientX + 14 + width > innerWidth ? event.clientX - width - 10 : event.clientX + 14) + "px";
  tip.style.top = Math.max(4, event.clientY + 16 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 16) + "px";
};
