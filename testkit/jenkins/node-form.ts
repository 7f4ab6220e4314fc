// The form by which a controller makes a node, checked as Jenkins checks it.

export type FormNode = {
  name: string;
  description: string;
  labels: string[];
  mode: string;
  executors: number;
  remoteFs: string;
};

/** As Jenkins confirms a form: a redirect to a page. */
export const accepted = { status: 302, headers: { location: "." } };

export function readForm(
  form: URLSearchParams,
  known: ReadonlyMap<string, unknown>,
): FormNode | { refused: string } {
  const name = form.get("name")?.trim() ?? "";
  if (name === "") return { refused: "Query parameter 'name' is required" };
  if (/[?*/\\%!@#$^&|<>[\]:;]/.test(name)) return { refused: `‘${name}’ is an unsafe name` };
  if (known.has(name)) return { refused: `Agent called ‘${name}’ already exists` };
  if (form.get("type") !== "hudson.slaves.DumbSlave") return { refused: "No such node type" };
  let json: Record<string, unknown>;
  try {
    json = JSON.parse(form.get("json") ?? "") as Record<string, unknown>;
  } catch {
    return { refused: "Failed to parse the form" };
  }
  const launcher = json["launcher"] as { $class?: string; webSocket?: boolean } | undefined;
  if (json["name"] !== name) return { refused: "The names differ" };
  if (launcher?.$class !== "hudson.slaves.JNLPLauncher" || launcher.webSocket !== true)
    return { refused: "The launcher is not an inbound agent over WebSocket" };
  const mode = String(json["mode"]);
  if (mode !== "NORMAL" && mode !== "EXCLUSIVE") return { refused: `No enum constant Node.Mode.${mode}` };
  const executors = Number(json["numExecutors"]);
  if (!Number.isInteger(executors) || executors < 1)
    return { refused: "Invalid agent configuration: # of executors" };
  const remoteFs = String(json["remoteFS"] ?? "");
  if (!remoteFs.startsWith("/")) return { refused: "The remote root must be an absolute path." };
  const labels = String(json["labelString"] ?? "")
    .split(/\s+/)
    .filter(Boolean);
  return { name, description: String(json["nodeDescription"] ?? ""), labels, mode, executors, remoteFs };
}
