// The agent's core without a server: every part it is given is the test's.

import { randomUUID } from "node:crypto";
import { describe, expect, it, vi } from "vitest";
import { someFacts, someSetup } from "../../../testkit/agent/facts.ts";
import { loaderOf } from "../../test/support/test-types.ts";
import type { Finding } from "../diagnostics/self-checks.ts";
import { openMemoryJournal } from "../journal/in-memory.ts";
import type { Journal } from "../journal/journal.ts";
import type { LinkCalls } from "../link/calls.ts";
import { LinkFailure } from "../link/failures.ts";
import { memoryStore } from "../recovery/state.ts";
import { type CoreOptions, createAgentCore } from "./agent-core.ts";

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const endpoints: Record<string, string> = {};
const profile = { name: "p", version: 3, endpoints, resolve: {}, ca_sha256: [] };
const certificate = { serial: "0a", notBefore: Date.now(), notAfter: Date.now() + 86_400_000 };
const way = {
  identity: { nodeId: "n", keyPem: "", chainPem: "", certificate },
  roots: [],
  profile,
  apiUrl: "https://a",
};

const identityWith = (offered: typeof profile) => ({
  nodeId: randomUUID(),
  agent: () => ({ node_id: "n", profile: offered, verifiers: { keys: [] } }),
  verifiers: () => new Map(),
  learn: () => [],
  present: () => ({ ...way, profile: offered }),
  candidates: () => ({}),
  offer: () => undefined,
  adopt: () => undefined,
});

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
    identity: identityWith(profile),
    client: () => client,
    clientOver: () => ({ heartbeat: client.heartbeat, close() {} }),
    addresses: () => ({ joinedAt: "https://a", fixedUrl: undefined }),
    recovery: { store: memoryStore("n"), path: () => ({ urls: [], roots: [] }), instanceId: "", bootId: "" },
    openJournal: vi.fn((): Journal | undefined => openMemoryJournal()),
    loadType: loaderOf({}),
    host: () => ({}) as never,
    facts: () => someFacts,
    setup: () => someSetup,
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

describe("a heartbeat that the server wants soon", () => {
  it("ID-10 is sent at once, and says which answer it follows", async () => {
    const sent: { after?: number }[] = [];
    const more = [true, undefined];
    const client = {
      heartbeat: async (body: { after?: number }) => {
        sent.push(body);
        const answer = { server_time: new Date().toISOString(), node: { status: "active" }, cancel: [] };
        const numbered = { ...answer, number: 40 + sent.length, again: more.shift() };
        return { body: numbered, sentAt: Date.now(), receivedAt: Date.now() };
      },
      wait: ({ signal }: { signal: AbortSignal }) =>
        new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("interrupted")))),
    } as unknown as LinkCalls;
    const { agent } = core({ client: () => client });
    const ran = agent.run();
    await expect.poll(() => sent.map(({ after }) => after)).toEqual([0, 41]);
    agent.stopLink();
    await ran;
  });
});

describe("a refusal", () => {
  it("ID-05 says nothing about a certificate that came into force while the request was under way", async () => {
    let serial = "0a";
    const present = () => ({ ...way, identity: { ...way.identity, certificate: { ...certificate, serial } } });
    const refusal = { kind: "answer", status: 401, code: "certificate_replaced", excerpt: "replaced" } as const;
    let replacedBy: string | undefined = "0b";
    const client = {
      heartbeat: async () => {
        serial = replacedBy ?? serial;
        throw new LinkFailure(refusal);
      },
    } as unknown as LinkCalls;
    const changes = { client: () => client, identity: { ...identityWith(profile), present } as never };
    const wantsRecovery = async () => {
      const { agent, history } = core(changes);
      const ran = agent.run();
      await expect.poll(() => history.some((one) => one.startsWith("auth_failed: HTTP 401"))).toBe(true);
      await agent.settled();
      agent.stopLink();
      await ran;
      return history.some((one) => one.includes("no recovery token"));
    };
    expect(await wantsRecovery()).toBe(false);
    replacedBy = undefined;
    expect(await wantsRecovery(), "the certificate that was refused is in force").toBe(true);
  });
});

describe("the addresses in a heartbeat", () => {
  const offering = (endpoints: Record<string, string>, changes: Partial<CoreOptions> = {}) =>
    core({ ...changes, identity: identityWith({ ...profile, endpoints }) as never }).agent.heartbeat().setup?.urls;

  it("AGENT-06 are those in use: the api's, and the gateway's of the profile unless the host has its own", () => {
    expect(offering({})).toEqual({ node_api: "https://a", node_terminal: null });
    const published = { node_api: "https://b", node_terminal: "https://t:443/" };
    expect(offering(published)).toEqual({ node_api: "https://a", node_terminal: "https://t" });
    const fixed = { terminalUrl: "https://fixed:8443" };
    expect(offering(published, fixed)).toEqual({ node_api: "https://a", node_terminal: "https://fixed:8443" });
  });
});

describe("a failure of the link", () => {
  const failing = (failure: ConstructorParameters<typeof LinkFailure>[0]) =>
    ({ heartbeat: () => Promise.reject(new LinkFailure(failure)) }) as unknown as LinkCalls;
  const recordOf = async (failure: ConstructorParameters<typeof LinkFailure>[0], findings: Finding[]) => {
    const { agent, history } = core({ client: () => failing(failure), checkHost: () => findings });
    const ran = agent.run();
    await expect.poll(() => agent.status().problem).toBeDefined();
    agent.stopLink();
    await ran;
    return { recorded: history.at(-1), problem: agent.status().problem?.reason };
  };
  const refused = { kind: "no_answer", code: "ECONNREFUSED", message: "nothing listens" } as const;
  const misplaced: Finding = { reason: "endpoint_profile_drift", detail: "in use is https://old" };

  it("DRIFT-07 at an address that is not the profile's is recorded as that, with what it led to", async () => {
    const { recorded, problem } = await recordOf(refused, [misplaced]);
    expect(recorded).toMatch(
      /^endpoint_profile_drift: in use is https:\/\/old; api_unreachable: .*nothing listens/,
    );
    expect(problem, "pauses and status go by what failed").toBe("api_unreachable");
  });

  it("DRIFT-07 at the profile's address, or one that no address explains, is recorded as it is", async () => {
    expect((await recordOf(refused, [])).recorded).toMatch(/^api_unreachable: /);
    const outage = { kind: "answer", status: 503, code: "unavailable", excerpt: "" } as const;
    expect((await recordOf(outage, [misplaced])).recorded).toMatch(/^control_plane_unreachable: /);
  });

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
