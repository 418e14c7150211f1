// pi: the compaction of the coding agent (prepareCompaction, compact) on a session in memory.
// The same protocol, counting and stand-in as common.py. Its tail is measured by its own characters / 4;
// the trigger is the true size, which pi itself takes from the usage of the last response.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { performance } from "node:perf_hooks";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

// This interpreter lies in the peer's node_modules/node/bin, or is linked from node_modules/.bin.
const modules = process.execPath.slice(0, process.execPath.lastIndexOf("node_modules") + 12);
const root = join(modules, "@earendil-works", "pi-coding-agent");
const load = (path) => import(pathToFileURL(join(root, path)).href);
const { SessionManager } = await load("dist/index.js");
const compaction = await load("dist/core/compaction/index.js");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

const SUMMARY_TOKENS = 760;
const TITLE = "Summary of the earlier conversation.";
const API = { api: "anthropic-messages", provider: "anthropic", model: "stand-in" };
const NO_COST = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
const NO_USAGE = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: NO_COST };

class Counts {
  constructor() {
    Object.assign(this, { known: new Map(), calls: new Map(), names: new Map(), characters: 4, tokens: 1 });
  }
  learn(m) {
    this.known.set(m.text, m.tokens);
    this.characters += m.text.length;
    this.tokens += m.tokens;
    for (const c of m.calls ?? []) {
      this.calls.set(c.id, c.tokens);
      this.names.set(c.id, c.name);
    }
    if (m.role === "tool") m.name = this.names.get(m.id) ?? "tool";
  }
  text(text) {
    return this.known.get(text) ?? Math.floor((text.length * this.tokens) / this.characters) + 1;
  }
  message(m) {
    const calls = (m.calls ?? []).map((c) => this.calls.get(c.id) ?? 20);
    return calls.reduce((sum, n) => sum + n, m.text ? this.text(m.text) : 0);
  }
}

function entries(message) {
  const text = message.text.trim();
  if (message.role === "tool" || !text) return [];
  const at = text.indexOf(TITLE);
  if (at < 0) return [[message.role, text]];
  const parts = text.slice(at + TITLE.length).split(/^\* (user|assistant): /m);
  const found = [];
  for (let i = 1; i < parts.length; i += 2) found.push([parts[i], parts[i + 1].trim()]);
  return found;
}

function newest(lines, counts, tokens) {
  const taken = [];
  for (const line of [...lines].reverse()) {
    tokens -= counts.text(line);
    if (tokens < 0) break;
    taken.unshift(line);
  }
  return taken;
}

function standIn(messages, counts) {
  const all = messages.flatMap(entries);
  const users = [...new Set(all.filter(([role]) => role === "user").map(([, text]) => text))];
  const said = all.filter(([role]) => role === "assistant").slice(-12);
  const size = (lines) => lines.reduce((sum, line) => sum + counts.text(line), 0);
  const lines = users.slice(0, 1).map((text) => `* user: ${text.slice(0, 1200)}`);
  const rest = users.slice(1).map((text) => `* user: ${text.slice(0, 200)}`);
  lines.push(...newest(rest, counts, SUMMARY_TOKENS / 2 - size(lines)));
  const last = said.map(([, text]) => `* assistant: ${text.slice(0, 300)}`);
  return [TITLE, ...lines, ...newest(last, counts, SUMMARY_TOKENS - size(lines))].join("\n");
}

let clock = 1000;
const asText = (content) =>
  typeof content === "string" ? content : content.filter((c) => c.type === "text").map((c) => c.text).join("");

function to(m) {
  const text = [{ type: "text", text: m.text }];
  if (m.role === "user") return { role: "user", content: text, timestamp: clock++ };
  if (m.role === "tool")
    return { role: "toolResult", toolCallId: m.id, toolName: m.name, content: text, isError: m.error, timestamp: clock++ };
  const calls = m.calls.map((c) => ({ type: "toolCall", id: c.id, name: c.name, arguments: c.input }));
  const stopReason = calls.length ? "toolUse" : "stop";
  return { role: "assistant", content: [...(m.text ? text : []), ...calls], ...API, usage: NO_USAGE, stopReason, timestamp: clock++ };
}

function back(m) {
  if (m.role === "assistant") {
    const calls = m.content.filter((c) => c.type === "toolCall");
    return { role: "assistant", text: asText(m.content), calls: calls.map((c) => ({ id: c.id, name: c.name, input: c.arguments })) };
  }
  if (m.role === "toolResult") return { role: "tool", id: m.toolCallId, text: asText(m.content), error: !!m.isError };
  return { role: "user", text: m.summary ?? asText(m.content) };
}

class Pi {
  constructor(task) {
    Object.assign(this, task);
    this.reserve = this.window - this.trigger - this.fixed;
    this.counts = new Counts();
    this.session = SessionManager.inMemory(".");
    this.model = { id: "stand-in", ...API, reasoning: false, input: ["text"], cost: NO_COST, contextWindow: this.window, maxTokens: 8192 };
  }
  sent() {
    return this.session.buildSessionContext().messages;
  }
  async manage() {
    const size = this.sent().reduce((sum, m) => sum + this.counts.message(back(m)), 0);
    if (size <= this.trigger) return;
    const settings = { enabled: true, reserveTokens: this.reserve, keepRecentTokens: this.keep };
    const plan = compaction.prepareCompaction(this.session.getBranch(), settings);
    if (!plan) return;
    let history = plan.messagesToSummarize.length > 0; // asked first, if at all; then for the split turn
    const streamFn = async (model, context) => {
      const before = history && plan.previousSummary ? [{ role: "user", text: plan.previousSummary }] : [];
      const asked = history ? plan.messagesToSummarize : plan.turnPrefixMessages;
      history = false;
      const text = this.summarize([...before, ...asked.map(back)], context);
      const content = [{ type: "text", text }];
      return { result: async () => ({ role: "assistant", content, ...API, usage: NO_USAGE, stopReason: "stop", timestamp: clock++ }) };
    };
    const done = await compaction.compact(plan, this.model, "none", undefined, undefined, undefined, undefined, streamFn);
    this.session.appendCompaction(done.summary, done.firstKeptEntryId, done.tokensBefore, done.details);
  }
  summarize(messages, context) {
    const prompt = context.messages.map((m) => asText(m.content)).join("\n") + JSON.stringify(context.systemPrompt ?? "");
    const text = standIn(messages, this.counts);
    this.summaries.push({ input_tokens: this.counts.text(prompt), output_tokens: this.counts.text(text) });
    return text;
  }
}

let pi;
for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  let answer = { ready: `pi-coding-agent ${version}, compaction` };
  if (asked.begin) {
    pi = new Pi(asked.begin);
  } else {
    asked.new.forEach((m) => pi.counts.learn(m));
    pi.summaries = [];
    for (const m of asked.new) pi.session.appendMessage(to(m));
    const began = performance.now();
    await pi.manage();
    const ms = performance.now() - began;
    answer = { ms, messages: asked.wanted ? pi.sent().map(back) : [], summaries: pi.summaries };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
