import { generateKeyPairSync, randomUUID } from "node:crypto";
import { canonicalJson } from "@holdfast/kit/canonical-json";
import { signDetached } from "@holdfast/kit/detached-jws";
import { describe, expect, it } from "vitest";
import type { SignedExecute } from "./frames.generated.ts";
import { judgeExecution } from "./verify.ts";

const { publicKey, privateKey } = generateKeyPairSync("ed25519");
const other = generateKeyPairSync("ed25519");
const now = Date.parse("2026-01-01T00:00:00Z");
const agentId = randomUUID();
const organizationId = randomUUID();
const judge = { agentId, organizationId, keyring: new Map([["a", publicKey]]), now };

function dispatch(more: Partial<SignedExecute> = {}, key = { kid: "a", privateKey }): SignedExecute {
  const frame = {
    ...{ requestId: "run:node:1", generation: 1, agentId, organizationId, userId: randomUUID() },
    ...{
      kind: "agent.execute",
      payload: { a: 1, b: [2] },
      timeoutMs: 1000,
      expiresAt: "2026-01-01T00:01:00.000Z",
    },
    ...more,
  };
  const signed = {
    ...{ purpose: "execution", request_id: frame.requestId, agent_id: frame.agentId, kind: frame.kind },
    ...{ organization_id: frame.organizationId, user_id: frame.userId, payload: frame.payload },
    ...{ timeout_ms: frame.timeoutMs, expires_at: frame.expiresAt },
  };
  return { type: "execute", ...frame, signature: signDetached(key, canonicalJson(signed)) };
}

const refusalOf = (frame: SignedExecute, more: Partial<typeof judge> = {}) =>
  judgeExecution(frame, { ...judge, ...more });

describe("a dispatch", () => {
  it("EXEC-02 that is signed for this agent and not expired may run, whatever its generation", () => {
    expect(refusalOf(dispatch())).toEqual({ authentic: true, refused: undefined });
    expect(refusalOf({ ...dispatch(), generation: 7, secret: "x" })).toEqual({
      authentic: true,
      refused: undefined,
    });
  });

  const changes: Partial<SignedExecute>[] = [
    { requestId: "run:node:2" },
    { agentId: randomUUID() },
    { organizationId: randomUUID() },
    { userId: randomUUID() },
    { kind: "connector.action" },
    { payload: { a: 1, b: [3] } },
    { timeoutMs: 2000 },
    { expiresAt: "2027-01-01T00:00:00.000Z" },
    { signature: "x" },
    { signature: "" },
  ];
  it.for(changes)("EXEC-02 that was changed is not authentic: %j", (change) => {
    expect(refusalOf({ ...dispatch(), ...change })).toEqual({
      authentic: false,
      refused: "its signature is not valid",
    });
  });

  it("EXEC-02 of a task is none: what is signed says what it is for", () => {
    const task = {
      task_id: "run:node:1",
      node_id: agentId,
      task_type: "agent.execute",
      params: {},
      expires_at: "",
    };
    const signature = signDetached({ kid: "a", privateKey }, canonicalJson(task));
    expect(refusalOf({ ...dispatch(), signature }).authentic).toBe(false);
  });

  it("EXEC-02 signed with another key is refused, also under the name of a known one", () => {
    const { privateKey: foreign } = other;
    const unknown = "it is signed with a key that this agent does not know";
    expect(refusalOf(dispatch({}, { kid: "b", privateKey: foreign })).refused).toBe(unknown);
    expect(refusalOf(dispatch({}, { kid: "a", privateKey: foreign })).refused).toBe("its signature is not valid");
  });

  it("EXEC-02 for another agent or organization is refused", () => {
    const elsewhere = randomUUID();
    expect(refusalOf(dispatch({ agentId: elsewhere }))).toEqual({
      ...{ authentic: false, refused: `it was signed for the agent ${elsewhere}` },
    });
    expect(refusalOf(dispatch({ organizationId: elsewhere })).refused).toBe(
      `it was signed for the organization ${elsewhere}`,
    );
  });

  it("EXEC-02 expires, to the millisecond, and says what this host's clock says", () => {
    const end = Date.parse("2026-01-01T00:01:00Z");
    expect(refusalOf(dispatch(), { now: end - 1 }).refused).toBeUndefined();
    expect(refusalOf(dispatch(), { now: end })).toEqual({
      authentic: true,
      refused: "it expired at 2026-01-01T00:01:00.000Z; this host's clock says 2026-01-01T00:01:00.000Z",
    });
  });

  it("EXEC-02 is refused by an agent without keys", () => {
    expect(refusalOf(dispatch(), { keyring: new Map() }).refused).toMatch(/no signing keys/);
  });

  it("EXEC-02 that is nested too deep to be written is refused, and nothing breaks", () => {
    const deep = JSON.parse(`${"[".repeat(100_000)}${"]".repeat(100_000)}`) as unknown;
    expect(refusalOf({ ...dispatch(), payload: deep })).toEqual({
      authentic: false,
      refused: "its signature is not valid",
    });
  });
});
