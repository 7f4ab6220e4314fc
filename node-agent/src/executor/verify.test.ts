import type { TaskOffer } from "@holdfast/contracts/node/protocol";
import { canonicalJson } from "@holdfast/kit/canonical-json";
import { signDetached } from "@holdfast/kit/detached-jws";
import noop from "@holdfast/tasks/node.noop/contract";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { newSigningKey } from "../../test/support/fake-api.ts";
import { verifierKeyring } from "../identity/agent-file.ts";
import { judgeContent, judgeOrigin, judgeTime } from "./verify.ts";

const key = newSigningKey("2026-a");
const older = newSigningKey("2025-b");
const nodeId = "01a1e13c-bc3d-71c5-9b58-aada3c2346d4";
const otherNode = "01a1e13c-bc3d-71c5-9b58-aada3c2346d5";
const now = Date.parse("2026-03-01T12:00:00.000Z");
const verifiers = verifierKeyring({ keys: [key.jwk, older.jwk] });
const judge = { nodeId, verifiers, now, skewSeconds: 0 };

function offer(changes: Partial<TaskOffer> = {}, { signer = key, node = nodeId } = {}): TaskOffer {
  const task = {
    task_id: "01a1e13c-bc3d-71c5-9b58-000000000001",
    task_type: "node.noop",
    params: { echo: "hello", hold_ms: 0 },
    expires_at: "2026-03-01T12:05:00.000Z",
  };
  const signature = signDetached(signer, canonicalJson({ ...task, node_id: node }));
  return { ...task, generation: 1, correlation_id: "c", signature, ...changes };
}

describe("an offered task", () => {
  it("TASK-03 may run when it is signed for this node and in its time", () => {
    expect(judgeOrigin(offer(), judge)).toBeUndefined();
  });

  it("TASK-03 may be signed with any key of the overlapping set", () => {
    expect(judgeOrigin(offer({}, { signer: older }), judge)).toBeUndefined();
  });

  it("TASK-03 may be delivered again: its generation is not signed", () => {
    expect(judgeOrigin(offer({ generation: 7 }), judge)).toBeUndefined();
  });

  it.for([
    ["other params", { params: { echo: "other" } }],
    ["another type", { task_type: "allocation.provision_user" }],
    ["another id", { task_id: "01a1e13c-bc3d-71c5-9b58-000000000002" }],
    ["a later expiry", { expires_at: "2026-03-01T12:06:00.000Z" }],
    ["no signature", { signature: "" }],
    ["half a signature", { signature: offer().signature.slice(0, -8) }],
    ["params that cannot be written", { params: { echo: "\ud800" } }],
  ] as const)("TASK-03 is refused with %s", ([, changes]) => {
    expect(judgeOrigin(offer(changes), judge)).toBe("task_signature_invalid");
  });

  it("TASK-03 with any change to what is signed is refused", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const params = JSON.parse(text) as unknown;
        fc.pre(canonicalJson(params) !== canonicalJson(offer().params));
        expect(judgeOrigin(offer({ params }), judge)).toBe("task_signature_invalid");
      }),
    );
  });

  it("TASK-03 is refused when another node's: told as such where the offer says whose it is", () => {
    expect(judgeOrigin(offer({}, { node: otherNode }), judge)).toBe("task_signature_invalid");
    expect(judgeOrigin(offer({ node_id: otherNode }, { node: otherNode }), judge)).toBe("task_wrong_node");
    expect(judgeOrigin(offer({ node_id: otherNode }), judge)).toBe("task_signature_invalid");
    expect(judgeOrigin(offer({ node_id: nodeId }), judge)).toBeUndefined();
  });

  it("TASK-03 is refused when signed with a key that was never given, or with no key at all", () => {
    expect(judgeOrigin(offer({}, { signer: newSigningKey("stranger") }), judge)).toBe("task_key_unknown");
    // The kid is ours, the key is not.
    expect(judgeOrigin(offer({}, { signer: newSigningKey(key.kid) }), judge)).toBe("task_signature_invalid");
    const header = Buffer.from(JSON.stringify({ alg: "none", kid: key.kid })).toString("base64url");
    expect(judgeOrigin(offer({ signature: `${header}..` }), judge)).toBe("task_signature_invalid");
  });

  it.for([
    [0, 0, undefined],
    [5 * 60 - 1, 0, undefined],
    [5 * 60, 0, "task_expired"],
    [6 * 60, 0, "task_expired"],
    // Our clock is ahead by what the server's lacks: the task is still in its time.
    [5 * 60 + 20, -30, undefined],
    // Our clock is behind.
    [5 * 60 - 20, 30, "task_expired"],
    [0, 61, "clock_skew"],
    [0, -600, "clock_skew"],
    [10 * 60, -600, "clock_skew"],
    [0, 60, undefined],
  ] as const)("ID-14 %d s later by a clock %d s off: %s", ([later, skewSeconds, refusal]) => {
    expect(judgeOrigin(offer(), { ...judge, now: now + later * 1000, skewSeconds })).toBe(refusal);
  });

  it("TASK-03 is judged by the own clock before the server's is known", () => {
    expect(judgeTime("2026-03-01T12:05:00.000Z", { now, skewSeconds: undefined })).toBeUndefined();
    expect(judgeTime("not a time", { now, skewSeconds: 0 })).toBe("task_expired");
  });
});

describe("what a task asks for", () => {
  it("TASK-01 is refused when its type is not registered", () => {
    expect(judgeContent(offer(), undefined, [])).toEqual({ refused: "task_type_unknown" });
  });

  it("TASK-07 is refused when the host lacks the capability", () => {
    const type = { ...noop, capabilities: ["os_users", "gpu"] };
    expect(judgeContent(offer(), type, ["kvm"])).toEqual({ refused: "capability_missing" });
    expect(judgeContent(offer(), type, ["gpu"])).toHaveProperty("params");
  });

  it("TASK-07 is refused when its params do not have the type's form, and gets its defaults otherwise", () => {
    expect(judgeContent(offer({ params: { hold_ms: -1 } }), noop, [])).toEqual({ refused: "task_params_invalid" });
    expect(judgeContent(offer({ params: { shell: "rm" } }), noop, [])).toEqual({ refused: "task_params_invalid" });
    expect(judgeContent(offer({ params: null }), noop, [])).toEqual({ refused: "task_params_invalid" });
    expect(judgeContent(offer({ params: {} }), noop, [])).toEqual({ params: { hold_ms: 0 }, secrets: {} });
  });

  it("TASK-05 is refused without a secret that its type declares, and gets no other", () => {
    const type = { ...noop, secrets: ["key"] };
    const wrong: Record<string, string>[] = [{}, { key: "" }, { other: "value" }, { key: 1 as never }];
    expect(judgeContent(offer(), type, [])).toEqual({ refused: "task_secrets_missing" });
    for (const secrets of wrong) {
      expect(judgeContent(offer({ secrets }), type, [])).toEqual({
        refused: "task_secrets_missing",
      });
    }
    const secrets = { key: "value", other: "not declared" };
    expect(judgeContent(offer({ secrets }), type, [])).toMatchObject({ secrets: { key: "value" } });
    expect(judgeContent(offer({ secrets }), type, [])).not.toHaveProperty("secrets.other");
    expect(judgeContent(offer({ secrets }), noop, [])).toHaveProperty("secrets", {});
  });
});
