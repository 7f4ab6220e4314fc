// The last thing `holdfast up` prints: where to go, how to get in, how to stop. One screen corner.

import type { Style } from "./terminal.ts";

export type SummaryFacts = {
  startedIn: string;
  pageUrl: string;
  gatewayUrl: string;
  /** The link, or a hint how to get one; undefined when an administrator exists. */
  signIn: string | undefined;
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
    ...(facts.signIn ? [row("Sign in", facts.signIn)] : []),
    row("Gateway", facts.gatewayUrl),
    row("Data", facts.dataDirectory),
    row("Logs", facts.logs),
    ...(facts.sshLine ? [row("From afar", facts.sshLine)] : []),
    row("Stop", "Ctrl-C here, or `holdfast down`"),
    "",
  ];
}
