// The chart over calls: what each cost, stacked by kind, or how many tokens it had; with marks for decisions.
"use strict";

// The marks on the curve: sign, colour, words of the decisions, name and meaning.
Foldline.MARKS = [
  ["▲", "--folded", ["compacted"], "compacted", "older blocks were folded into a summary"],
  ["◆", "--externalized", ["externalized", "cleared", "dropped"], "moved", "results were moved to the artifact store, cleared to key facts, or dropped"],
  ["▼", "--pruned", ["pruned"], "pruned", "old tool traffic was hidden because the provider's cache was cold anyway"],
  ["●", "--clipped", ["clipped"], "clipped", "one very large result was cut in the middle"],
  ["✕", "--hidden", ["hidden"], "hidden", "a block was hidden on request"],
  ["○", "--muted", ["skipped"], "skipped", "a compaction was due but did not happen"],
];
// The kinds of money, from below to above: name, colour.
Foldline.MONEY = [["cache read", "--paid-read"], ["cache write", "--paid-write"], ["uncached", "--paid-uncached"], ["answer", "--paid-answer"]];
Foldline.STEPS = [1, 10, 100, 1e3, 1e4, 1e5, 1e6].flatMap((unit) => [unit, 2 * unit, 5 * unit]);
Foldline.AXIS = 84; // room for the labels of the lanes, too

Foldline.color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// A canvas in the size and the resolution of the screen.
Foldline.sized = function (canvas, width, height) {
  const ratio = devicePixelRatio || 1, [columns, rows] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== columns || canvas.height !== rows) {
    Object.assign(canvas, { width: columns, height: rows });
    Object.assign(canvas.style, { width: width + "px", height: height + "px" });
  }
  const ctx = canvas.getContext("2d");
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.clearRect(0, 0, width, height);
  return ctx;
};

