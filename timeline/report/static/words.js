// What every number on the page means: shown as titles, and all together under "Numbers".
"use strict";

Foldline.MEANINGS = {
  "call": "One request to the model, numbered from 1 (a dump numbers them from 0).",
  "calls": "Requests to the model: one for each answer.",
  "turn": "From one prompt of the user to the agent's final answer.",
  "round": "One call, and the results of the tools that it asked for.",
  "block": "One piece of the conversation: a prompt, an answer, a tool call, its result, a note.",
  "blocks": "Pieces of the conversation: prompts, answers, tool calls, results, notes.",
  "tokens": "Size of this request in tokens: counted here, and corrected by what the provider reported.",
  "tokens a call": "Mean size of a request, in tokens; beside it the largest one.",
  "window": "The most tokens of a request: the model's window less the room for the answer, or the window that was given.",
  "sending everything": "The figure without folding, pruning or clipping anything: the whole history in each request.",
  "blocks alone": "Tokens of the blocks of an imported log, without system prompt and tools, which it does not have.",
  "system": "Tokens of the system prompt.",
  "tools": "Tokens of the tool definitions.",
  "summary": "Tokens of the summary and of the blocks carried word for word after it.",
  "messages": "Tokens of the rest: the conversation since the summary.",
  "read": "Tokens that the provider found in its prompt cache: a tenth of the price of new ones, with most models.",
  "written": "Tokens that the provider put into its prompt cache; with some models that costs a quarter more.",
  "uncached": "Tokens neither read from the cache nor written to it, at the ordinary price.",
  "paid": "Cost of this prompt in dollars, by the model's prices, without the answer; of a call through a gateway, what it was billed with the answer.",
  "cost": "Cost of all prompts in dollars, by the model's prices; without answers, which cost the same in any case. Of calls through a gateway, what they were billed with the answers.",
  "saved": "The recorded bill, or where there is none the cost of sending everything, less what foldline's requests would have cost; below 0, these cost more.",
  "cache read": "Share of all prompt tokens that were read from the provider's cache.",
  "cache point": "A place up to which the provider is asked to keep the request in its cache.",
  "compactions": "How often older blocks were folded into a summary, or moved out of the request.",
  "caches lost": "Calls that lost a prefix that was still in the provider's cache.",
  "older names": "Of the older names that the agent used next, the share that its request still had.",
  "older lines": "Of the older lines that the agent repeated, the share that its request still had whole.",
  "user's words": "The share of the user's texts that was in the request word for word, up to their 300th character.",
  "whole prompts": "The share of the user's prompts that was in the request whole.",
  "next edits": "Edits that could be written from the request: of the edits that the agent made next, the share of which it had every old line.",
  "instructions": "Standing instructions kept: of the lines that a client, a harness or a project file laid down, the share that the request had.",
  "largest": "Tokens of the largest request.",
  "decided before it": "What was folded, moved, cut or hidden between the call before and this one.",
  "exact": "Rendered again from the log, this request has the same hash as the one that was sent, so it is identical.",
  "path": "The name of a block, which foldline show and read_timeline take.",
  "provenance": "Who wrote the summary, from which input, and at which cost.",
  "coverage": "The part of the log that the summary replaces.",
  "digest": "Facts about the folded blocks, computed without a model: files, commands, tools, errors.",
};
for (const [name, [, words]] of Object.entries(Foldline.STATES)) Foldline.MEANINGS[name] ??= words[0].toUpperCase() + words.slice(1) + ".";
for (const [, , , name, words] of Foldline.MARKS) Foldline.MEANINGS[name] ??= words[0].toUpperCase() + words.slice(1) + ".";
Foldline.FOREIGN = "The requests of this log were not made by foldline; the log was imported, for example. Sizes and costs are those of what its agent sent. foldline replay FILE shows what foldline would have sent instead, and its cost.";
Foldline.meaning = (name) => Foldline.MEANINGS[name] || "";
