// The rows are those of the terminal preflight runbook, in its words, and drills cover them.

import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { readAnswerKey } from "../matrix/answer-key.ts";
import { allDrills } from "./drills/all.ts";
import { cellsOf, listLines, matrixRows } from "./rows.ts";

const file = new URL("../../../../shared/seeds/000_terminal_preflight_runbook.txt", import.meta.url);

/** What the runbook calls a hop without a name of a preflight's. */
const hopsByWords: Record<string, string> = {
  "latest operation": "node_task_round_trip",
  "gateway logs": "gateway_node_stream",
};

/** Where the failure matrix of the specification is more exact than the runbook: its row that masks the runbook's signal. */
const maskedBy: Record<string, { row: string; hop: string; signal: string }> = {
  "api-behind-public-edge": {
    ...{ row: "D07", hop: "node_runtime_api_reachability", signal: "endpoint_profile_drift" },
  },
  "result-egress-blocked": {
    ...{ row: "N02", hop: "node_runtime_api_reachability", signal: "node_agent_api_unreachable" },
  },
};

describe.skipIf(!existsSync(file))("the runbook", () => {
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  const table = text
    .slice(text.indexOf("### Concrete Chaos Scenario Matrix"))
    .split("\n")
    .filter((line) => line.startsWith("| ") && !line.startsWith("| Scenario |"))
    .map((line) => line.slice(2, -2).split(" | "));
  const named = (cell = "") => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name);

  it("CHAOS-01 has the matrix row by row: scenario, hops, signals, evidence, proof", () => {
    expect(matrixRows.map(({ row }) => row)).toEqual(table.map((_, index) => `M${index + 1}`));
    for (const [index, { scenario, hops, signals, evidence, proof }] of matrixRows.entries()) {
      const [title, , hopCell, signalCell, evidenceCell, proofCell = ""] = table[index] ?? [];
      expect(scenario).toBe(title);
      expect(named(hopCell)).toEqual(hops.filter((hop) => !hop.includes(" ")));
      for (const hop of hops) expect(hopCell).toContain(hop);
      expect(named(signalCell)).toEqual(signals);
      expect(evidence).toEqual(evidenceCell?.split(", ").flatMap((part) => rejoin(part, evidence)));
      for (const name of proof) expect(proofCell).toContain(name);
    }
  });

  it("CHAOS-01 has the lists line by line", () => {
    const lists = text.slice(text.indexOf("## Chaos And Negative"), text.indexOf("Each scenario should assert"));
    const lines = [...lists.matchAll(/^- (.+)$/gm)].map(([, line]) => line);
    expect(listLines).toEqual(lines.map((scenario, index) => ({ row: `L${index + 1}`, scenario })));
  });
});

/** A cell of this name has a comma of its own. */
function rejoin(part: string, names: readonly string[]): string[] {
  const whole = names.find((name) => name.startsWith(`${part}, `));
  if (whole) return [whole];
  return names.some((name) => name.includes(`, ${part}`)) ? [] : [part];
}

/** In one row it says so with a stroke, which elsewhere means "and". */
const saysOr = (injection: string) => / or |stale\/untrusted/.test(injection);

describe.skipIf(!existsSync(file))("drills of the document", () => {
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  const injectionOf = ({ row, scenario }: { row: string; scenario: string }) =>
    row.startsWith("L") ? scenario : (text.split(`| ${scenario} | `)[1]?.split(" | ")[0] ?? "");

  it.for([...matrixRows, ...listLines])(
    "CHAOS-01 $row is run in two variants where its injection says or",
    (line) => {
      const own = allDrills.flatMap(({ rows }) => rows.filter(({ row }) => row === line.row));
      const variants = new Set(own.map(({ variant }) => variant));
      expect(variants.size).toBeGreaterThanOrEqual(saysOr(injectionOf(line)) ? 2 : 1);
    },
  );
});

describe("drills", () => {
  const all = [...matrixRows, ...listLines].map(({ row }) => row);
  const covered = new Set(allDrills.flatMap(({ rows }) => rows.map(({ row }) => row)));

  it("CHAOS-01 cover the rows, and no others", () => {
    expect(all.filter((row) => !covered.has(row))).toEqual([]);
    expect([...covered].filter((row) => !all.includes(row))).toEqual([]);
  });

  it.for(allDrills)(
    "CHAOS-01 $name captures every cell of its rows, by name",
    ({ rows, before, after, expect: wanted }) => {
      const captured = Object.keys({ ...before, ...after });
      for (const name of cellsOf(rows.map(({ row }) => row))) expect(captured).toContain(name);
      expect(wanted.preflight.failed_hop).toBeTruthy();
    },
  );

  const ofMatrix = allDrills.flatMap((drill) =>
    matrixRows.filter(({ row }) => drill.rows.some((one) => one.row === row)).map((row) => ({ ...row, drill })),
  );
  it.for(ofMatrix)("CHAOS-01 $row expects its hop and signal of $drill.name", ({ drill, hops, signals }) => {
    const { failed_hop, symptom_hop, signal } = drill.expect.preflight;
    const masked = maskedBy[drill.name];
    if (masked) {
      expect({ hop: failed_hop, signal }).toEqual({ hop: masked.hop, signal: masked.signal });
      expect(readAnswerKey().find(({ row }) => row === masked.row)?.masks).toEqual(
        expect.arrayContaining([...signals]),
      );
      return;
    }
    expect(hops.map((hop) => hopsByWords[hop] ?? hop)).toContain(failed_hop);
    expect([null, "node_heartbeat", "terminal_open_task"]).toContain(symptom_hop);
    expect(signals).toContain(signal);
  });
});
