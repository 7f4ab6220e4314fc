// The stand-in follows GitHub's documentation of the REST API: paths, needed headers, answers of each endpoint.

import { describe, expect, it } from "vitest";
import { type Got, parsed, type Reply, standIn } from "../server.ts";
import { codeOf, connectorSuite, run, SECRET, type Service, statusSuite } from "../suite.ts";

const sha = "0123456789abcdef0123456789abcdef01234567";

function github({ method, path, headers, body }: Got): Reply {
  if (headers.authorization !== `Bearer ${SECRET}`) return { status: 401, body: { message: "Bad credentials" } };
  if (!headers["user-agent"])
    return { status: 403, body: { message: "Request forbidden by administrative rules." } };
  const sent = parsed(body);
  const [, owner, name, ...rest] = path.split("/").slice(1);
  const page = `https://github.example/${owner}/${name}`;
  if (method !== "POST" || `${owner}/${name}` !== "acme/shop")
    return { status: 404, body: { message: "Not Found" } };
  const invalid = { status: 422, body: { message: "Validation Failed", errors: [{ code: "missing_field" }] } };
  switch (rest.join("/").replace(/\d{2,}/, "N")) {
    case "issues":
      return sent["title"]
        ? { status: 201, body: { id: 1001, number: 7, html_url: `${page}/issues/7` } }
        : invalid;
    case "issues/7/comments":
      return sent["body"]
        ? { status: 201, body: { id: 2002, html_url: `${page}/issues/7#issuecomment-2002` } }
        : invalid;
    case "actions/workflows/deploy.yml/dispatches":
      return sent["ref"] ? { status: 204 } : invalid;
    default:
      return rest[0] === "statuses" && rest[1] === sha && sent["state"] && sent["context"] === "ci"
        ? {
            status: 201,
            body: { id: 3003, url: `https://api.github.example/statuses/${sha}`, state: sent["state"] },
          }
        : { status: 404, body: { message: "Not Found" } };
  }
}

async function open(): Promise<Service> {
  const server = await standIn(github);
  return {
    arrived: () => server.got.length,
    transcript: () => JSON.stringify(server.got),
    ...{ input: { baseUrl: server.url }, secret: SECRET, next: server.next },
  };
}

const repo = "acme/shop";
const issue = { input: { repo, title: "Disk full", labels: ["ops"] } };
connectorSuite("github", open, {
  "issue.create": {
    ...issue,
    output: { id: 1001, number: 7, url: "https://github.example/acme/shop/issues/7" },
    lineField: "repo",
  },
  "issue.comment": {
    input: { repo, issue: 7, body: "Done." },
    output: { id: 2002, url: "https://github.example/acme/shop/issues/7#issuecomment-2002" },
    lineField: "repo",
  },
  "workflow.dispatch": {
    input: { repo, workflow: "deploy.yml", ref: "main", inputs: { where: "east" } },
    output: { dispatched: true },
    lineField: "ref",
  },
  "status.create": {
    input: { repo, sha, state: "success", context: "ci" },
    output: { id: 3003, url: `https://api.github.example/statuses/${sha}` },
    lineField: "description",
  },
});
statusSuite("github", open, { action: "issue.create", ...issue });

describe("the connector github", () => {
  it("FLOW-04 waits until the rate limit is reset", async () => {
    const service = await open();
    const reset = Math.floor(Date.now() / 1000) + 600;
    service.next?.({ status: 403, headers: { "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(reset) } });
    const outcome = await run({
      connector: "github",
      action: "issue.create",
      secret: SECRET,
      input: { ...issue.input, ...service.input },
    });
    expect(outcome).toMatchObject({ failure: { code: "rate_limited" }, retryable: true, outcomeKnown: true });
    expect("retryAfterMs" in outcome && (outcome.retryAfterMs ?? 0) > 0).toBe(true);
  });

  it.for(["acme", "acme/shop/../../user", "acme/..", "../shop", "acme/shop?x", "acme/shop#", "acme%2f/x"])(
    "SEC-04 leads to no other path by the repository %s",
    async (other) => {
      const input = { ...issue.input, repo: other };
      expect(codeOf(await run({ connector: "github", action: "issue.create", secret: SECRET, input }))).toBe(
        "input_invalid",
      );
    },
  );
});
