// The treemap: every block in its true size, by tool and by file; what is too small to be seen is drawn together.
"use strict";

Foldline.SMALLEST = 60; // square pixels of a block, or of a file, that is drawn by itself
Foldline.HEADING = 17;

// Gives each item of a list, the largest first, its place in a box: rows as square as can be.
Foldline.squarify = function (items, box) {
  let { x, y, width, height } = box, left = Foldline.sum(items.map((item) => item.size)), at = 0;
  while (at < items.length) {
    const scale = (width * height) / left, short = Math.min(width, height);
    let area = 0, worst = Infinity, end = at;
    for (; end < items.length; end++) {
      const row = area + items[end].size * scale, ratio = Math.max((short * short * items[at].size * scale) / (row * row), (row * row) / (short * short * items[end].size * scale));
      if (ratio > worst) break;
      [area, worst] = [row, ratio];
    }
    const thick = area / short || 0, isTall = height <= width;
    let from = isTall ? y : x;
    for (const item of items.slice(at, end)) {
      const long = (item.size * scale) / thick || 0;
      Object.assign(item, isTall ? { x, y: from, width: thick, height: long } : { x: from, y, width: long, height: thick });
      from += long;
      left -= item.size;
    }
    if (isTall) [x, width] = [x + thick, width - thick];
    else [y, height] = [y + thick, height - thick];
    at = end;
  }
};

Foldline.Treemap = class {
  constructor(canvas, run) {
    Object.assign(this, { canvas, run, money: false, inside: "", hovered: null, cells: [] });
  }

  get height() { return this.canvas.parentElement.clientHeight; }

  draw(_, block) {
    const ctx = Foldline.sized(this.canvas, this.canvas.parentElement.clientWidth, this.height);
    const width = this.canvas.parentElement.clientWidth, key = [width, this.height, this.money, this.inside].join();
    if (this.key !== key) {
      this.key = key;
      this.place({ x: 0, y: 0, width, height: this.height });
    }
    const text = Foldline.color("--text"), line = Foldline.color("--panel");
    ctx.textBaseline = "middle";
    for (const cell of this.cells) {
      ctx.fillStyle = Foldline.color(Foldline.partColor(this.run, cell.part));
      ctx.fillRect(cell.x, cell.y, cell.width, cell.height);
      ctx.strokeStyle = line;
      ctx.lineWidth = cell.isHeading ? 0 : 1;
      if (!cell.isHeading) ctx.strokeRect(cell.x + 0.5, cell.y + 0.5, cell.width - 1, cell.height - 1);
      if (cell.height < 13 || cell.width < 34) continue;
      ctx.fillStyle = text;
      ctx.font = `${cell.isBold ? "600 " : ""}11px system-ui, sans-serif`;
      const words = Foldline.cut(ctx, cell.label, cell.width - 8), y = cell.y + (cell.isHeading ? cell.height / 2 + 1 : 9);
      ctx.fillText(words, cell.x + 4, y);
      if (cell.isHeading || cell.height < 28) continue;
      ctx.globalAlpha = 0.75;
      if (ctx.measureText(this.amount(cell.size)).width < cell.width - 6) ctx.fillText(this.amount(cell.size), cell.x + 4, cell.y + 22);
      ctx.globalAlpha = 1;
    }
    ctx.strokeStyle = text;
    for (const [cell, width] of [[this.hovered, 1], [this.cells.find((each) => block != null && each.block === block), 2.5]]) {
      if (!cell) continue;
      ctx.lineWidth = width;
      ctx.strokeRect(cell.x + width / 2, cell.y + width / 2, cell.width - width, cell.height - width);
    }
  }

  amount(size) { return this.money ? Foldline.money(size) : Foldline.short(size); }

  // Places the cells: parts, in them files, in these blocks.
  place(box) {
    this.cells = [];
    this.hovered = null;
    const parts = Foldline.parts(this.run, this.money, this.inside);
    const drawn = this.fit(parts, box, Foldline.SMALLEST * 4, (rest) => ({ label: `${rest.length} small parts`, part: rest[0].part, inside: "" }));
    for (const part of drawn) {
      if (!part.files) { this.cells.push(part); continue; }
      const hasHeading = part.height > 3 * Foldline.HEADING && part.width > 60 && !this.inside;
      if (hasHeading) this.cells.push({ ...part, height: Foldline.HEADING, label: `${part.label}  ${this.amount(part.size)}`, inside: String(part.part), isHeading: true, isBold: true });
      const top = hasHeading ? Foldline.HEADING : 0;
      const more = (rest) => ({ label: `${rest.length} more`, part: part.part, count: rest.length, inside: String(part.part) });
      const files = this.fit(part.files, { x: part.x + 1, y: part.y + top, width: part.width - 2, height: part.height - top - 1 }, Foldline.SMALLEST, more);
      for (const file of files) {
        if (!file.blocks) { this.cells.push(file); continue; }
        const isNamed = file.label && file.blocks.length > 1 && file.height > 3 * Foldline.HEADING && file.width > 60;
        if (isNamed) this.cells.push({ ...file, height: Foldline.HEADING, label: `${file.label}  ${this.amount(file.size)}`, isHeading: true });
        const within = isNamed ? { ...file, y: file.y + Foldline.HEADING, height: file.height - Foldline.HEADING } : file;
        if (file.blocks.length === 1) { this.cells.push({ ...file, block: file.blocks[0].block, label: file.label.split("/").at(-1) || file.blocks[0].label }); continue; }
        const rest = (small) => ({ label: !isNamed && small.length === file.blocks.length ? file.label : `${small.length} more`, part: part.part, count: small.length, inside: file.inside });
        this.cells.push(...this.fit(file.blocks, within, Foldline.SMALLEST, rest));
      }
    }
  }

  // The items that are large enough to be seen, each with its place; the others are one item, made by `together`.
  fit(items, box, smallest, together) {
    const whole = Foldline.sum(items.map((item) => item.size)), area = box.width * box.height;
    if (!(whole > 0) || !(area > 0)) return [];
    const shown = items.filter((item) => (item.size / whole) * area >= smallest), rest = items.filter((item) => item.size > 0 && (item.size / whole) * area < smallest);
    const found = shown.map((item) => ({ ...item }));
    if (rest.length === 1) found.push({ ...rest[0] });
    else if (rest.length) found.push({ ...together(rest), size: Foldline.sum(rest.map((item) => item.size)) });
    found.sort((a, b) => b.size - a.size);
    Foldline.squarify(found, box);
    return found;
  }

  hit(x, y) {
    const found = this.cells.filter((cell) => x >= cell.x && y >= cell.y && x < cell.x + cell.width && y < cell.y + cell.height);
    this.hovered = found[found.length - 1] || null;
    if (!this.hovered) return null;
    const { block, inside, part } = this.hovered;
    return block != null ? { block, aside: "block" } : part == null ? null : { inside: inside || "", aside: "largest" };
  }

  tip() {
    const { hovered: cell, run } = this;
    if (!cell) return null;
    const whole = Foldline.sum(Foldline.parts(run, this.money, "").map((part) => part.size));
    const size = `${this.amount(cell.size)}${this.money ? "" : " tokens"}, ${Foldline.share(cell.size, whole)} of all`;
    if (cell.block != null) return [Foldline.blockName(run, cell.block), size, ...Foldline.blockWords(run, cell.block), "click: details"];
    return [cell.isBold ? Foldline.partName(run, cell.part) : run.spent.files[cell.file] || cell.label, size, cell.part == null ? "" : "click: look inside"].filter(Boolean);
  }
};

