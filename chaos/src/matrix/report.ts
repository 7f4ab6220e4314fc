// What a run of the matrix shows: a line for each row when it ends, or one JSON object at the end.

import type { KeyRow } from "./answer-key.ts";
import type { RowResult } from "./row.ts";

export type MatrixReport = {
  ended(result: RowResult): void;
  /** Whether every row that ran was answered as expected. */
  close(): boolean;
};

export function openMatrixReport(all: readonly KeyRow[], form: "table" | "json"): MatrixReport {
  const results: RowResult[] = [];
  const print = (text: string) => void process.stdout.write(`${text}\n`);
  return {
    ended(result) {
      results.push(result);
      if (form === "table") for (const line of linesOf(result)) print(line);
    },
    close() {
      const good = results.filter(({ ok }) => ok).length;
      const rows = all.flatMap(({ row }) => results.filter((one) => one.row === row));
      if (form === "json") print(JSON.stringify({ rows }, null, 2));
      else print(`\n${good} of ${results.length} rows are answered as expected`);
      return good === results.length;
    },
  };
}

function linesOf({ row, ok, reason, seconds, budget, how, problems }: RowResult): string[] {
  const time = seconds === null ? "–" : `${seconds.toFixed(1)} s of ${budget} s`;
  return [
    [ok ? "✓" : "✗", row, (reason ?? "–").padEnd(32), time.padEnd(18), how].join("  "),
    ...problems.map((problem) => `     ${problem}`),
  ];
}
