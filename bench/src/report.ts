// From measured passes to figures with a verdict, as JSON and as a table. A missed target is a
// measurement like any other: it is shown, and fails nothing.

import type { Bench, FigureSpec, Measured } from "./bench.ts";
import type { Pass } from "./contest.ts";
import type { Machine } from "./machine.ts";

export type Figure = {
  name: string;
  unit: string;
  /** Medians over the passes. */
  ours: number;
  peer: string;
  theirs: number;
  /** Ours ÷ theirs. */
  ratio: number;
  better: "lower" | "higher";
  /** Such as `ratio >= 0.6`; null where nothing is asked. */
  target: string | null;
  /** False only when there is a target and it was missed. */
  ok: boolean;
};

export type Report = { bench: string; machine: Machine; passes: number; figures: Figure[] };

export function makeReport(options: { bench: Bench; machine: Machine; passes: Pass[] }): Report {
  const { bench, machine, passes } = options;
  return {
    bench: bench.name,
    machine,
    passes: passes.length,
    figures: bench.figures.map((spec) => figureOf(spec, passes)),
  };
}

function figureOf(spec: FigureSpec, passes: Pass[]): Figure {
  const { name, unit, peer, better, target } = spec;
  const ours = median(passes.map((pass) => valueIn(pass.ours, name)));
  const theirs = median(passes.map((pass) => valueIn(pass.theirs, name)));
  const values = { ours: rounded(ours), theirs: rounded(theirs), ratio: rounded(ours / theirs) };
  // Judged as printed: nobody should read "0.6" beside "missed 0.6".
  const reached =
    target && (better === "higher" ? values[target.of] >= target.value : values[target.of] <= target.value);
  return {
    name,
    unit,
    ours: values.ours,
    peer,
    theirs: values.theirs,
    ratio: values.ratio,
    better,
    target: target ? `${target.of} ${better === "higher" ? ">=" : "<="} ${target.value}` : null,
    ok: reached ?? true,
  };
}

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const [below, above] = [sorted[Math.ceil(sorted.length / 2) - 1], sorted[Math.floor(sorted.length / 2)]];
  if (below === undefined || above === undefined) throw new Error("there is no median of nothing");
  return (below + above) / 2;
}

function valueIn(measured: Measured, name: string): number {
  const value = measured[name];
  if (value === undefined || !Number.isFinite(value)) throw new Error(`${name} was not measured`);
  return value;
}

function rounded(value: number): number {
  return Number(value.toPrecision(4));
}

export function tableOf(report: Report): string[] {
  const { machine } = report;
  const header = ["figure", "ours", "theirs", "ratio", "better", "target", ""];
  const rows = report.figures.map((figure) => [
    figure.name,
    `${figure.ours} ${figure.unit}`,
    `${figure.theirs} ${figure.unit}`,
    String(figure.ratio),
    figure.better,
    figure.target ?? "-",
    figure.target === null ? "" : figure.ok ? "met" : "MISSED",
  ]);
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: string[]) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  const peers = new Set(report.figures.map((figure) => figure.peer));
  return [
    `${report.bench}: medians of ${report.passes} passes`,
    `${machine.cpu}, ${machine.cores} cores, ${machine.memory_gb} GB, Linux ${machine.kernel}, Node.js ${machine.node}`,
    ...[...peers].map((peer) => `theirs: ${peer}`),
    "",
    line(header),
    ...rows.map(line),
  ];
}
