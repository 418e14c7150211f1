// The lanes: every block at the call that first had it, by kind from top to bottom, in the colour of its state.
"use strict";

Foldline.STATES = {
  visible: ["--visible", "in the request, unchanged"],
  carried: ["--carried", "folded, but repeated word for word after the summary: the user's texts, notes, the plan"],
  folded: ["--folded", "covered by a summary; the original stays in the log"],
  externalized: ["--externalized", "moved to the artifact store; the request has a pointer to it"],
  clipped: ["--clipped", "too large: its middle was cut out"],
  pruned: ["--pruned", "old tool traffic, hidden when the provider's cache was cold"],
  cleared: ["--cleared", "a result reduced to its key facts"],
  dropped: ["--dropped", "left out of the request; one line replaces the whole span"],
  hidden: ["--hidden", "hidden on request"],
  unsigned: ["--muted", "thinking whose signature no longer fits what precedes it"],
  "not there yet": ["--later", "appended after this call"],
};
Foldline.KIND_COLORS = ["--k-user", "--k-assistant", "--k-thinking", "--k-call", "--k-result", "--k-note", "--k-other"];

Foldline.Lanes = class {
  constructor(canvas, run) {
    this.canvas = canvas;
    this.run = run;
    this.by = "state";
    this.lanes = Foldline.LANES.map(() => []);
    run.blocks.call.forEach((_, block) => {
      if (run.kind(block) !== "turn.header") this.lanes[run.lane[run.blocks.kind[block]]].push(block);
    });
    this.rows = this.lanes.map((blocks, lane) => ({ lane, blocks })).filter((row) => row.blocks.length);
    this.turns = [];
    run.blocks.turn.forEach((turn, block) => {
      if (!this.turns.length || this.turns[this.turns.length - 1].turn !== turn) this.turns.push({ turn, call: run.blocks.call[block] });
    });
    this.states = new Uint8Array(run.size);
    this.range = [0.5, run.length + 1.5];
    this.left = Foldline.AXIS;
    this.width = 300;
  }

  get top() { return 18; }
  get rowHeight() { return 26; }
  get height() { return this.top + this.rows.length * this.rowHeight + 4; }

  x(call) {
    const [low, high] = this.range;
    return this.left + ((call + 1 - low) / (high - low)) * this.width;
  }

  call(x) {
    const [low, high] = this.range;
    return Math.round(low + ((x - this.left) / this.width) * (high - low) - 1);
  }

  draw(selected, block) {
    const { canvas, run } = this;
    const ctx = Foldline.sized(canvas, canvas.parentElement.clientWidth, this.height);
    this.states = run.statesAt(selected);
    this.colors = this.by === "state"
      ? run.stateNames.map((name) => Foldline.color((Foldline.STATES[name] || ["--muted"])[0]))
      : Foldline.KIND_COLORS.map(Foldline.color);
    this.later = Foldline.color("--later");
    this.drawTurns(ctx);
    this.rows.forEach((row, at) => this.drawRow(ctx, row, this.top + at * this.rowHeight));
    this.drawMarker(ctx, selected);
    if (block != null) this.drawBlock(ctx, block);
    this.drawLabels(ctx);
  }

  colorOf(block, lane) {
    const state = this.states[block];
    if (state === 255) return this.later;
    return this.colors[this.by === "state" ? state : lane];
  }

  drawTurns(ctx) {
    const { turns, run } = this;
    ctx.font = "11px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    let free = -Infinity;
    turns.forEach(({ turn, call }, at) => {
      const from = Math.max(this.x(call - 0.5), this.left);
      const to = Math.min(at + 1 < turns.length ? this.x(turns[at + 1].call - 0.5) : Infinity, this.left + this.width);
      if (to <= this.left || from >= this.left + this.width) return;
      ctx.fillStyle = Foldline.color(at % 2 ? "--band" : "--panel");
      ctx.fillRect(from, 0, to - from, this.height);
      const name = String(run.turns[turn]).slice(0, 12), room = ctx.measureText(name).width + 6;
      if (to - from > room && from > free) {
        ctx.fillStyle = Foldline.color("--muted");
        ctx.fillText(name, from + 3, 9);
        free = from + room;
      }
    });
  }

  drawRow(ctx, { lane, blocks }, y) {
    const { call } = this.run.blocks, [low, high] = this.range;
    const step = this.width / (high - low), height = this.rowHeight - 4;
    let at = this.first(blocks, Math.floor(low) - 2);
    const end = Math.ceil(high);
    if (step >= 3) {
      while (at < blocks.length && call[blocks[at]] < end) {
        let next = at;
        while (next < blocks.length && call[blocks[next]] === call[blocks[at]]) next++;
        const share = height / (next - at), x = this.x(call[blocks[at]]) - step / 2;
        for (let one = at; one < next; one++) {
          ctx.fillStyle = this.colorOf(blocks[one], lane);
          this.rect(ctx, x + 0.5, y + (one - at) * share, step - 1, Math.max(share - (share > 3 ? 1 : 0), 0.5));
        }
        at = next;
      }
      return;
    }
    while (at < blocks.length && call[blocks[at]] < end) {
      const x = Math.floor(this.x(call[blocks[at]])), found = new Map();
      let next = at;
      while (next < blocks.length && Math.floor(this.x(call[blocks[next]])) === x) {
        const color = this.colorOf(blocks[next], lane);
        found.set(color, (found.get(color) || 0) + 1);
        next++;
      }
      let top = y;
      for (const [color, count] of found) {
        const share = (count / (next - at)) * height;
        ctx.fillStyle = color;
        this.rect(ctx, x, top, 1, share);
        top += share;
      }
      at = next;
    }
  }

  rect(ctx, x, y, width, height) {
    const from = Math.max(x, this.left), to = Math.min(x + width, this.left + this.width);
    if (to > from) ctx.fillRect(from, y, to - from, height);
  }

  drawMarker(ctx, selected) {
    const x = this.x(selected);
    if (x < this.left || x > this.left + this.width) return;
    ctx.fillStyle = Foldline.color("--text");
    ctx.fillRect(x - 0.5, 0, 1, this.height);
  }

  drawBlock(ctx, block) {
    const place = this.placeOf(block);
    if (!place) return;
    ctx.strokeStyle = Foldline.color("--text");
    ctx.lineWidth = 2;
    ctx.strokeRect(place.x, place.y, place.width, place.height);
  }

  placeOf(block) {
    const { call } = this.run.blocks;
    const at = this.rows.findIndex((row) => row.lane === this.run.lane[this.run.blocks.kind[block]]);
    if (at < 0) return null;
    const step = this.width / (this.range[1] - this.range[0]), mates = this.rows[at].blocks;
    const first = this.first(mates, call[block]);
    let last = first;
    while (last < mates.length && call[mates[last]] === call[block]) last++;
    const share = (this.rowHeight - 4) / Math.max(last - first, 1);
    const x = this.x(call[block]) - Math.max(step, 4) / 2;
    if (x < this.left - 4 || x > this.left + this.width) return null;
    const order = mates.indexOf(block, first) - first;
    return { x, y: this.top + at * this.rowHeight + order * share, width: Math.max(step, 4), height: Math.max(share, 3) };
  }

  drawLabels(ctx) {
    ctx.font = "12px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    ctx.textAlign = "right";
    ctx.fillStyle = Foldline.color("--muted");
    this.rows.forEach(({ lane }, at) => {
      ctx.fillText(Foldline.LANES[lane][1], this.left - 8, this.top + at * this.rowHeight + (this.rowHeight - 4) / 2);
    });
    ctx.fillText("turn", this.left - 8, 9);
    ctx.textAlign = "left";
  }

  // Place of the first of these blocks whose call is this one or a later one.
  first(blocks, from) {
    const { call } = this.run.blocks;
    let low = 0, high = blocks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (call[blocks[middle]] < from) low = middle + 1; else high = middle;
    }
    return low;
  }

  // What a click at a point shows: the block there, or the nearest in its lane within three pixels; null: there is none.
  hit(x, y) {
    const row = this.rows[Math.floor((y - this.top) / this.rowHeight)];
    if (!row || x < this.left) return null;
    const { call } = this.run.blocks, step = this.width / (this.range[1] - this.range[0]);
    const reach = Math.max(1, Math.ceil(3 / step)), at = this.call(x);
    let found = null, distance = Infinity;
    for (let place = this.first(row.blocks, at - reach); place < row.blocks.length; place++) {
      const block = row.blocks[place], away = Math.abs(call[block] - at);
      if (call[block] > at + reach) break;
      if (away < distance) [found, distance] = [block, away];
    }
    if (found == null) return null;
    const first = this.first(row.blocks, call[found]);
    let last = first;
    while (last < row.blocks.length && call[row.blocks[last]] === call[found]) last++;
    const within = (y - this.top) % this.rowHeight, share = (this.rowHeight - 4) / (last - first);
    this.hovered = row.blocks[Math.min(first + Math.floor(within / share), last - 1)];
    return { block: this.hovered, aside: "block" };
  }

  tip() {
    const { run, hovered: block } = this;
    return [Foldline.blockName(run, block), `${Foldline.number(run.blocks.tokens[block])} tokens, ${run.stateName(this.states[block])} at the chosen call`, ...Foldline.blockWords(run, block), "click: details"];
  }
};
