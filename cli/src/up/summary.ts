// The last thing `holdfast up` prints: where to go, how to get in, how to stop. One screen corner.

import type { Style } from "./terminal.ts";

export type SummaryFacts = {
  startedIn: string;
  pageUrl: string;
  gatewayUrl: string;
  /** Whether this machine is a node, and which. */
  node: string | undefined;
  /** The link, or how to get one; undefined when an administrator exists. */
  signIn: { link: string } | { hint: string } | undefined;
  /** What a person types here to run the command: it is not on everybody's PATH. */
  command: string;
  dataDirectory: string;
  logs: string;
  /** Only when this looks like a machine without a browser. */
  sshLine: string | undefined;
};

export function summaryLines(facts: SummaryFacts, style: Style): string[] {
  const row = (label: string, value: string) => `  ${style.dim(label.padEnd(9))} ${value}`;
  return [
    "",
    `  ${style.bold("Holdfast is up")} ${style.dim(`after ${facts.startedIn}`)}`,
    "",
    row("Page", style.accent(facts.pageUrl)),
    ...signInRows(facts.signIn, row, style),
    row("Gateway", facts.gatewayUrl),
    ...(facts.node ? [row("Node", facts.node)] : []),
    row("Data", facts.dataDirectory),
    row("Logs", facts.logs),
    row("Stop", `Ctrl-C here, or ${facts.command} down`),
    ...(facts.sshLine ? ["", `  To see the page on your own computer, run there:`, `  ${facts.sshLine}`] : []),
    "",
  ];
}

/** The link stands on a line of its own, so that no terminal breaks it apart. */
function signInRows(
  signIn: SummaryFacts["signIn"],
  row: (label: string, value: string) => string,
  style: Style,
): string[] {
  if (signIn === undefined) return [];
  if ("hint" in signIn) return [row("Sign in", signIn.hint)];
  return [
    row("Sign in", style.dim("as first administrator, once, within 15 minutes:")),
    `  ${style.accent(signIn.link)}`,
  ];
}
