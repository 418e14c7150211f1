// Access to the data of a report: states of blocks, requests, texts.
"use strict";
const Foldline = {}, PAGE = 100;
const { h, html, useState, useEffect, useLayoutEffect, useRef, useMemo } = htmPreact;

Foldline.inflated = async function (element) {
  const bytes = Uint8Array.from(atob(element.textContent), (sign) => sign.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
};

Foldline.number = (value) => Math.round(value).toLocaleString("en-US");
Foldline.plural = (count, word) => Foldline.number(count) + " " + word + (count === 1 ? "" : "s");
Foldline.short = function (value) {
  for (const [unit, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (value >= unit) {
      const scaled = value / unit;
      return (scaled < 10 ? scaled.toFixed(1).replace(/\.0$/, "") : scaled.toFixed(0)) + letter;
    }
  }
  return String(Math.round(value));
};
Foldline.money = function (value, about) {
  if (value == null) return "–";
  const digits = value >= 1 || !value ? 2 : 3, small = value > 0 && value < 0.01;
  return (about ? "about $" : "$") + value.toLocaleString("en-US", small ? { minimumSignificantDigits: 2, maximumSignificantDigits: 2 } : { minimumFractionDigits: digits, maximumFractionDigits: digits });
};
Foldline.share = (part, whole) => (whole ? Math.round((100 * part) / whole) + "%" : "–");
Foldline.when = function (seconds) {
  const date = new Date(seconds * 1000);
  return isNaN(date) ? "@" + seconds : date.toISOString().replace("T", " ").slice(0, 19) + " UTC";
};
Foldline.clock = (seconds) => Foldline.when(seconds).slice(11, 16);
Foldline.lasting = function (seconds) {
  for (const [size, unit, smaller, rest] of [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]]) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}` + (seconds % size >= smaller ? ` ${Math.floor((seconds % size) / smaller)} ${rest}` : "");
  }
  return Math.round(seconds) + " s";
};
Foldline.shortPath = (path) => (path.length < 44 ? path : "…/" + path.split(/[/\\]/).slice(-3).join("/"));
Foldline.sum = (values) => values.reduce((total, value) => total + value, 0);

// Lanes by kind, from top to bottom; kinds that match no lane are in the last.
Foldline.LANES = [
  ["user", "User", /^user\./],
  ["assistant", "Answers", /^assistant\.completion$/],
  ["thinking", "Thinking", /^assistant\.thinking$/],
  ["call", "Tool calls", /^react\.tool\.call$/],
  ["result", "Results", /^react\.tool\.result$/],
  ["note", "Notes, plans", /^react\.(note|plan)$/],
  ["other", "Other", /./],
];

// Lists parallel to a replay's or a timeline's blocks and calls.
Foldline.Run = class {
  constructor(facts, overview, load) {
    const { states, ...rest } = overview;
    Object.assign(this, rest);
    this.stateNames = states;
    this.facts = facts;
    this.load = load;
    this.contents = null;
    this.length = this.calls.at.length;
    this.size = this.blocks.version.length;
    this.lane = this.kinds.map((kind) => Foldline.LANES.findIndex(([, , like]) => like.test(kind)));
    this.byVersion = new Map(this.blocks.version.map((version, index) => [version, index]));
    this.foreign = this.calls.usage.some(Boolean) && !this.calls.rendered.some(Boolean); // an import: only the size of what its agent sent is known
    this.fullName = this.foreign ? "blocks alone" : "sending everything";
    this.paid = this.calls.money.map((kinds) => kinds && Foldline.sum(kinds));
    this.rest = Foldline.sum(this.paid) - Foldline.sum(this.spent.dollars);
    this.partsOf = new Map();
    this._requests = new Map();
    this._history = null;
  }

  async open() {
    if (!this.contents) this.contents = await this.load();
    return this.contents;
  }

  // Tokens of the prompt that was paid for: that of a recording is not the one on the page.
  sent(call) {
    return (this.isRecorded && this.calls.sent[call]) || this.calls.tokens[call];
  }

  // Tokens of a call: uncached, read, written and, if reported, of the answer.
  usage(call) {
    const c = this.calls;
    return c.usage[call] || [c.uncached[call], c.read[call], c.write[call]];
  }

  // The call of a result, or the result of a call, once the texts are there.
  mate(block) {
    const calls = this.contents?.calls;
    if (!calls?.[block]) return undefined;
    if (this._matesOf !== calls) {
      this._mates = new Map();
      calls.forEach((id, at) => id && this._mates.set(id, [...(this._mates.get(id) || []), at]));
      this._matesOf = calls;
    }
    return this._mates.get(calls[block]).find((at) => at !== block);
  }

  kind(block) {
    return this.kinds[this.blocks.kind[block]];
  }

  turn(block) {
    return this.turns[this.blocks.turn[block]];
  }

  // Whether the money is that of recorded calls, which are not the requests on the page.
  get isRecorded() { return this.priced === "recorded"; }

  // Begin and end, in seconds since the epoch.
  get times() {
    const all = [...this.calls.at, ...this.blocks.at].filter((at) => at > 0);
    return all.length ? [all.reduce((a, b) => Math.min(a, b)), all.reduce((a, b) => Math.max(a, b))] : null;
  }

  // The state number of each block at a call; 255: not appended yet.
  statesAt(call) {
    const found = new Uint8Array(this.size).fill(255);
    const shown = this.calls.shown[call] ?? this.version;
    const { version } = this.blocks;
    for (let block = 0; block < this.size && version[block] <= shown; block++) found[block] = 0;
    const { event, block, state } = this.changes;
    for (let at = 0; at < event.length && event[at] <= shown; at++) found[block[at]] = state[at];
    return found;
  }

  // What happened to a block: [{event, state, change}], oldest first.
  history(block) {
    if (!this._history) {
      this._history = new Map();
      this.changes.block.forEach((changed, at) => {
        if (!this._history.has(changed)) this._history.set(changed, []);
        this._history.get(changed).push(at);
      });
    }
    return (this._history.get(block) || []).map((at) => ({
      event: this.changes.event[at],
      state: this.stateName(this.changes.state[at]),
      change: at,
    }));
  }

  stateName(number) {
    return number === 255 ? "not there yet" : this.stateNames[number];
  }

  // The first call whose request shows this version of the log or a later one.
  callAt(version) {
    const { shown } = this.calls;
    let low = 0, high = shown.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (shown[middle] < version) low = middle + 1; else high = middle;
    }
    return low;
  }

  // The numbers of the pieces of a request, in order.
  piecesOf(call) {
    if (this._requests.has(call)) return this._requests.get(call);
    let known = -1;
    for (const each of this._requests.keys()) if (each < call && each > known) known = each;
    let pieces = known < 0 ? [] : this._requests.get(known);
    for (let at = known + 1; at <= call; at++) {
      pieces = pieces.slice(0, this.requests.kept[at]).concat(this.requests.added[at]);
    }
    if (this._requests.size > 50) this._requests.clear();
    this._requests.set(call, pieces);
    return pieces;
  }

  // The request as it went to the provider.
  request(call) {
    const marks = new Map(this.requests.marks[call]);
    const request = {};
    let parts = [];
    this.piecesOf(call).forEach((number, place) => {
      const slot = this.pieces.slot[number];
      let value = JSON.parse(this.contents.pieces[number]);
      if (marks.has(place)) Object.assign(value, JSON.parse(marks.get(place)));
      if (slot.startsWith("=")) request[slot.slice(1)] = value;
      else if (!slot) parts.push(value);
      else {
        const [name, inner] = slot.split("/");
        parts = [];
        if (inner) value[inner] = parts;
        (request[name] ||= []).push(value);
      }
    });
    return request;
  }
};

// The readable text of a piece.
Foldline.words = function (value) {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(Foldline.words).join("\n");
  if (!value || typeof value !== "object") return String(value);
  for (const name of ["text", "thinking", "output_text"]) if (typeof value[name] === "string") return value[name];
  for (const name of ["content", "parts", "output", "summary"]) {
    if (typeof value[name] === "string" || Array.isArray(value[name])) return Foldline.words(value[name]);
  }
  for (const name of ["input", "arguments", "functionCall", "functionResponse", "function"]) {
    if (value[name] !== undefined) return (value.name ? value.name + " " : "") + Foldline.indented(value[name]);
  }
  return Foldline.indented(value);
};
Foldline.indented = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
