// What the actions of the connector github send, and what they make of the responses.

import { type Given, type HttpAnswer, type HttpMessage, httpActions } from "../actions.ts";
import { bearer } from "../authorization.ts";
import { jsonOf } from "../json-answer.ts";
import type contract from "./contract.ts";

const PUBLIC_API = "https://api.github.com";

type Target = { repo: string; baseUrl?: string | undefined };

export default httpActions<typeof contract>({
  "issue.create": {
    message: (input, given) => {
      const { title, body, labels, assignees } = input;
      return post(input, "issues", { title, body, labels, assignees }, given);
    },
    read: (answer) => ({ ...created(answer), number: jsonOf(answer)["number"] as number }),
  },
  "issue.comment": {
    message: (input, given) => post(input, `issues/${input.issue}/comments`, { body: input.body }, given),
    read: created,
  },
  "workflow.dispatch": {
    message: (input, given) =>
      post(
        input,
        `actions/workflows/${input.workflow}/dispatches`,
        { ref: input.ref, inputs: input.inputs },
        given,
      ),
    read: () => ({ dispatched: true as const }),
  },
  "status.create": {
    message: (input, given) => {
      const { state, context = "holdfast", description, targetUrl } = input;
      return post(input, `statuses/${input.sha}`, { state, context, description, target_url: targetUrl }, given);
    },
    read: (answer) => ({ id: jsonOf(answer)["id"] as number, url: String(jsonOf(answer)["url"]) }),
  },
});

function post({ repo, baseUrl = PUBLIC_API }: Target, path: string, body: object, { secret }: Given): HttpMessage {
  return {
    ...{ kind: "http", method: "POST", url: `${baseUrl.replace(/\/+$/, "")}/repos/${repo}/${path}` },
    headers: {
      ...bearer(secret),
      accept: "application/vnd.github+json",
      "content-type": "application/json",
      "x-github-api-version": "2022-11-28",
    },
    body: JSON.stringify(body),
  };
}

function created(answer: HttpAnswer) {
  const { id, html_url } = jsonOf(answer);
  return { id: id as number, url: String(html_url) };
}
