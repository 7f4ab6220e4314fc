// The agent's core without a server: every part it is given is the test's.

import { randomUUID } from "node:crypto";
import { describe, expect, it, vi } from "vitest";
import { someFacts } from "../../../testkit/agent/facts.ts";
import { loaderOf } from "../../test/support/test-types.ts";
import type { Finding } from "../diagnostics/self-checks.ts";
import { openMemoryJournal } from "../journal/in-memory.ts";
import type { Journal } from "../journal/journal.ts";
import type { LinkCalls } from "../link/calls.ts";
import { LinkFailure } from "../link/failures.ts";
import { type CoreOptions, createAgentCore } from "./agent-core.ts";

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const profile = { name: "p", version: 3, endpoints: {}, resolve: {}, ca_sha256: [] };
const certificate = { serial: "0a", notBefore: Date.now(), notAfter: Date.now() + 86_400_000 };
const way = {
  identity: { nodeId: "n", keyPem: "", chainPem: "", certificate },
  roots: [],
  profile,
  apiUrl: "https://a",
};

function core(changes: Partial<CoreOptions> = {}) {
  const history: string[] = [];
  const sent: unknown[] = [];
  const answer = { server_time: new Date().toISOString(), node: { status: "active" }, cancel: [] };
  const client = {
    heartbeat: async (body: unknown) => {
      sent.push(body);
      return { body: answer, sentAt: Date.now(), receivedAt: Date.now() };
    },
    wait: () => new Promise(() => undefined),
  } as unknown as LinkCalls;
  const options = {
    identity: {
      nodeId: randomUUID(),
      agent: () => ({ node_id: "n", profile, verifiers: { keys: [] } }),
      verifiers: () => new Map(),
      learn: () => [],
      present: () => way,
      candidates: () => ({}),
      offer: () => undefined,
      adopt: () => undefined,
    },
    client: () => client,
    clientOver: () => ({ heartbeat: client.heartbeat, close() {} }),
    addresses: () => ({ joinedAt: "https://a", fixedUrl: undefined }),
    openJournal: vi.fn((): Journal | undefined => openMemoryJournal()),
    loadType: loaderOf({}),
    host: () => ({}) as never,
    facts: () => someFacts,
    checkHost: vi.fn((): readonly Finding[] => []),
    log: quiet,
    ...changes,
    events: { record: (reason: string, detail: string) => void history.push(`${reason}: ${detail}`) },
  } as unknown as CoreOptions & { openJournal: ReturnType<typeof vi.fn>; checkHost: ReturnType<typeof vi.fn> };
  return { agent: createAgentCore(options), options, history, sent };
}

describe("a heartbeat", () => {
  it("AGENT-06 is built without side effects, any number of times", () => {
    const { agent, options, history, sent } = core();
    const { sent_at: _first, ...first } = agent.heartbeat();
    const { sent_at: _second, ...second } = agent.heartbeat();
    expect(second).toEqual(first);
    expect(options.openJournal).not.toHaveBeenCalled();
    expect(options.checkHost).not.toHaveBeenCalled();
    expect({ history, sent }).toEqual({ history: [], sent: [] });
    expect(agent.tasks()).toBeUndefined();
  });

  it("AGENT-05 reports what was found before it was sent, and the history has when that began and ended", async () => {
    const disk: Finding = { reason: "node_observability_disk_pressure", detail: "96 % used" };
    let found: Finding[] = [disk];
    const { agent, history, sent } = core({ checkHost: () => found });
    await agent.heartbeatNow();
    expect(sent).toMatchObject([{ findings: [disk] }]);
    expect(agent.findings()).toEqual([disk]);
    await agent.heartbeatNow();
    expect(history.filter((one) => one.startsWith(disk.reason))).toHaveLength(1);
    found = [];
    expect(agent.findings(), "as of the last heartbeat").toEqual([disk]);
    await agent.heartbeatNow();
    expect(sent.at(-1)).toMatchObject({ findings: [] });
    expect(history.at(-1)).toBe(`process_alive: no longer found: ${disk.reason}`);
  });

  it("AGENT-05 opens the journal as soon as the host can keep one, and once", async () => {
    const journals = [undefined, undefined, openMemoryJournal()];
    const openJournal = vi.fn(() => journals.shift());
    const { agent } = core({ openJournal });
    agent.openTasks();
    await agent.heartbeatNow();
    expect(agent.tasks()).toBeUndefined();
    await agent.heartbeatNow();
    await agent.heartbeatNow();
    expect(agent.tasks()).toBeDefined();
    expect(openJournal).toHaveBeenCalledTimes(3);
  });

  it("AGENT-06 has the time of renewal that follows from the certificate, whenever it is built", () => {
    const times = [core(), core()].map(({ agent }) => agent.heartbeat().certificate.renewal_due_at);
    expect(new Set(times).size).toBe(1);
    expect(Date.parse(times[0] ?? "")).toBeGreaterThan(certificate.notBefore);
    expect(Date.parse(times[0] ?? "")).toBeLessThan(certificate.notAfter);
  });
});

describe("a failure of the link", () => {
  it("AGENT-01 is recorded and counted; a rejection as such", async () => {
    const refusal = { kind: "answer", status: 403, code: "certificate_revoked", excerpt: "revoked" } as const;
    const failing = { heartbeat: () => Promise.reject(new LinkFailure(refusal)) } as unknown as LinkCalls;
    const { agent, history } = core({ client: () => failing });
    const ran = agent.run();
    await expect.poll(() => agent.status().problem).toBeDefined();
    agent.stopLink();
    await ran;
    const { counters } = agent.heartbeat();
    expect(counters).toMatchObject({ polls_failed: 1, identity_rejections: 1 });
    expect(history[0]).toContain(agent.status().problem?.reason);
  });
});
