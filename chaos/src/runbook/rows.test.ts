// The rows are those of the terminal preflight runbook, in its words, and drills cover them.

import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { allDrills } from "./drills/all.ts";
import { cellsOf, listLines, matrixRows } from "./rows.ts";

const file = new URL("../../../../shared/seeds/000_terminal_preflight_runbook.txt", import.meta.url);

/** Rows that no drill produces yet, with the reason in `chaos/README.md`. */
const notYet = new Set(["M3", "M4", "M5", "L2", "L3", "L5", "L6", "L7"]);

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

describe("drills", () => {
  const all = [...matrixRows, ...listLines].map(({ row }) => row);
  const covered = new Set(allDrills.flatMap(({ rows }) => rows.map(({ row }) => row)));

  it("CHAOS-01 cover the rows, and no others", () => {
    expect(all.filter((row) => !covered.has(row))).toEqual(all.filter((row) => notYet.has(row)));
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
});
