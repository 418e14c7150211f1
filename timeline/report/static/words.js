// What every number on the page means, in a plain sentence: shown as titles, and all together under "Numbers".
"use strict";

Foldline.MEANINGS = {
  "call": "One request to the model, numbered from 1 (a dump numbers them from 0).",
  "calls": "Requests to the model: one for each answer.",
  "turn": "From one prompt of the user's until the agent gives the floor back.",
  "round": "One call, and the results of the tools that it asked for.",
  "block": "One piece of the conversation: a prompt, an answer, a tool call, its result, a note.",
  "blocks": "Pieces of the conversation: prompts, answers, tool calls, results, notes.",
  "tokens": "Size of this request, as the model's tokens are counted here, corrected by what the provider reported.",
  "tokens a call": "Mean size of a request, in tokens; beside it the largest one.",
  "window": "Tokens that a request may have: the model's window less what is kept free for the answer, or what was asked for.",
  "sending everything": "What it would have been without folding, pruning or clipping anything: the whole history, each time.",
  "blocks alone": "What the blocks of an imported log come to, without the system prompt and the tools, which it does not hold.",
  "system": "Tokens of the system prompt.",
  "tools": "Tokens of the tool definitions.",
  "summary": "Tokens of the summary and of what is carried word for word behind it.",
  "messages": "Tokens of all the rest: the conversation since the summary.",
  "read": "Tokens that the provider found in its prompt cache: a tenth of the price of new ones, with most models.",
  "written": "Tokens that the provider put into its prompt cache; with some models that costs a quarter more.",
  "uncached": "Tokens that were neither read from the cache nor written to it: the ordinary price.",
  "paid": "What this prompt costs in dollars, by the model's prices; the answer is not in it.",
  "cost": "What all prompts cost in dollars, by the model's prices; answers cost the same whatever the prompt.",
  "saved": "What sending everything would have cost, less what these requests cost.",
  "cache read": "Share of all prompt tokens that were read from the provider's cache.",
  "cache point": "A place up to which the provider is asked to keep the request in its cache.",
  "compactions": "How often older blocks were folded into a summary, or moved out of the request.",
  "caches lost": "Calls that threw away a prefix which the provider still had in its cache.",
  "older names": "Of the older names that the agent used next, the share that its request still had.",
  "older lines": "Of the older lines that the agent repeated, the share that its request still had whole.",
  "user's words": "Of what the user wrote, the share that was in the request to the letter.",
  "largest": "Tokens of the largest request.",
  "decided before it": "What was folded, moved, cut or hidden between the call before and this one.",
  "exact": "Rendered again from the log, this request has the same hash as the one that was sent: it is the same to the byte.",
  "path": "The name of a block: foldline show and read_timeline find it by that.",
  "provenance": "Who wrote the summary, from what, and what that cost.",
  "coverage": "Which part of the log the summary stands for.",
  "digest": "What a program noted of the folded blocks, without a model: files, commands, tools, errors.",
};
for (const [name, [, words]] of Object.entries(Foldline.STATES)) Foldline.MEANINGS[name] ??= words[0].toUpperCase() + words.slice(1) + ".";
for (const [, , , name, words] of Foldline.MARKS) Foldline.MEANINGS[name] ??= words[0].toUpperCase() + words.slice(1) + ".";
Foldline.FOREIGN = "No request of this log was made by foldline, as in one that was imported: sizes and money are those of what its agent sent. foldline replay FILE tells what would have been sent instead, and what that would have cost.";
Foldline.meaning = (name) => Foldline.MEANINGS[name] || "";
