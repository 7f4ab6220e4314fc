// The stand-in follows Atlassian's documentation of REST API version 2, with the credentials of Cloud and of Data Center.

import { describe, expect, it } from "vitest";
import { type Got, parsed, type Reply, standIn } from "../server.ts";
import { connectorSuite, run, SECRET, type Service, statusSuite } from "../suite.ts";

const site = "https://example.atlassian.net";
const basic = `Basic ${Buffer.from(`bot@example.com:${SECRET}`).toString("base64")}`;

function jira({ method, path, headers, body }: Got): Reply {
  if (headers.authorization !== basic && headers.authorization !== `Bearer ${SECRET}`)
    return { status: 401, body: "Basic" };
  const sent = parsed(body) as { fields?: Record<string, unknown>; body?: string; transition?: { id?: string } };
  const bad = (field: string) => ({
    status: 400,
    body: { errorMessages: [], errors: { [field]: `${field} is required` } },
  });
  if (method !== "POST") return { status: 405 };
  switch (path) {
    case "/rest/api/2/issue": {
      const { project, issuetype, summary } = (sent.fields ?? {}) as Record<
        string,
        { key?: string; name?: string }
      >;
      if (project?.key !== "OPS") return bad("project");
      if (issuetype?.name !== "Task") return bad("issuetype");
      if (!summary) return bad("summary");
      return { status: 201, body: { id: "10000", key: "OPS-24", self: `${site}/rest/api/2/issue/10000` } };
    }
    case "/rest/api/2/issue/OPS-24/comment":
      return sent.body
        ? { status: 201, body: { id: "20000", self: `${site}/rest/api/2/issue/10000/comment/20000` } }
        : bad("comment");
    case "/rest/api/2/issue/OPS-24/transitions":
      return sent.transition?.id === "31" ? { status: 204 } : bad("transition");
    default:
      return {
        status: 404,
        body: { errorMessages: ["Issue does not exist or you do not have permission to see it."], errors: {} },
      };
  }
}

async function open(): Promise<Service> {
  const server = await standIn(jira);
  return {
    arrived: () => server.got.length,
    transcript: () => JSON.stringify(server.got),
    ...{ input: { baseUrl: server.url }, secret: SECRET, next: server.next },
  };
}

const user = "bot@example.com";
const created = { user, project: "OPS", type: "Task", summary: "Disk full", description: "On east-1." };
connectorSuite("jira", open, {
  "issue.create": {
    input: created,
    output: { id: "10000", key: "OPS-24", url: `${site}/rest/api/2/issue/10000` },
    lineField: "summary",
  },
  "issue.comment": {
    input: { user, issue: "OPS-24", body: "Done.\nReally." },
    output: { id: "20000", url: `${site}/rest/api/2/issue/10000/comment/20000` },
    lineField: "issue",
  },
  // Of Data Center: a personal access token, and no user.
  "issue.transition": {
    input: { issue: "OPS-24", transition: "31" },
    output: { moved: true },
    lineField: "transition",
  },
});
statusSuite("jira", open, { action: "issue.create", input: created });

describe("the connector jira", () => {
  it("FLOW-01 says what Jira says about a refusal", async () => {
    const service = await open();
    const input = { ...created, project: "SHOP", ...service.input };
    const outcome = await run({ connector: "jira", action: "issue.create", secret: SECRET, input });
    expect(outcome).toMatchObject({
      failure: { code: "request_refused", message: expect.stringContaining("project is required") },
    });
  });
});
