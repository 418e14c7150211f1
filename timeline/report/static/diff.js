// The difference of two lists: [sign, item, place in the old one, place in the new one], sign one of " ", "-", "+".
"use strict";

Foldline.diff = function (old, now) {
  const most = Math.min(old.length, now.length);
  let head = 0;
  while (head < most && old[head] === now[head]) head++;
  let tail = 0;
  while (tail < most - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail++;
  const found = [];
  for (let at = 0; at < head; at++) found.push([" ", old[at], at, at]);
  Foldline._middle(old, now, [head, old.length - tail], [head, now.length - tail], found);
  for (let at = tail; at > 0; at--) {
    found.push([" ", old[old.length - at], old.length - at, now.length - at]);
  }
  return found;
};

// Myers' algorithm: the shortest edit script. Lists that differ too much are removed and added as a whole.
Foldline._middle = function (old, now, [oldFrom, oldTo], [nowFrom, nowTo], found) {
  const rows = oldTo - oldFrom, columns = nowTo - nowFrom, limit = Math.min(rows + columns, 2000);
  const trail = [];
  let reached = new Map([[1, 0]]), steps = -1;
  search: for (let step = 0; step <= limit; step++) {
    trail.push(new Map(reached));
    for (let line = -step; line <= step; line += 2) {
      const down = line === -step || (line !== step && (reached.get(line - 1) ?? -1) < (reached.get(line + 1) ?? -1));
      let row = down ? reached.get(line + 1) : reached.get(line - 1) + 1;
      while (row < rows && row - line < columns && old[oldFrom + row] === now[nowFrom + row - line]) row++;
      reached.set(line, row);
      if (row >= rows && row - line >= columns) { steps = step; break search; }
    }
  }
  const back = [];
  let row = rows, column = columns;
  if (steps < 0) {
    for (let at = 0; at < rows; at++) found.push(["-", old[oldFrom + at], oldFrom + at, -1]);
    for (let at = 0; at < columns; at++) found.push(["+", now[nowFrom + at], -1, nowFrom + at]);
    return;
  }
  for (let step = steps; step >= 0; step--) {
    const before = trail[step], line = row - column;
    const down = line === -step || (line !== step && (before.get(line - 1) ?? -1) < (before.get(line + 1) ?? -1));
    const from = down ? before.get(line + 1) : before.get(line - 1) + 1;
    while (row > from && row > 0 && column > 0) { row--; column--; back.push([" ", old[oldFrom + row], oldFrom + row, nowFrom + column]); }
    if (step === 0) break;
    if (down) { column--; back.push(["+", now[nowFrom + column], -1, nowFrom + column]); }
    else { row--; back.push(["-", old[oldFrom + row], oldFrom + row, -1]); }
  }
  while (back.length) found.push(back.pop());
};
