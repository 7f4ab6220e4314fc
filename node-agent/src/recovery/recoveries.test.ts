// The agent's side of recovery against a small model of the server: crashes, lost and repeated messages, a disk that fails.

import { createPrivateKey, X509Certificate } from "node:crypto";
import type { RecoveryToken } from "@holdfast/contracts/node/recovery";
import { certificateRequest, newPrivateKey, privateKeyPem } from "@holdfast/kit/certificate-request";
import fc from "fast-check";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { type FakeAuthority, keyDigest, makeAuthority } from "../../../testkit/agent/fake-authority.ts";
import { createFakeRecovery, type FakeRecovery, type RecoverBody } from "../../test/support/fake-recovery.ts";
import { type FaultyDisk, faultyDisk } from "../../test/support/faulty-disk.ts";
import { type Identity, parseIdentity } from "../identity/identity-file.ts";
import { HostProblem } from "../identity/state-directory.ts";
import type { Answer } from "../link/exchange.ts";
import { classify, type Failure, LinkFailure } from "../link/failures.ts";
import { createRecoveries, type Recoverable, type Recoveries } from "./recoveries.ts";
import type { Send } from "./request.ts";
import { openSlots } from "./slots.ts";
import { emptyState, parseState, type RecoveryState, type RecoveryStore, recoveredIn } from "./state.ts";

const nodeId = "0190a3f0-0000-7000-8000-000000000001";
const profile = { name: "lab", version: 1, endpoints: {}, resolve: {}, ca_sha256: [] };
const HOUR = 3_600_000;
let authority: FakeAuthority;
let first: Identity;

beforeAll(async () => {
  authority = await makeAuthority();
  const key = newPrivateKey();
  const chain = await authority.certify(certificateRequest(key, "n"), nodeId);
  first = parseIdentity(privateKeyPem(key) + chain, "test");
});
// Pauses are decided by the test's own clock: link failures come as often as it likes.
beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

type Network = "works" | "loses_request" | "loses_response" | "repeats_request";

function world() {
  const server: FakeRecovery = createFakeRecovery(authority, () => ({ profile, verifiers: { keys: [] } }));
  const records: string[] = [];
  const counted: Record<string, number> = {};
  let disk: FaultyDisk = faultyDisk(32 * 1024);
  let inFiles = first;
  let inForce = first;
  let monotonic = 0;
  let skewMs = 0;
  let network: Network = "works";
  let refusal: Failure | undefined;
  let filesWork = true;
  let expired = false;
  let recoveries: Recoveries;
  let rejects = false;
  server.serverTime = () => Date.now() + monotonic;
  const clock = () => server.serverTime() + skewMs;

  const durable = (): RecoveryState =>
    parseState(openSlots(faultyDisk(disk.imagesAfter(() => ({ kind: "lost" })))).read(), nodeId);
  const storeOn = (one: FaultyDisk): RecoveryStore => {
    const slots = openSlots(one);
    return {
      read: () => parseState(slots.read(), nodeId),
      write: (state) => {
        try {
          slots.write(JSON.stringify(state));
        } catch (error) {
          throw new HostProblem("disk_full", (error as Error).message);
        }
      },
    };
  };
  const answered = (body: unknown): Answer<never> => ({
    ...{ body: body as never, sentAt: Date.now(), receivedAt: Date.now(), correlationId: "c-1" },
  });
  const fail = (failure: Failure) => new LinkFailure(failure, { correlationId: "c-1" });
  const cut = () => fail({ kind: "no_answer", code: "ECONNRESET", message: "reset" });
  const send: Send = async ({ url, body }) => {
    if (url.pathname === "/v1/server-time") {
      return answered(server.signedTime(url.searchParams.get("nonce") ?? ""));
    }
    const request = body as RecoverBody;
    // Before a token leaves this host, a restart would find its key.
    const kept = durable().sent;
    expect(kept?.token.token).toBe(request.token);
    expect(keyDigest(certificateRequest(createPrivateKey(kept?.key ?? ""), "n"))).toBe(keyDigest(request.csr));
    if (network === "loses_request") throw cut();
    if (refusal) throw fail(refusal);
    let answer = await server.recover(request);
    if (network === "repeats_request") answer = await server.recover(request);
    if (network === "loses_response") throw cut();
    if ("code" in answer) throw fail({ kind: "answer", ...answer, excerpt: answer.code });
    return answered(answer);
  };
  const identity: Recoverable = {
    nodeId,
    present: () => ({ identity: inForce, roots: [authority.rootPem], profile, apiUrl: "https://api" }),
    agent: () => ({ profile }) as never,
    recover: (recovered) => {
      inForce = recovered.identity;
      expired = false;
    },
    storeRecovered: () => {
      if (filesWork) inFiles = inForce;
      return filesWork;
    },
  };
  const start = () => {
    const store = storeOn(disk);
    inForce = recoveredIn(store.read())?.identity ?? inFiles;
    recoveries = createRecoveries({
      host: {
        ...{ store, send, instanceId: "i", bootId: "b" },
        path: () => ({ urls: ["https://recovery"], roots: [authority.rootPem] }),
      },
      ...{ identity, skewSeconds: () => undefined, trialsSettled: async () => undefined, onRecovered() {} },
      count: (name) => {
        counted[name] = (counted[name] ?? 0) + 1;
      },
      record: (reason, detail, id) => void records.push(`${reason}: ${detail} [${id}]`),
      ...{ now: () => monotonic, clock, random: () => 0 },
    });
  };
  start();

  const verdict = (): Failure | undefined => {
    const leaf = new X509Certificate(inForce.chainPem);
    const code = server.hasReplaced(leaf) ? "identity_revoked" : expired ? "cert_expired" : undefined;
    if (rejects) return { kind: "answer", status: 401, code: "certificate_untrusted", excerpt: "" };
    return code ? { kind: "answer", status: 401, code, excerpt: "" } : undefined;
  };

  return {
    server,
    records,
    counted,
    durable,
    held: () => recoveries.held(),
    works: () => verdict() === undefined,
    set(changes: { network?: Network; refusal?: Failure | undefined; filesWork?: boolean; skewMs?: number }) {
      if (changes.network) network = changes.network;
      if ("refusal" in changes) refusal = changes.refusal;
      if (changes.filesWork !== undefined) filesWork = changes.filesWork;
      if (changes.skewMs !== undefined) skewMs = changes.skewMs;
    },
    expire() {
      expired = true;
    },
    /** A renewed certificate has worked. */
    renew() {
      expired = false;
    },
    /** A failure of what is no longer in force. */
    async failBefore() {
      recoveries.afterFailure({ reason: "cert_expired", detail: "", retryAfterMs: undefined }, "another");
      await recoveries.settled();
    },
    reject(yes: boolean) {
      rejects = yes;
    },
    failDisk(yes: boolean) {
      disk.failWith(yes ? new Error("broken") : undefined);
    },
    learn: (token: RecoveryToken | undefined) => recoveries.learn(token),
    /** One round of the link, with all that follows from it. */
    async round(passedMs = HOUR) {
      monotonic += passedMs;
      const failure = verdict();
      if (!failure) {
        const shown = recoveries.held();
        recoveries.afterHeartbeat();
        return server.refresh(shown?.seq);
      }
      recoveries.afterFailure(classify(failure), inForce.certificate.serial);
      await recoveries.settled();
      return undefined;
    },
    /** The power goes; what was not synced is lost. */
    crash() {
      recoveries.stop();
      disk = faultyDisk(disk.imagesAfter(() => ({ kind: "lost" })));
      start();
    },
  };
}

