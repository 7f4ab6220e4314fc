// An agent of another system, written from the description of its wire alone. It is as strict as those are: it drops an
// `execute` that does not fit its schema, reports a payload with unknown keys as accepted without running it, knows no
// acknowledgement, and repeats its results only when a socket opens.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync } from "node:fs";
import { type ClientOptions, WebSocket } from "ws";
import { z } from "zod";

const Execute = z.object({
  type: z.literal("execute"),
  requestId: z.string().min(1),
  organizationId: z.uuid(),
  userId: z.uuid(),
  kind: z.enum(["connector.action", "agent.execute"]),
  payload: z.unknown(),
  secret: z.string().min(1).optional(),
});
export type OlderExecute = z.infer<typeof Execute>;

const Pong = z.object({ type: z.literal("pong"), ts: z.number() });

const ShellStep = z.strictObject({
  nodeId: z.string().min(1),
  node: z.strictObject({
    id: z.string().min(1),
    type: z.literal("agent.execute"),
    config: z.strictObject({
      task: z
        .strictObject({
          type: z.literal("shell"),
          script: z.string().min(1),
          shell: z.enum(["sh", "bash"]).optional(),
          env: z.record(z.string(), z.string()).optional(),
        })
        .optional(),
      sandbox: z
        .strictObject({
          backend: z.enum(["docker", "host"]).optional(),
          network: z.enum(["none", "enabled"]).optional(),
          timeoutMs: z.int().min(1000).max(600_000).optional(),
          docker: z.strictObject({ image: z.string() }).optional(),
          envPassthroughAllowlist: z.array(z.string()).optional(),
        })
        .optional(),
    }),
  }),
  runId: z.string().optional(),
  workflowId: z.string().optional(),
  attemptCount: z.int().optional(),
});

const ConnectorStep = z.strictObject({
  connectorId: z.string().min(1),
  actionId: z.string().min(1),
  input: z.unknown().optional(),
  env: z.unknown().optional(),
});

const Paired = z.object({
  agentId: z.uuid(),
  agentToken: z.string(),
  organizationId: z.uuid(),
  gatewayWsUrl: z.string(),
});

export type OlderResult = {
  type: "execute_result";
  requestId: string;
  status: "succeeded" | "failed";
  output?: unknown;
  error?: string;
};
export type OlderAgentOptions = {
  url: string;
  token: string;
  name?: string;
  capabilities?: { kinds: string[]; connectors?: string[]; tags?: string[]; maxInFlight?: number };
  /** Replaces what it does with a step. */
  run?(execute: OlderExecute): Promise<Omit<OlderResult, "type" | "requestId">>;
  /** A line with the request id is appended before each step. */
  journal?: string;
  pingMs?: number;
  socket?: ClientOptions;
};

const PING_MS = 15_000;
const BACKOFF_MS = { first: 200, most: 5_000 };
const usual = { kinds: ["connector.action", "agent.execute"] };

export class OlderAgent {
  /** Steps that it took, in order. */
  readonly executed: OlderExecute[] = [];
  /** What it dropped or did not understand. */
  readonly dropped: unknown[] = [];
  readonly pongs: number[] = [];
  readonly closes: { code: number; reason: string }[] = [];
  readonly refusals: number[] = [];
  opened = 0;
  socket: WebSocket | undefined;
  #options: OlderAgentOptions;
  #results = new Map<string, OlderResult>();
  #isStopped = false;
  #failures = 0;
  #changed = new Set<() => void>();

  constructor(options: OlderAgentOptions) {
    this.#options = options;
  }

