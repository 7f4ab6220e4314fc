// The agent's terminals alone, with a certificate of their own and a gateway of the test's.

import { generateKeyPairSync, randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { userInfo } from "node:os";
import { certificateRequest } from "@holdfast/kit/certificate-request";
import { type ShellUser, TaskFailed } from "@holdfast/tasks/executor";
import { expect } from "vitest";
import { makeAuthority } from "../../../testkit/agent/fake-authority.ts";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import { directoryOf, findSockets } from "../../src/terminals/directory.ts";
import { createTerminals, type Terminals, type TerminalsOptions } from "../../src/terminals/terminals.ts";
import { type FakeGateway, type FakeStream, startFakeGateway } from "./fake-gateway.ts";

export type TerminalHost = {
  stateDir: string;
  user: ShellUser;
  gateway: FakeGateway;
  terminals: Terminals;
  failures: { code: string; detail: string }[];
  /** Failures that were followed by another attempt. */
  retries: { code: string; detail: string }[];
  open(user?: Partial<ShellUser>, more?: Partial<Parameters<Terminals["open"]>[0]>): Promise<Opened>;
  /** Names of sockets, by kind. */
  sockets(kind?: "shell" | "spare" | "starting"): string[];
  /** Like an agent that starts again on the same directory. */
  restart(more?: Partial<TerminalsOptions>): Promise<Terminals>;
};
export type Opened = Awaited<ReturnType<Terminals["open"]>> & { sessionId: string; stream: FakeStream };

/** With an empty home: whoever runs the tests may have start-up files that take their time. */
function me(): ShellUser {
  const { username, uid, gid, shell } = userInfo();
  return { name: username, uid, gid, home: scratchDirectory(), shell: shell ?? "/bin/sh" };
}

export async function terminalHost(more: Partial<TerminalsOptions> = {}): Promise<TerminalHost> {
  const authority = await makeAuthority();
  const gateway = await startFakeGateway(authority);
  const nodeId = randomUUID();
  const stateDir = scratchDirectory();
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const keyPem = privateKey.export({ type: "pkcs8", format: "pem" }) as string;
  const chainPem = await authority.certify(certificateRequest(privateKey, "test"), nodeId);
  const failures: TerminalHost["failures"] = [];
  const retries: TerminalHost["retries"] = [];
  const options: TerminalsOptions = {
    stateDir,
    nodeId,
    instanceId: randomUUID(),
    bootId: "boot",
    gateway: () => ({ configured: undefined, offered: gateway.url }),
    credentials: () => ({ keyPem, chainPem, roots: [authority.rootPem] }),
    lookup: (_host, _options, done) => done(null, "127.0.0.1", 4),
    refreshProfile() {},
    onFailure: (code, detail) => void failures.push({ code, detail }),
    onRetry: (code, detail) => void retries.push({ code, detail }),
    ...more,
  };
  const start = (changed: Partial<TerminalsOptions> = {}) => {
    const made = createTerminals({ ...options, ...changed });
    atEnd(async () => {
      await made.endAll();
      made.stop();
    });
    return made;
  };
  const own = me();
  const host: TerminalHost = {
    stateDir,
    user: own,
    gateway,
    terminals: start(),
    failures,
    retries,
    async open(user = {}, wanted = {}) {
      const sessionId = wanted.sessionId ?? randomUUID();
      const opened = await host.terminals.open({
        taskId: randomUUID(),
        sessionId,
        correlationId: `c-${sessionId}`,
        size: { cols: 80, rows: 24 },
        at: async () => ({ user: { ...own, ...user } }),
        // A holder is a process of its own, which may be slow to start on a busy machine.
        withinMs: 40_000,
        detachedMs: 600_000,
        signal: new AbortController().signal,
        ...wanted,
      });
      const stream = await gateway.stream(sessionId);
      await stream.frame("hello");
      return { ...opened, sessionId, stream };
    },
    sockets: (kind) => readdirSync(directoryOf(stateDir)).filter((name) => name.endsWith(kind ? `.${kind}` : "")),
    async restart(changed) {
      host.terminals.stop();
      host.terminals = start(changed);
      await host.terminals.resume();
      return host.terminals;
    },
  };
  return host;
}

/** Types a line and waits until its answer is shown between marks that the echo does not have. */
export async function ask(stream: FakeStream, command: string): Promise<string> {
  const mark = randomUUID().slice(0, 8);
  stream.type(`printf '<%s>' ${mark}; ${command}; printf '</%s>' ${mark}\r`);
  const pattern = new RegExp(`<${mark}>([\\s\\S]*?)</${mark}>`);
  await expect.poll(() => pattern.test(stream.text()), { interval: 10 }).toBe(true);
  return (pattern.exec(stream.text())?.[1] ?? "").replaceAll("\r\n", "\n").trim();
}

export function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

export async function failureOf(opening: Promise<unknown>): Promise<{ code: string; message: string }> {
  const error = await opening.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof TaskFailed)) throw error ?? new Error("it was opened");
  return { code: error.code, message: error.message };
}

export const holderOf = (host: TerminalHost, sessionId: string) => {
  const found = findSockets(host.stateDir).find((one) => one.kind === "shell" && one.sessionId === sessionId);
  if (found?.kind !== "shell") throw new Error("there is no holder");
  return found.holder.pid;
};

export function spawnedBy(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number);
}
