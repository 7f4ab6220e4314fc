// The summary that `holdfast up` prints when it is ready: addresses, sign-in link, how to stop.

import type { Style } from "./terminal.ts";

export type SummaryFacts = {
  startedIn: string;
  pageUrl: string;
  gatewayUrl: string;
  /** Whether this machine is a node, and which. */
  node: string | undefined;
  /** The link, or how to get one and why it is not here; undefined when an administrator exists. */
  signIn: { link: string } | { hint: string; problem?: string } | undefined;
  /** The command to run `holdfast` here: it may not be on the PATH. */
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
    `  ${style.bold("Holdfast is running")} ${style.dim(`(started in ${facts.startedIn})`)}`,
    "",
    row("Web app", style.accent(facts.pageUrl)),
    ...signInRows(facts.signIn, row, style),
    row("Gateway", facts.gatewayUrl),
    ...(facts.node ? [row("Node", facts.node)] : []),
    row("Data", facts.dataDirectory),
    row("Logs", facts.logs),
    row("Stop", `Ctrl-C here, or ${facts.command} down`),
    ...(facts.sshLine
      ? ["", `  To open the page on your own computer, run this there:`, `  ${facts.sshLine}`]
      : []),
    "",
  ];
}

/** The link has its own line, so that no terminal wraps it. */
function signInRows(
  signIn: SummaryFacts["signIn"],
  row: (label: string, value: string) => string,
  style: Style,
): string[] {
  if (signIn === undefined) return [];
  if ("hint" in signIn) {
    const { hint, problem } = signIn;
    return [row("Sign in", hint), ...(problem ? [row("", `No link could be created now: ${problem}`)] : [])];
  }
  return [
    row("Sign in", style.dim("as the first administrator (one-time link, valid for 15 minutes):")),
    `  ${style.accent(signIn.link)}`,
  ];
}
