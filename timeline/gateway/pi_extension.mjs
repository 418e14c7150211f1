// An extension of pi's: requests go through the gateway that `foldline wrap` has started, and the gateway's
// reading tools are tools of pi's. Without the gateway's variables it does nothing.

const { FOLDLINE_URL: url, FOLDLINE_TOOLS: tools, FOLDLINE_TOKEN: token } = process.env;
const own = token ? { "x-foldline-token": token } : {};

async function asked(method, params, signal) {
  const headers = {
    ...own,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2025-06-18",
  };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const answer = await fetch(tools, { method: "POST", headers, body, signal });
  const { result, error } = await answer.json();
  if (error) throw new Error(error.message);
  return result;
}

function made({ name, description, inputSchema }) {
  return {
    name,
    label: name,
    description,
    parameters: inputSchema,
    async execute(_, given, signal) {
      const { content, isError } = await asked("tools/call", { name, arguments: given }, signal);
      if (isError) throw new Error(content[0].text);
      return { content, details: {} };
    },
  };
}

export default async function (pi) {
  if (!url) return;
  pi.registerProvider("anthropic", { baseUrl: url, headers: own });
  pi.registerProvider("openai", { baseUrl: `${url}/v1`, headers: own });
  if (!tools) return;
  const { tools: listed } = await asked("tools/list", {});
  for (const each of listed) pi.registerTool(made(each));
}