  /** As its command does it, with a pairing token. */
  static async pair(apiBase: string, pairing: { token: string; name: string }): Promise<z.infer<typeof Paired>> {
    const { token: pairingToken, name } = pairing;
    const response = await fetch(`${apiBase}/v1/agents/pair`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ pairingToken, name, agentVersion: "0.4.2", capabilities: usual }),
    });
    if (response.status !== 201)
      throw new Error(`pairing was answered ${response.status} ${await response.text()}`);
    return Paired.parse(await response.json());
  }

  /** Resolves when its first socket is open. Connects again until it is stopped. */
  async start(): Promise<this> {
    this.#connect();
    await this.until(() => this.opened > 0);
    return this;
  }

  stop(): void {
    this.#isStopped = true;
    this.socket?.terminate();
  }

  /** Resolves when it holds, now or after something has happened. */
  async until(holds: () => boolean): Promise<void> {
    if (holds()) return;
    await new Promise<void>((resolve) => {
      const look = () => {
        if (!holds()) return;
        this.#changed.delete(look);
        resolve();
      };
      this.#changed.add(look);
    });
  }

  #tell(): void {
    for (const look of [...this.#changed]) look();
  }

  #connect(): void {
    if (this.#isStopped) return;
    const { url, token, name = "older", capabilities = usual } = this.#options;
    const socket = new WebSocket(url, { headers: { authorization: `Bearer ${token}` }, ...this.#options.socket });
    this.socket = socket;
    let pinging: NodeJS.Timeout | undefined;
    socket.on("error", () => undefined);
    socket.on("unexpected-response", (_request, response) => {
      this.refusals.push(response.statusCode ?? 0);
      // Not `request.destroy()`: after that, "close" would never come, and it would not try again.
      socket.terminate();
      this.#tell();
    });
    socket.on("open", () => {
      this.#failures = 0;
      this.opened += 1;
      socket.send(JSON.stringify({ type: "hello", agentVersion: "0.4.2", name, capabilities }));
      for (const result of this.#results.values()) socket.send(JSON.stringify(result));
      const ping = () => socket.send(JSON.stringify({ type: "ping", ts: Date.now() }));
      pinging = setInterval(ping, this.#options.pingMs ?? PING_MS).unref();
      this.#tell();
    });
    socket.on("message", (data) => this.#onFrame(data.toString()));
    socket.on("close", (code, reason) => {
      clearInterval(pinging);
      this.closes.push({ code, reason: reason.toString() });
      this.#tell();
      const delay = Math.min(BACKOFF_MS.most, BACKOFF_MS.first * 2 ** this.#failures);
      this.#failures += 1;
      setTimeout(() => this.#connect(), delay).unref();
    });
  }

  #onFrame(text: string): void {
    const frame: unknown = JSON.parse(text);
    const pong = Pong.safeParse(frame);
    const execute = Execute.safeParse(frame);
    if (pong.success) this.pongs.push(pong.data.ts);
    else if (execute.success) void this.#execute(execute.data);
    else this.dropped.push(frame);
    this.#tell();
  }

  async #execute(execute: OlderExecute): Promise<void> {
    this.executed.push(execute);
    if (this.#options.journal) appendFileSync(this.#options.journal, `${execute.requestId}\n`);
    const ended = await (this.#options.run ?? runStep)(execute).catch((error: Error) => ({
      status: "failed" as const,
      error: error.message,
    }));
    const result: OlderResult = { type: "execute_result", requestId: execute.requestId, ...ended };
    this.#results.set(execute.requestId, result);
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(result));
    this.#tell();
  }
}

/** What such an agent does with a step by itself. */
async function runStep({ kind, payload }: OlderExecute): Promise<Omit<OlderResult, "type" | "requestId">> {
  if (kind === "connector.action") {
    const step = ConnectorStep.safeParse(payload);
    if (!step.success) return { status: "succeeded", output: { accepted: true } };
    return { status: "succeeded", output: { echo: step.data.input ?? null } };
  }
  const step = ShellStep.safeParse(payload);
  const task = step.data?.node.config.task;
  // It takes what it does not understand as done.
  if (!step.success || !task) return { status: "succeeded", output: { accepted: true } };
  const child = spawn(task.shell ?? "sh", ["-c", task.script], { env: { ...process.env, ...task.env } });
  const printed = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk) => {
    printed.stdout += String(chunk);
  });
  child.stderr.on("data", (chunk) => {
    printed.stderr += String(chunk);
  });
  const [exitCode] = (await once(child, "close")) as [number | null];
  const output = {
    backend: "host",
    exitCode,
    timedOut: false,
    ...printed,
    stdoutTruncated: false,
    stderrTruncated: false,
  };
  return exitCode === 0
    ? { status: "succeeded", output }
    : { status: "failed", output, error: "NODE_EXECUTION_FAILED" };
}
