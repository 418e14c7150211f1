// The curve: tokens of each call, tokens of sending everything, and marks for decisions.
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
Foldline.STEPS = [1, 10, 100, 1e3, 1e4, 1e5, 1e6].flatMap((unit) => [unit, 2 * unit, 5 * unit]);
Foldline.AXIS = 84; // room for the labels of the lanes, too

Foldline.color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

Foldline.curve = function (place, run, others, on) {
  const calls = run.calls, count = run.length;
  const numbers = Array.from({ length: count }, (_, at) => at + 1);
  const color = Foldline.color;
  const axis = { stroke: color("--muted"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") }, font: "12px system-ui, sans-serif" };
  const series = [
    {},
    { label: "this request", stroke: color("--accent"), fill: color("--accent-soft"), width: 2, points: { show: count < 60, size: 5 } },
    { label: "sending everything", stroke: color("--everything"), width: 1.5, dash: [6, 4], points: { show: false } },
    { label: "window", stroke: color("--limit"), width: 1, dash: [2, 3], points: { show: false } },
    ...others.map(() => ({ stroke: color("--muted"), width: 1, points: { show: false } })),
  ];
  const data = [numbers, calls.tokens, calls.full, numbers.map(() => run.window), ...others.map((other) => other.calls.tokens)];
  const shown = () => {
    const most = Math.max(1, ...calls.tokens);
    const window = run.window < 4 * most ? run.window : 0;
    return on.full() ? Math.max(most, window, ...calls.full) : Math.max(most, window);
  };
  const plot = new uPlot({
    width: Math.max(place.clientWidth, 200),
    height: place.clientWidth < 600 ? 210 : 275,
    padding: [46, 12, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: true, y: false }, points: { size: 7 } },
    scales: {
      x: { time: false, range: (_, low, high) => Foldline.range(low, high, count) },
      y: { range: () => [0, shown() * 1.06] },
    },
    axes: [
      { ...axis, size: 30, incrs: Foldline.STEPS, values: (_, values) => values.map((value) => (Number.isInteger(value) ? Foldline.number(value) : "")) },
      { ...axis, size: Foldline.AXIS, values: (_, values) => values.map(Foldline.short) },
    ],
    series,
    hooks: {
      draw: [(drawn) => Foldline.drawMarks(drawn, run), (drawn) => Foldline.drawSelected(drawn, on.selected())],
      setScale: [(drawn, key) => key === "x" && on.range(drawn.scales.x.min, drawn.scales.x.max)],
      setCursor: [(drawn) => on.hover(drawn.cursor.idx ?? null)],
    },
  }, data, place);
  let pressed = 0;
  plot.over.addEventListener("pointerdown", (event) => (pressed = event.clientX));
  plot.over.addEventListener("click", (event) => {
    if (Math.abs(event.clientX - pressed) < 4 && plot.cursor.idx != null) on.select(plot.cursor.idx);
  });
  return plot;
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
