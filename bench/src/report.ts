// From measured passes to figures with a verdict, as JSON and as a table. A missed target is a
// measurement like any other: it is shown, and fails nothing.

import type { Bench, Contest, FigureSpec, Measured } from "./bench.ts";
import type { Pass } from "./contest.ts";
import type { Machine } from "./machine.ts";

export type Figure = {
  name: string;
  unit: string;
  /** Medians over the passes. */
  ours: number;
  peer: string;
  /** Null when the peer could not be had on this machine; `peer` says why. */
  theirs: number | null;
  /** Ours ÷ theirs. */
  ratio: number | null;
  /** The least that the work could take, measured in the same run, and ours ÷ that; only of figures that have a floor. */
  floor?: number;
  over_floor?: number;
  floor_is?: string;
  better: "lower" | "higher";
  /** Such as `ratio >= 0.6`; null where nothing is asked. */
  target: string | null;
  /** False only when there is a target and it was not reached, be it for want of a peer. */
  ok: boolean;
};

export type Report = { bench: string; machine: Machine; passes: number; figures: Figure[] };

export function makeReport(options: {
  bench: Bench;
  machine: Machine;
  passes: Pass[];
  absent?: Contest["absent"];
}): Report {
  const { bench, machine, passes, absent = {} } = options;
  return {
    bench: bench.name,
    machine,
    passes: passes.length,
    figures: bench.figures.map((spec) => figureOf(spec, passes, absent[spec.peer])),
  };
}

function figureOf(spec: FigureSpec, passes: Pass[], absence: string | undefined): Figure {
  const { name, unit, peer, better, target } = spec;
  const medianOf = (side: keyof Pass) => median(passes.map((pass) => valueIn(pass[side] ?? {}, name)));
  const ours = medianOf("ours");
  const theirs = absence === undefined ? medianOf("theirs") : null;
  const floor = spec.floor === undefined ? null : medianOf(spec.floor === peer ? "theirs" : "floor");
  const values = {
    ours: rounded(ours),
    theirs: theirs === null ? null : rounded(theirs),
    ratio: theirs === null ? null : rounded(ours / theirs),
    over_floor: floor === null ? null : rounded(ours / floor),
  };
  return {
    name,
    unit,
    ours: values.ours,
    peer: absence === undefined ? peer : `${peer} (not measured: ${absence})`,
    theirs: values.theirs,
    ratio: values.ratio,
    ...(floor === null
      ? {}
      : { floor: rounded(floor), over_floor: rounded(ours / floor), floor_is: spec.floor ?? "" }),
    better,
    target: target ? `${target.of} ${better === "higher" ? ">=" : "<="} ${target.value}` : null,
    // Judged as printed: nobody should read "0.6" beside "missed 0.6".
    ok: target === undefined || reaches(values[target.of], better, target.value),
  };
}

function reaches(value: number | null, better: FigureSpec["better"], target: number): boolean {
  if (value === null) return false;
  return better === "higher" ? value >= target : value <= target;
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

function verdictOn({ target, ok, theirs }: Figure): string {
  if (target === null) return "";
  if (ok) return "met";
  return target.startsWith("ratio") && theirs === null ? "not measured" : "MISSED";
}

export function tableOf(report: Report): string[] {
  const { machine } = report;
  const floors = new Set(report.figures.flatMap((figure) => figure.floor_is ?? []));
  const hasFloors = floors.size > 0;
  const header = [
    "figure",
    "ours",
    "theirs",
    "ratio",
    ...(hasFloors ? ["floor", "÷ floor"] : []),
    "better",
    "target",
    "",
  ];
  const rows = report.figures.map((figure) => {
    const inUnit = (value: number | null | undefined) => (value == null ? "-" : `${value} ${figure.unit}`);
    return [
      figure.name,
      inUnit(figure.ours),
      inUnit(figure.theirs),
      String(figure.ratio ?? "-"),
      ...(hasFloors ? [inUnit(figure.floor), String(figure.over_floor ?? "-")] : []),
      figure.better,
      figure.target?.replace("over_floor", "÷ floor") ?? "-",
      verdictOn(figure),
    ];
  });
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
    ...[...floors].map((floor) => `floor: ${floor}`),
    "",
    line(header),
    ...rows.map(line),
  ];
}
