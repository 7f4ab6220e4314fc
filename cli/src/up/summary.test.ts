import { expect, it } from "vitest";
import { type SummaryFacts, summaryLines } from "./summary.ts";

const plain = (text: string) => text;
const style = { bold: plain, dim: plain, accent: plain };
const facts: SummaryFacts = {
  ...{
    startedIn: "2.4 s",
    pageUrl: "http://127.0.0.1:3000",
    gatewayUrl: "http://127.0.0.1:3001",
    node: undefined,
  },
  ...{ signIn: undefined, command: "holdfast", dataDirectory: "/data", logs: "/data/logs", sshLine: undefined },
};
const signInRows = (signIn: SummaryFacts["signIn"]) => {
  const without = summaryLines(facts, style);
  return summaryLines({ ...facts, signIn }, style)
    .filter((line) => !without.includes(line))
    .map((line) => line.trim());
};

it("OPS-01 prints the link, or how to get one and why it is not here", () => {
  const hint = "holdfast admin link prints a one-time link";
  expect(signInRows({ link: "http://127.0.0.1:3000/link#abc" }).at(-1)).toBe("http://127.0.0.1:3000/link#abc");
  expect(signInRows({ hint })).toEqual([`Sign in   ${hint}`]);
  expect(signInRows({ hint, problem: "The server did not answer." })).toEqual([
    `Sign in   ${hint}`,
    "No link could be created now: The server did not answer.",
  ]);
});
