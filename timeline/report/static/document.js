// A text with the marks of Markdown as a document. Everything becomes text nodes of the page, so nothing in it is obeyed.
"use strict";

Foldline.Document = ({ text, run, go }) => html`<div class="document">${Foldline.parsed(text.split("\n")).map((block) => Foldline.element(block, run, go))}</div>`;

Foldline.ITEM = /^(\s*)(?:[-*+•]|(\d+)[.)])\s+(.*)$/;

// The blocks of a document: {kind, ...} with lines, or for a list with items.
Foldline.parsed = function (lines) {
  const found = [];
  let at = 0;
  const taken = (like) => {
    const from = at;
    while (at < lines.length && like(lines[at])) at++;
    return lines.slice(from, at);
  };
  while (at < lines.length) {
    const line = lines[at], fence = line.match(/^\s*(```+|~~~+)/), heading = line.match(/^(#{1,6})\s+(.*)$/);
    if (!line.trim() || /^<\/?summary\b[^>]*>$/.test(line.trim())) at++;
    else if (fence) {
      at++;
      found.push({ kind: "code", lines: taken((each) => !each.trim().startsWith(fence[1])) });
      at++;
    } else if (heading) {
      found.push({ kind: "heading", depth: heading[1].length, lines: [heading[2]] });
      at++;
    } else if (/^\s*\|.*\|\s*$/.test(line) && /^\s*\|[\s:|-]+\|\s*$/.test(lines[at + 1] || "")) {
      const rows = taken((each) => /^\s*\|.*\|\s*$/.test(each)).map((row) => row.trim().slice(1, -1).split("|").map((cell) => cell.trim()));
      found.push({ kind: "table", rows: rows.filter((_, row) => row !== 1) });
    } else if (/^\s*>/.test(line)) found.push({ kind: "quote", lines: taken((each) => /^\s*>/.test(each)).map((each) => each.replace(/^\s*> ?/, "")) });
    else if (Foldline.ITEM.test(line)) found.push(Foldline.list(taken((each) => Foldline.ITEM.test(each) || /^\s+\S/.test(each))));
    else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) { found.push({ kind: "line" }); at++; }
    else {
      at++;
      found.push({ kind: "text", lines: [line, ...taken((each) => each.trim() && !/^(#{1,6}\s|\s*(```|~~~|>|\|))/.test(each) && !Foldline.ITEM.test(each))] });
    }
  }
  return found;
};

// A list, and the lists in its items: by how far the items are indented.
Foldline.list = function (lines) {
  const stack = [];
  let root = null;
  for (const line of lines) {
    const item = line.match(Foldline.ITEM);
    if (!item) { stack[stack.length - 1].items.at(-1).lines.push(line.trim()); continue; }
    const [, indent, number, text] = item;
    while (stack.length > 1 && stack.at(-1).indent > indent.length) stack.pop();
    if (!stack.length || stack.at(-1).indent < indent.length) {
      const list = { kind: "list", indent: indent.length, start: number && Number(number), items: [] };
      if (stack.length) stack.at(-1).items.at(-1).lists.push(list);
      root ||= list;
      stack.push(list);
    }
    stack.at(-1).items.push({ lines: [text], lists: [] });
  }
  return root;
};

Foldline.element = function (block, run, go) {
  const words = (lines) => Foldline.inline(lines.join("\n"), run, go);
  switch (block.kind) {
    case "code": return html`<pre class="code" tabindex="0">${block.lines.join("\n")}</pre>`;
    case "heading": return html`<h4 class=${"depth" + block.depth}>${words(block.lines)}</h4>`;
    case "quote": return html`<blockquote>${words(block.lines)}</blockquote>`;
    case "line": return html`<hr />`;
    case "table": return html`<div class="scroll" tabindex="0" role="region" aria-label="A table of the document"><table><thead><tr>${block.rows[0].map((cell) => html`<th scope="col">${words([cell])}</th>`)}</tr></thead><tbody>${block.rows.slice(1).map((row) => html`<tr>${row.map((cell) => html`<td>${words([cell])}</td>`)}</tr>`)}</tbody></table></div>`;
    case "list": {
      const items = block.items.map((item) => html`<li>${words(item.lines)}${item.lists.map((list) => Foldline.element(list, run, go))}</li>`);
      return block.start ? html`<ol start=${block.start}>${items}</ol>` : html`<ul>${items}</ul>`;
    }
    default: return html`<p>${words(block.lines)}</p>`;
  }
};

// Code, what is strong, and versions of blocks, which lead to their details.
Foldline.inline = (text, run, go) => text.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*|\[v\d+\])/).map((part) => {
  if (/^`.+`$/.test(part)) return html`<code>${part.slice(1, -1)}</code>`;
  if (/^\*\*.+\*\*$/.test(part)) return html`<strong>${part.slice(2, -2)}</strong>`;
  const version = Number(part.match(/^\[v(\d+)\]$/)?.[1]);
  return version && run?.byVersion.has(version) ? html`<${Foldline.BlockLink} run=${run} version=${version} go=${go} />` : part;
});
