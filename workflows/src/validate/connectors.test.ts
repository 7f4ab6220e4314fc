import { describe, expect, it } from "vitest";
import { readWorkflow } from "../document/read.ts";

const problemsOf = (node: string) => {
  const read = readWorkflow(
    `version: "1"\nnodes:\n  step:\n    type: connector.action\n${node.replace(/^/gm, "    ")}\n`,
  );
  return read.ok
    ? []
    : read.problems.map(({ code, line, column, message }) => ({ at: `${line}:${column}`, code, message }));
};

const github = "connector: github\naction: issue.create\nsecret: gh\n";

describe("a step with a connector", () => {
  it("FLOW-01 is valid with what its action accepts", () => {
    expect(problemsOf(`${github}input: { repo: acme/shop, title: Disk full }`)).toEqual([]);
    expect(problemsOf("connector: echo\naction: echo")).toEqual([]);
    expect(problemsOf("connector: echo\naction: echo\ninput: [1, { a: b }]")).toEqual([]);
  });

  it("FLOW-01 names an unknown connector and an unknown action, with their places", () => {
    expect(problemsOf("connector: githb\naction: x")).toEqual([
      {
        at: "5:16",
        code: "unknown_connector",
        message: expect.stringContaining("It has echo, email, github, http, jira, slack."),
      },
    ]);
    expect(problemsOf("connector: github\naction: issue.open\nsecret: gh")).toEqual([
      { at: "6:13", code: "unknown_action", message: expect.stringContaining("issue.create, issue.comment") },
    ]);
    expect(problemsOf("connector: toString\naction: x")).toMatchObject([{ code: "unknown_connector" }]);
    expect(problemsOf("connector: github\naction: constructor\nsecret: gh")).toMatchObject([
      { code: "unknown_action" },
    ]);
  });

  it("FLOW-01 leaves connectors of agents to them, and checks those that it knows", () => {
    const onAgent = "\nexecution: { mode: node }";
    expect(problemsOf(`connector: sap\naction: x${onAgent}`)).toEqual([]);
    expect(problemsOf(`connector: github\naction: x${onAgent}`)).toMatchObject([{ code: "unknown_action" }]);
  });

  it("FLOW-01 names fields that are wrong, missing or unknown, with their places", () => {
    expect(problemsOf(`${github}input:\n  repo: acme\n  titel: x`)).toEqual([
      { at: "8:5", code: "connector_input", message: "github issue.create needs the field title." },
      { at: "9:13", code: "connector_input", message: "repo: owner/name." },
      { at: "10:14", code: "connector_input", message: "github issue.create has no field titel." },
    ]);
    expect(
      problemsOf("connector: http\naction: get\ninput: { url: 'https://a.example', auth: { scheme: basic } }"),
    ).toMatchObject([{ code: "connector_input", message: "http get needs the field auth.user." }]);
  });

  it("FLOW-01 checks expressions when the step runs, and everything beside them now", () => {
    expect(problemsOf(`${github}input: "\${{ input }}"`)).toEqual([]);
    expect(
      problemsOf(
        `${github}input: { repo: "\${{ input.repo }}", title: "a \${{ input.t }}", labels: "\${{ input.l }}" }`,
      ),
    ).toEqual([]);
    expect(problemsOf(`${github}input: { repo: "\${{ input.repo }}", title: 7 }`)).toMatchObject([
      { code: "connector_input" },
    ]);
    expect(
      problemsOf(
        'connector: http\naction: request\ninput: { method: "${{ input.m }}", url: "https://a.example" }',
      ),
    ).toEqual([]);
  });

  it("FLOW-01 says that its secret is missing", () => {
    expect(problemsOf("connector: slack\naction: message.post\ninput: { channel: C1, text: x }")).toMatchObject([
      { code: "secret_missing", message: expect.stringContaining("xoxb-") },
    ]);
  });
});
