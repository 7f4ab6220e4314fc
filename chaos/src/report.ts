// What a run shows: a table that lives while it runs, or one JSON object at its end.

import { labelOf, type Run, type ScenarioResult } from "./scenario.ts";

export type Report = {
  began(run: Run): void;
  ended(run: Run, result: ScenarioResult): void;
  /** Whether all is well. */
  close(): boolean;
};

type Row = { run: Run; state: "waits" | "runs" | ScenarioResult };

export function openReport(runs: readonly Run[], form: "table" | "json"): Report {
  const rows: Row[] = runs.map((run) => ({ run, state: "waits" }));
  const resultsIn = () => rows.flatMap(({ state }) => (typeof state === "string" ? [] : [state]));
  const started = performance.now();
  const live = form === "table" && process.stdout.isTTY;
  const print = (text: string) => void process.stdout.write(`${text}\n`);
  const rowOf = (run: Run) => rows.find((row) => row.run === run);
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
    began(run) {
      const row = rowOf(run);
      if (row) row.state = "runs";
      draw();
    },
    ended(run, result) {
      const row = rowOf(run);
      if (!row) return;
      row.state = result;
      if (live) draw();
      else if (form === "table") print(lineOf(row));
    },
    close() {
      const results = resultsIn();
      const bad = results.filter(({ ok }) => !ok);
      const ok = bad.length === 0 && results.length === runs.length;
      const seconds = Math.round((performance.now() - started) / 100) / 10;
      if (form === "json") print(JSON.stringify({ ok, seconds, scenarios: results }, null, 2));
      else {
        for (const { name, problems, logs } of bad)
          print(`\n${name}:\n  ${problems.join("\n  ")}\n  logs: ${logs}`);
        print(`\n${results.length - bad.length} of ${runs.length} well, in ${seconds} s`);
      }
      return ok;
    },
  };
}

const heading = columns("", "scenario", "hop", "signal", "seen", "well again", "correlation id");

function lineOf({ run, state }: Row): string {
  if (state === "waits") return columns("·", labelOf(run));
  if (state === "runs") return columns("▸", labelOf(run), "", run.scenario.title);
  const { ok, hop, signal, seconds, recovered_seconds, correlation_id } = state;
  return columns(
    ok ? "✓" : "✗",
    labelOf(run),
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
