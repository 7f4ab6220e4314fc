// What a run of the matrix shows: a line for each row when it ends, and on request one JSON object at the end.

import type { KeyRow } from "./answer-key.ts";
import type { PairResult } from "./pairs.ts";
import type { RowResult } from "./row.ts";

export type MatrixReport = {
  ended(result: RowResult): void;
  pairEnded(result: PairResult): void;
  /** Whether every row that ran was answered as expected. */
  close(): boolean;
};

export function openMatrixReport(all: readonly KeyRow[], form: "table" | "json"): MatrixReport {
  const results: RowResult[] = [];
  const pairs: PairResult[] = [];
  const print = (text: string) => void process.stdout.write(`${text}\n`);
  // Rows take minutes: who waits for the JSON object sees them on the error output.
  const show = (line: string) => void (form === "table" ? process.stdout : process.stderr).write(`${line}\n`);
  return {
    ended(result) {
      results.push(result);
      for (const line of linesOf(result)) show(line);
    },
    pairEnded(result) {
      pairs.push(result);
      for (const line of linesOfPair(result)) show(line);
    },
    close() {
      const everything = [...results, ...pairs];
      const good = everything.filter(({ ok }) => ok).length;
      const rows = all.flatMap(({ row }) => results.filter((one) => one.row === row));
      if (form === "json") print(JSON.stringify(pairs.length > 0 ? { rows, pairs } : { rows }, null, 2));
      else print(`\n${good} of ${everything.length} are answered as expected`);
      return good === everything.length;
    },
  };
}

function linesOfPair({ rows, ok, causes, seconds, problems }: PairResult): string[] {
  const time = seconds === null ? "–" : `${seconds.toFixed(1)} s`;
  const line = [ok ? "✓" : "✗", rows.join(" + "), time.padEnd(8), causes.join(", ")].join("  ");
  return [line, ...problems.map((problem) => `     ${problem}`)];
}

function linesOf({ row, ok, reason, seconds, budget, how, problems }: RowResult): string[] {
  const time = seconds === null ? "–" : `${seconds.toFixed(1)} s of ${budget} s`;
  return [
    [ok ? "✓" : "✗", row, (reason ?? "–").padEnd(32), time.padEnd(18), how].join("  "),
    ...problems.map((problem) => `     ${problem}`),
  ];
}
