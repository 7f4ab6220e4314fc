// A preflight for people: each hop as it is checked, then the verdict with its owner and the repair.

import { checkOf, type PreflightHop, preflightHops } from "@holdfast/contracts/preflight/checks";
import type { PreflightHopReport, PreflightReport } from "@holdfast/contracts/preflight/report";
import { owners } from "@holdfast/contracts/reasons/owners";
import { preflightVantageTitles, preflightWhyTitles } from "@holdfast/contracts/words/preflight";
import { harmless } from "../../output.ts";

const marks = { passed: "ok", failed: "FAILED", not_run: "not run" } as const;
const nameWidth = Math.max(...preflightHops.map((hop) => hop.length));

/** To stderr: only the result goes to stdout. Nothing for scripts. */
export function showProgress({ quiet }: { quiet: boolean }) {
  if (quiet) return {};
  const isTerminal = process.stderr.isTTY === true;
  const write = (line: string) => process.stderr.write(harmless(line));
  return {
    onStart: (hop: PreflightHop) => {
      if (isTerminal) write(`${hop.padEnd(nameWidth)}  …  ${checkOf(hop).proves}`);
    },
    onHop: (report: PreflightHopReport) => {
      process.stderr.write(isTerminal ? "\r\u001b[K" : "");
      process.stderr.write(`${harmless(hopLine(report))}\n`);
    },
  };
}

function hopLine({ hop, status, detail, ms }: PreflightHopReport): string {
  const took = status === "not_run" ? "" : `${Math.round(ms)} ms`;
  return `${hop.padEnd(nameWidth)}  ${marks[status].padEnd(7)}  ${took.padStart(8)}  ${detail}`.trimEnd();
}

export function describeReport(report: PreflightReport): string {
  const { hops, classification, failed_hop, symptom_hop, browser_proof, compared_with, disk } = report;
  const rows = hops.map((one) => {
    const why = one.why ? preflightWhyTitles[one.why] : "";
    const from = one.checked_from ? preflightVantageTitles[one.checked_from] : why;
    const code = one.failure ? `${one.failure.signal}: ${one.detail}` : one.detail;
    return `${one.hop.padEnd(nameWidth)}  ${marks[one.status].padEnd(7)}  ${from.padEnd(14)}  ${code}`.trimEnd();
  });
  return [
    `${"HOP".padEnd(nameWidth)}  ${"RESULT ".padEnd(7)}  ${"CHECKED FROM".padEnd(14)}  DETAIL`,
    ...rows,
    "",
    verdict(report),
    ...(symptom_hop ? [`  first seen at ${symptom_hop}, explained by ${failed_hop}`] : []),
    ...(classification
      ? [
          `  signal   ${classification.signal}`,
          `  owner    ${classification.owner ? `${owners[classification.owner].title} (${classification.owner})` : "nobody"}`,
          `  next     ${classification.recovery}`,
          ...(classification.runbook ? [`  runbook  ${classification.runbook}`] : []),
        ]
      : []),
    ...(browser_proof ? [`  browser  ${browser_proof}`] : []),
    ...(compared_with
      ? [
          `  compared ${compared_with.environment}: terminal listener ${marks[compared_with.node_terminal_reachability]}`,
        ]
      : []),
    ...(disk?.used_percent === null || disk === null ? [] : [`  disk     ${disk.used_percent} % of / used`]),
    `  id       ${report.correlation_id}`,
  ].join("\n");
}

function verdict({ result, failed_hop, classification, allocation_id }: PreflightReport): string {
  if (result === "ready") return allocation_id ? "Ready: the terminal works." : "Ready: the node works.";
  if (result === "incomplete") return "Not proved: nothing failed, but not every hop could be checked.";
  return `Failed at ${failed_hop}: ${classification?.title} (${classification?.code}).`;
}
