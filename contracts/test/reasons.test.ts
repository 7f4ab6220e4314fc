// The catalogue of reasons against the failure matrix of the specification, of which `failure-matrix.json` is a copy.

import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { isReason, type ReasonCode, reasonCodes, reasons } from "../src/reasons/catalogue.ts";
import { ownerIds } from "../src/reasons/owners.ts";
import { nextActionIds, severities, userStates } from "../src/reasons/vocabulary.ts";

type Row = {
  row: string;
  reason: string | null;
  signal: string | null;
  owner: string;
  severity: string;
  user_state: string;
  next_action: string;
  masks: string[];
  reason_any_of?: string[];
};
type Matrix = { owners: Record<string, string>; next_actions: Record<string, string>; rows: Row[] };

const root = new URL("../../", import.meta.url);
const specification = new URL("../shared/spec/matrix.json", root);
const read = (url: URL) => readFileSync(url, "utf8");
const matrix = JSON.parse(read(new URL("failure-matrix.json", import.meta.url))) as Matrix;

/** The rows that answer with this code: as their reason, else as one they may yield, else as their signal. */
function rowsOf(code: string): Row[] {
  const { rows } = matrix;
  const by = [
    rows.filter(({ reason }) => reason === code),
    rows.filter(({ reason_any_of }) => reason_any_of?.includes(code)),
    rows.filter(({ signal }) => signal === code),
  ];
  return by.find((found) => found.length > 0) ?? [];
}

const inMatrix = reasonCodes.filter((code) => rowsOf(code).length > 0);

describe("the failure matrix", () => {
  it.skipIf(!existsSync(specification))("is the one of the specification", () => {
    expect(matrix).toEqual(JSON.parse(read(specification)));
  });

  it("DRIFT-04 has the same owners, next actions, severities and user states as the catalogue", () => {
    expect(new Set(ownerIds)).toEqual(new Set(Object.keys(matrix.owners)));
    expect(new Set(nextActionIds)).toEqual(new Set(Object.keys(matrix.next_actions)));
    expect(new Set(severities)).toEqual(new Set(matrix.rows.map(({ severity }) => severity)));
    expect(new Set(userStates)).toEqual(new Set(matrix.rows.map(({ user_state }) => user_state)));
  });

  it("names most of what the product can report", () => {
    expect(inMatrix.length).toBeGreaterThanOrEqual(28);
  });

  // A reason that several rows give has the answer of one of them: which one holds depends on evidence.
  it.for(inMatrix)("DRIFT-15 gives the owner, severity, user state and next action of %s", (code) => {
    const { owner, severity, userState: user_state, nextAction: next_action } = reasons[code];
    const answers = rowsOf(code).map((row) => ({
      ...{ owner: row.owner, severity: row.severity },
      ...{ user_state: row.user_state, next_action: row.next_action },
    }));
    expect(answers).toContainEqual({ owner, severity, user_state, next_action });
  });

  const masked = matrix.rows.flatMap(({ row, reason, masks }) =>
    masks
      .filter((code) => reason !== null && isReason(reason) && isReason(code))
      .map((code) => [row, reason, code]),
  ) as [string, ReasonCode, ReasonCode][];

  it.for(masked)("DRIFT-15 %s: %s is the cause of %s", ([, cause, symptom]) => {
    expect(reasons[symptom].dependsOn).toContain(cause);
  });
});

describe("a reason", () => {
  it.for(reasonCodes)("says what happened and what to do now: %s", (code) => {
    const { title, message, nextStep, owner, severity, class: kind } = reasons[code];
    expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/);
    expect(title).toMatch(/^[A-Z][^.]{2,44}$/);
    expect(message).toMatch(/^[A-Z].*\.$/);
    expect(nextStep).toMatch(/^[A-Z].*\.$/);
    // What is no fault has nobody to repair it; a terminal that ended so belongs to its user.
    expect(severity === null).toBe(kind === "none");
    if (owner === null) expect(severity).toBeNull();
  });

  it("has a title of its own among those of a node, and among those of a terminal", () => {
    for (const kinds of [["diagnostic", "attention"], ["terminal"]]) {
      const titles = reasonCodes
        .filter((code) => kinds.includes(reasons[code].kind))
        .map((code) => reasons[code].title);
      expect(titles).toEqual([...new Set(titles)]);
    }
  });

  it("DRIFT-15 has a signal that the catalogue knows", () => {
    const signals = reasonCodes.flatMap((code) => {
      const reason = reasons[code];
      return "signal" in reason && reason.signal ? [reason.signal] : [];
    });
    expect(signals.filter((signal) => !isReason(signal))).toEqual([]);
    const only = reasonCodes.filter((code) => reasons[code].kind === "signal");
    expect(only.filter((code) => !signals.includes(code))).toEqual([]);
  });

  it("DRIFT-15 is never its own cause, directly or through others", () => {
    const visit = (code: string, path: readonly string[]): void => {
      if (!isReason(code)) throw new Error(`${path.at(-1)} depends on ${code}, which is no reason`);
      if (path.includes(code)) throw new Error(`a circle: ${[...path, code].join(" → ")}`);
      for (const cause of reasons[code].dependsOn) visit(cause, [...path, code]);
    };
    for (const code of reasonCodes) expect(() => visit(code, [])).not.toThrow();
  });
});

const entry = `
  moon_phase: {
    title: "Full moon",
    at: "host_clock",
    signal: "clock_skew",
    message: "The moon is full.",
    nextStep: "Wait two weeks.",
    class: "rejection",
    owner: "node_runtime",
    severity: "P2",
    userState: "normal",
    nextAction: "wait",
    dependsOn: [],
  },
`;

describe("a new reason", () => {
  it("is one entry: everything that reads the catalogue has it", () => {
    const directory = mkdtempSync(join(tmpdir(), "reasons-"));
    try {
      cpSync(fileURLToPath(new URL("../src/reasons", import.meta.url)), directory, { recursive: true });
      const topic = join(directory, "node/host.ts");
      const before = readFileSync(topic, "utf8");
      const after = before.replace("export const hostReasons = {\n", (start) => start + entry);
      expect(after.length).toBe(before.length + entry.length);
      writeFileSync(topic, after);
      const program = `
        const { presentReason, titleOf } = await import("${directory}/catalogue.ts");
        const { diagnosticReasonNames, isProblem, isRejection, ownerGroupOf } = await import("${directory}/node.ts");
        const code = "moon_phase";
        console.log(JSON.stringify({
          onTheWire: diagnosticReasonNames.includes(code), title: titleOf(code), presented: presentReason(code),
          problem: isProblem(code), rejection: isRejection(code), owner: ownerGroupOf(code),
        }));`;
      const printed = execFileSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
      expect(JSON.parse(printed)).toEqual({
        ...{ onTheWire: true, title: "Full moon", problem: true, rejection: true, owner: "node" },
        presented: {
          ...{ title: "Full moon", severity: "P2", owner_id: "node_runtime", next_action: "wait" },
          runbook: "/runbooks/moon_phase",
        },
      });
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