Foldline.chart = function (place, run, others, money, on) {
  const { calls, length: count } = run, color = Foldline.color;
  const numbers = Array.from({ length: count }, (_, at) => at + 1);
  const axis = { stroke: color("--muted"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") }, font: "12px system-ui, sans-serif" };
  const line = (values, stroke, more) => ({ values, series: { stroke: color(stroke), width: 1.5, points: { show: false }, ...more } });
  const everything = { dash: [6, 4] };
  const lines = money
    ? [line(run.paid.map((paid) => paid ?? 0), "--text", { paths: () => null }), ...(run.priced === "simulated" ? [line(calls.fullPaid, "--everything", everything)] : [])]
    : [line(calls.tokens, "--accent", { fill: color("--accent-soft"), width: 2, points: { show: count < 60, size: 5 } }), line(calls.full, "--everything", everything),
      line(numbers.map(() => run.window), "--limit", { width: 1, dash: [2, 3] }), ...others.map((other) => line(other.calls.tokens, "--muted", { width: 1 }))];
  const most = Math.max(1, calls.tokens.reduce((a, b) => Math.max(a, b), 0)), window = run.window < 4 * most ? run.window : 0;
  const top = (_, low, high) => [0, (money ? high || 0.01 : Math.max(most, window, on.full() ? calls.full.reduce((a, b) => Math.max(a, b), 0) : 0)) * 1.06];
  const plot = new uPlot({
    width: Math.max(place.clientWidth, 200),
    height: Foldline.chartHeight(money),
    padding: [money ? 8 : 46, 12, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: true, y: false }, points: { size: money ? 0 : 7 } },
    scales: { x: { time: false, range: (_, low, high) => Foldline.range(low, high, count) }, y: { range: top } },
    axes: [
      { ...axis, size: 30, incrs: Foldline.STEPS, values: (_, values) => values.map((value) => (Number.isInteger(value) ? Foldline.number(value) : "")) },
      { ...axis, size: Foldline.AXIS, values: (_, values) => values.map(money ? Foldline.dollars : Foldline.short) },
    ],
    series: [{}, ...lines.map(({ series }) => series)],
    hooks: {
      drawSeries: [(drawn, series) => money && series === 1 && Foldline.drawMoney(drawn, run)],
      draw: [(drawn) => money || Foldline.drawMarks(drawn, run), (drawn) => Foldline.drawSelected(drawn, on.selected())],
      setScale: [(drawn, key) => key === "x" && on.range(drawn.scales.x.min, drawn.scales.x.max)],
    },
  }, [numbers, ...lines.map(({ values }) => values)], place);
  let pressed = 0;
  plot.over.addEventListener("pointerdown", (event) => (pressed = event.clientX));
  plot.over.addEventListener("pointermove", (event) => on.hover(Foldline.callUnder(plot, count, event.offsetX), event));
  plot.over.addEventListener("pointerleave", () => on.hover(null));
  plot.over.addEventListener("click", (event) => {
    if (Math.abs(event.clientX - pressed) < 4) on.select(Foldline.callUnder(plot, count, event.offsetX));
  });
  return plot;
};

Foldline.chartHeight = (money) => (innerWidth < 760 ? 180 : money ? Math.max(150, Math.min(210, innerHeight * 0.22)) : 250);
Foldline.dollars = (value) => (value ? "$" + value.toLocaleString("en-US", { maximumSignificantDigits: 3 }) : "0");
Foldline.callUnder = (plot, count, x) => Math.min(Math.max(Math.round(plot.posToVal(x, "x")) - 1, 0), count - 1);

// A bar for each call; where several share a pixel, the dearest of them.
Foldline.drawMoney = function (plot, run) {
  const { ctx, bbox } = plot, { money } = run.calls, { min, max } = plot.scales.x;
  const step = bbox.width / (max - min), width = Math.max(step * (step > 4 * devicePixelRatio ? 0.82 : 1), 1), shown = new Map();
  for (let call = Math.max(0, Math.floor(min) - 2); call < Math.min(run.length, Math.ceil(max) + 1); call++) {
    const x = Math.floor(plot.valToPos(call + 1, "x", true) - width / 2), known = shown.get(x);
    if (money[call] && (known === undefined || run.paid[call] > run.paid[known])) shown.set(x, call);
  }
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  Foldline.MONEY.forEach(([, color], kind) => {
    ctx.fillStyle = Foldline.color(color);
    for (const [x, call] of shown) {
      const below = Foldline.sum(money[call].slice(0, kind)), from = plot.valToPos(below, "y", true), to = plot.valToPos(below + money[call][kind], "y", true);
      ctx.fillRect(x, to, width, from - to);
    }
  });
  ctx.restore();
};

// At least two calls, at most all of them; half a call is left on both sides.
Foldline.range = function (low, high, count) {
  if (low == null || high == null || (low <= 1 && high >= count)) return [0.5, count + 1.5];
  if (high - low < 2) {
    const middle = (low + high) / 2;
    return [middle - 1, middle + 1];
  }
  return [Math.max(low, 0.5), Math.min(high, count + 1.5)];
};

Foldline.drawMarks = function (plot, run) {
  const { ctx, bbox } = plot, ratio = devicePixelRatio;
  ctx.save();
  ctx.textAlign = "center";
  ctx.font = `${12 * ratio}px system-ui, sans-serif`;
  const rows = [[], [], []]; // compactions, what they moved, the rest; of two in one place the first
  Foldline.MARKS.forEach(([sign, color, words], kind) => {
    const row = Math.min(kind, 2), y = bbox.top - (32 - 13 * row) * ratio;
    ctx.fillStyle = Foldline.color(color);
    run.calls.decisions.forEach((decisions, call) => {
      if (!words.some((word) => decisions.includes(word))) return;
      const x = plot.valToPos(call + 1, "x", true), cell = Math.round(x / (9 * ratio));
      if (x < bbox.left || x > bbox.left + bbox.width || rows[row][cell]) return;
      rows[row][cell] = true;
      ctx.fillText(sign, x, y);
      if (row) return;
      ctx.globalAlpha = 0.35;
      ctx.fillRect(x, bbox.top, ratio, bbox.height);
      ctx.globalAlpha = 1;
    });
  });
  ctx.restore();
};

Foldline.drawSelected = function (plot, call) {
  const { ctx, bbox } = plot;
  const x = plot.valToPos(call + 1, "x", true);
  if (x < bbox.left || x > bbox.left + bbox.width) return;
  ctx.save();
  ctx.fillStyle = Foldline.color("--text");
  ctx.fillRect(x - devicePixelRatio / 2, bbox.top, Math.max(devicePixelRatio, 1), bbox.height);
  ctx.restore();
};
