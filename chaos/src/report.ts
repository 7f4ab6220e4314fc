// What a run shows: a table that lives while it runs, or one JSON object at its end.

import type { Scenario, ScenarioResult } from "./scenario.ts";

export type Report = {
  began(scenario: Scenario): void;
  ended(result: ScenarioResult): void;
  /** Whether all is well. */
  close(): boolean;
};

type Row = { scenario: Scenario; state: "waits" | "runs" | ScenarioResult };

export function openReport(scenarios: readonly Scenario[], form: "table" | "json"): Report {
  const rows: Row[] = scenarios.map((scenario) => ({ scenario, state: "waits" }));
  const results: ScenarioResult[] = [];
  const started = performance.now();
  const live = form === "table" && process.stdout.isTTY;
  const print = (text: string) => void process.stdout.write(`${text}\n`);
  const rowOf = (name: string) => rows.find((row) => row.scenario.name === name);
  const draw = (first = false) => {
    if (!live) return;
    const up = first ? "" : `\x1b[${rows.length}A`;
    // A line that wraps would be two to go up.
    const width = process.stdout.columns - 1;
    process.stdout.write(up + rows.map((row) => `\x1b[2K${lineOf(row).slice(0, width)}\n`).join(""));
  };
  if (form === "table") print(heading);
  draw(true);
  return {
    began(scenario) {
      const row = rowOf(scenario.name);
      if (row) row.state = "runs";
      draw();
    },
    ended(result) {
      results.push(result);
      const row = rowOf(result.name);
      if (!row) return;
      row.state = result;
      if (live) draw();
      else if (form === "table") print(lineOf(row));
    },
    close() {
      const bad = results.filter(({ ok }) => !ok);
      const ok = bad.length === 0 && results.length === scenarios.length;
      const seconds = Math.round((performance.now() - started) / 100) / 10;
      if (form === "json") print(JSON.stringify({ ok, seconds, scenarios: inOrder(scenarios, results) }, null, 2));
      else {
        for (const { name, problems, logs } of bad)
          print(`\n${name}:\n  ${problems.join("\n  ")}\n  logs: ${logs}`);
        print(`\n${results.length - bad.length} of ${scenarios.length} well, in ${seconds} s`);
      }
      return ok;
    },
  };
}

const heading = columns("", "scenario", "hop", "signal", "seen", "well again", "correlation id");

function lineOf({ scenario, state }: Row): string {
  if (state === "waits") return columns("·", scenario.name);
  if (state === "runs") return columns("▸", scenario.name, "", scenario.title);
  const { ok, hop, signal, seconds, recovered_seconds, correlation_id } = state;
  return columns(
    ok ? "✓" : "✗",
    scenario.name,
    hop ?? "–",
    signal ?? "–",
    inSeconds(seconds),
    inSeconds(recovered_seconds),
    correlation_id ?? "–",
  );
}

function columns(mark: string, name: string, hop = "", signal = "", seen = "", again = "", id = ""): string {
  const cells = [mark.padEnd(1), name.padEnd(20), hop.padEnd(29), signal.padEnd(30), seen.padStart(7)];
  return [...cells, again.padStart(10), id].join("  ").trimEnd();
}

function inSeconds(value: number | null): string {
  return value === null ? "–" : `${value.toFixed(1)} s`;
}

function inOrder(scenarios: readonly Scenario[], results: readonly ScenarioResult[]): ScenarioResult[] {
  return scenarios.flatMap(({ name }) => results.filter((one) => one.name === name));
}
