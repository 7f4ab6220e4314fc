import type { Explanation } from "@holdfast/contracts/endpoints/drift";
import { describe, expect, it } from "vitest";
import {
  answerOf,
  codesIn,
  differences,
  forbiddenIn,
  type KeyRow,
  keyFor,
  readAnswerKey,
  withAction,
} from "./answer-key.ts";
import { allRows } from "./rows/all.ts";

const all = readAnswerKey();
const rowOf = (name: string): KeyRow => {
  const found = all.find(({ row }) => row === name);
  if (!found) throw new Error(`no row ${name}`);
  return found;
};

/** As the product would answer the row. */
function answered(key: KeyRow, changes: Partial<Explanation["causes"][number]> = {}): Explanation {
  const incident = { id: "1", began_at: "", opened_at: "" };
  const first = {
    ...{ reason: key.reason, signal: key.signal, user_state: key.user_state, severity: key.severity },
    ...{ owner_id: key.owner, next_action: key.next_action, confidence: key.confidence ?? "high" },
    budget: { detect_seconds: key.detect_within_s, repair: "automatic" },
    ...changes,
  };
  const healthy = key.reason === null;
  return {
    ...{ user_state: key.user_state, causes: healthy ? [] : [first], incident: healthy ? null : incident },
    history: healthy ? [] : [{ incident_id: "1", reason: first.reason }],
  } as unknown as Explanation;
}

describe("the answer key", () => {
  it.for(all.map((key) => [key.row, key] as const))("DRIFT-13 row %s is met by its own answer", ([, key]) => {
    expect(differences(key, answered(key))).toEqual([]);
  });

  it.for([
    ["reason", { reason: "agent_down" }],
    ["signal", { signal: "node_agent_heartbeat_stale" }],
    ["user_state", { user_state: "normal" }],
    ["severity", { severity: "P2" }],
    ["owner", { owner_id: "web" }],
    ["next_action", { next_action: "none" }],
    ["detection budget", { budget: { detect_seconds: 1, repair: "automatic" } }],
  ] as const)("DRIFT-13 a false %s is noticed", ([field, changes]) => {
    const key = rowOf("N04");
    expect(differences(key, answered(key, changes as object)).join("; ")).toContain(`${field} is`);
  });

  it("DRIFT-13 a rival cause, a missing incident and a certain answer where none is proven are noticed", () => {
    const key = rowOf("N01");
    const right = answered(key);
    const [first] = right.causes;
    expect(differences(key, { ...right, causes: [...right.causes, ...right.causes] })).toEqual([
      "agent_down is given as a further cause",
    ]);
    expect(differences(key, { ...right, incident: null })).toEqual(["no incident is open"]);
    expect(differences(key, { ...right, history: [{ incident_id: "1", reason: "disk_full" }] } as never)).toEqual([
      "the incident's reason is disk_full; expected agent_down",
    ]);
    expect(differences(key, { ...right, causes: [{ ...first, confidence: "high" }] } as never)).toEqual([
      "confidence is high; expected low",
    ]);
    expect(differences(rowOf("D20"), right)).toContain("agent_down is given as a cause; nothing is wrong");
    expect(differences(key, { ...right, causes: [] })).toEqual(["no cause is given"]);
  });

  it("DRIFT-13 the reason may be published as the signal where the documents name none", () => {
    const key = rowOf("D26");
    expect(key.signal).toBeNull();
    expect(differences(key, answered(key, { signal: "clock_skew" }))).toEqual([]);
    expect(differences(key, answered(key, { signal: "disk_full" }))).toEqual([
      "signal is disk_full; expected null",
    ]);
  });

  it("DRIFT-13 another reason that a row allows is answered as the row that it belongs to", () => {
    const key = rowOf("D23");
    const other = keyFor(key, "terminal_public_route_missing", all);
    expect(other).toMatchObject({ row: "T02", owner: rowOf("T02").owner, must_not_say: key.must_not_say });
    expect(keyFor(key, "agent_down", all)).toBe(key);
    expect(keyFor(key, undefined, all)).toBe(key);
  });

  it("DRIFT-13 what must not be said is found in reasons and signals", () => {
    const key = rowOf("D08");
    const said = new Set(codesIn(answered(key, { reason: "cert_expired", signal: "node_unavailable" })));
    expect(forbiddenIn(key, said)).toEqual([
      "node_unavailable was given as a cause",
      "cert_expired was given as a cause",
    ]);
    expect(forbiddenIn(key, new Set(codesIn(answered(key))))).toEqual([]);
  });

  it("DRIFT-13 healthy has no reason", () => {
    expect(answerOf(answered(rowOf("D20")))).toMatchObject({ reason: null, next_action: "none" });
  });
});

describe("the rows", () => {
  it("DRIFT-13 are those of the matrix, each once", () => {
    expect(allRows.map(({ row }) => row).toSorted()).toEqual(all.map(({ row }) => row).toSorted());
  });

  it("DRIFT-13 expect another next action only where the matrix permits it", () => {
    const keys = allRows
      .filter((one) => one.nextAction !== undefined)
      .map((one) => withAction(rowOf(one.row), one.nextAction));
    expect(keys.map(({ row, next_action }) => `${row} ${next_action}`).toSorted()).toEqual([
      ...["D24 repair_network", "T04 repair_network", "T05 repair_endpoint_profile"],
    ]);
    expect(() => withAction(rowOf("D13"), "wait")).toThrow("D13 does not permit wait");
  });

  it("DRIFT-13 only what the matrix permits is injected", () => {
    const permitted = all.filter((one) => one.injectable_only).map(({ row }) => row);
    const injected = allRows.filter(({ at }) => at === "database").map(({ row }) => row);
    expect(injected.filter((row) => !permitted.includes(row))).toEqual([]);
  });
});