const event = fc.oneof(
  fc.record({ do: fc.constant("round" as const) }),
  fc.record({ do: fc.constant("round" as const) }),
  fc.record({ do: fc.constant("crash" as const) }),
  fc.record({ do: fc.constant("expire" as const) }),
  fc.record({ do: fc.constant("renew" as const) }),
  fc.record({ do: fc.constant("issue" as const) }),
  fc.record({ do: fc.constant("deliver" as const), which: fc.nat({ max: 5 }) }),
  fc.record({
    do: fc.constant("network" as const),
    network: fc.constantFrom<Network>("works", "loses_request", "loses_response", "repeats_request"),
  }),
  fc.record({ do: fc.constant("disk" as const), fails: fc.boolean() }),
  fc.record({ do: fc.constant("files" as const), work: fc.boolean() }),
);

describe("the agent's side of recovery", () => {
  it("ID-04 ID-05 never sends two keys with one token, never forgets one, and always comes back", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 40 }), async (events) => {
        const one = world();
        one.server.offers = true;
        one.server.lastMs = 1000 * HOUR;
        const offered: RecoveryToken[] = [one.server.issue()];
        one.learn(offered[0]);
        let highest = 1;
        for (const step of events) {
          if (step.do === "round") {
            const token = await one.round(20 * 60_000);
            if (token) offered.push(token);
          } else if (step.do === "crash") one.crash();
          else if (step.do === "expire") one.expire();
          else if (step.do === "renew") one.renew();
          else if (step.do === "issue") offered.push(one.server.issue());
          else if (step.do === "network") one.set({ network: step.network });
          else if (step.do === "disk") one.failDisk(step.fails);
          else if (step.do === "files") one.set({ filesWork: step.work });
          else one.learn(offered[step.which % offered.length]);
          const seq = one.held()?.seq ?? 0;
          expect(seq, "the highest number is kept").toBeGreaterThanOrEqual(highest);
          expect(seq, "and shown only when it is on disk").toBe(one.durable().token?.seq);
          highest = seq;
        }
        for (const { token } of one.server.requests) expect(one.server.keysOf(token)).toHaveLength(1);
        one.failDisk(false);
        one.set({ network: "works", filesWork: true });
        for (let times = 0; times < 12 && !one.works(); times += 1) await one.round(2 * HOUR);
        expect(one.works(), one.records.slice(-3).join("\n")).toBe(true);
        await one.round();
        expect(one.durable()).toMatchObject({ recovered: null, unproved: null });
      }),
      { numRuns: 200 },
    );
  });

  it("ID-04 sends nothing while the key cannot be stored, and the same key once it can", async () => {
    const one = world();
    one.learn(one.server.issue());
    one.expire();
    one.failDisk(true);
    await one.round();
    expect(one.server.requests).toEqual([]);
    expect(one.records.at(-1)).toMatch(/^disk_full: /);
    one.failDisk(false);
    await one.round();
    expect(one.works()).toBe(true);
    expect(one.counted).toEqual({ recovery_attempts: 2, recovery_failures: 1, recovery_successes: 1 });
    expect(one.records.at(-1)).toMatch(
      /^process_alive: recovered at https:\/\/recovery \(cert_expired\).*\[c-1\]$/,
    );
  });

  it("ID-14 with a wrong clock reports the signed time, sends no token, and goes on once it is right", async () => {
    const one = world();
    one.learn(one.server.issue());
    one.expire();
    for (const skewMs of [-2 * HOUR, 72 * HOUR]) {
      one.set({ skewMs });
      await one.round();
      expect(one.records.at(-1)).toMatch(/^clock_skew: .*the server's signed time \d{4}-/);
    }
    expect(one.server.requests).toEqual([]);
    expect(one.durable().sent).toBeNull();
    one.set({ skewMs: 0 });
    await one.round(60_000);
    expect(one.works()).toBe(true);
  });

  it("ID-04 reports once that there is no token, or only an old one by the signed time", async () => {
    const one = world();
    one.expire();
    await one.round();
    await one.round();
    expect(one.records).toEqual([expect.stringContaining("cert_expired: this node has no recovery token")]);
    one.server.lastMs = -1;
    one.learn(one.server.issue());
    await one.round();
    expect(one.records).toHaveLength(2);
    expect(one.records.at(-1)).toContain("the recovery token expired at");
    expect(one.server.requests).toEqual([]);
  });

  it("AGENT-03 suppresses further attempts when a recovered certificate is rejected, also after a restart", async () => {
    const one = world();
    one.learn(one.server.issue());
    one.reject(true);
    await one.round();
    expect(one.server.requests).toHaveLength(1);
    await one.round(60_000);
    one.crash();
    await one.round(60_000);
    expect(one.server.requests).toHaveLength(1);
    expect(one.counted["recovery_suppressed"]).toBe(2);
    expect(one.records.at(-1)).toMatch(/^recovery_enrollment_blocked: .*rejected too \(auth_failed\).*14 min/);
    expect(one.durable().rejected?.count).toBe(1);
    await one.round(11 * 60_000);
    expect(one.server.requests).toHaveLength(1);
    await one.round(4 * 60_000);
    expect(one.server.requests).toHaveLength(2);
    await one.round(60_000);
    expect(one.durable().rejected?.count).toBe(2);
    one.reject(false);
    await one.round(60_000);
    expect(one.durable().rejected).toBeNull();
  });

  it("AGENT-01 records a refusal with the server's id, and does not ask again for ten minutes", async () => {
    const one = world();
    one.learn(one.server.issue());
    one.expire();
    one.set({ refusal: { kind: "answer", status: 403, code: "recovery_disabled", excerpt: "off" } });
    await one.round();
    expect(one.records).toEqual(["recovery_refused: recovery: HTTP 403 recovery_disabled: off [c-1]"]);
    one.set({ refusal: undefined });
    await one.round(9 * 60_000);
    expect(one.works()).toBe(false);
    await one.round(60_000);
    expect(one.works()).toBe(true);
    expect(one.counted).toEqual({ recovery_attempts: 2, recovery_failures: 1, recovery_successes: 1 });
  });

  it("ID-04 uses the next token when the one that was sent is no longer accepted", async () => {
    const one = world();
    one.learn(one.server.issue());
    one.expire();
    one.set({ network: "loses_request" });
    await one.round();
    one.renew();
    one.learn(one.server.issue());
    await one.round();
    one.expire();
    one.set({ network: "works" });
    await one.round();
    expect(one.records.at(-1)).toContain("recovery_token_superseded");
    await one.round(60_000);
    expect(one.works()).toBe(true);
    expect(one.server.requests).toHaveLength(2);
  });

  it("ID-05 does nothing about a certificate that is no longer in force", async () => {
    const one = world();
    one.learn(one.server.issue());
    await one.failBefore();
    expect(one.counted).toEqual({});
  });

  it("ID-04 starts without anything", () => {
    const one = world();
    expect(one.held()).toBeNull();
    expect(one.durable()).toEqual(emptyState(nodeId));
  });
});