// What the blocks belong to: parts, the largest first, each with its files, each with its blocks.
Foldline.parts = function (run, money, inside) {
  const key = `${money} ${inside}`;
  if (run.partsOf.has(key)) return run.partsOf.get(key);
  const { part, file, dollars } = run.spent, [only, onlyFile] = inside.split("/"), found = new Map();
  const sizes = money ? dollars : run.blocks.tokens;
  for (let block = 0; block < run.size; block++) {
    if (!(sizes[block] > 0) || (only && part[block] !== Number(only)) || (onlyFile && file[block] !== Number(onlyFile))) continue;
    if (!found.has(part[block])) found.set(part[block], { part: part[block], label: Foldline.partName(run, part[block]), size: 0, byFile: new Map() });
    const of = found.get(part[block]);
    of.size += sizes[block];
    if (!of.byFile.has(file[block])) of.byFile.set(file[block], { part: part[block], file: file[block], label: Foldline.fileName(run, file[block]), inside: `${part[block]}/${file[block]}`, size: 0, blocks: [] });
    const one = of.byFile.get(file[block]);
    one.size += sizes[block];
    one.blocks.push({ block, part: part[block], label: Foldline.kindName(run, block), size: sizes[block] });
  }
  const largest = (items) => items.sort((a, b) => b.size - a.size);
  const parts = [...found.values()].map(({ byFile, ...of }) => ({ ...of, files: largest([...byFile.values()]) }));
  for (const of of parts) for (const one of of.files) largest(one.blocks);
  if (money && !inside && run.rest > 0) parts.push({ part: null, label: "not in the log: system prompt, tools", size: run.rest });
  run.partsOf.set(key, largest(parts));
  return parts;
};

Foldline.partName = (run, part) => run.spent.parts[part].replace(/^tool /, "");
Foldline.fileName = (run, file) => run.spent.files[file].split(/[/\\]/).slice(-2).join("/");
Foldline.partColor = function (run, part) {
  const rank = Foldline.parts(run, false, "").findIndex((each) => each.part === part);
  return part == null || rank < 0 || rank > 6 ? "--m-rest" : "--m" + rank;
};

// A text that fits, with an ellipsis if it had to be cut.
Foldline.cut = function (ctx, text, room) {
  if (ctx.measureText(text).width <= room) return text;
  let length = Math.min(text.length, Math.floor(room / 4));
  while (length > 0 && ctx.measureText(text.slice(0, length) + "…").width > room) length--;
  return length > 3 ? text.slice(0, length) + "…" : "";
};
