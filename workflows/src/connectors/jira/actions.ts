// What the actions of the connector jira send, and what they make of the responses.

import { type Given, type HttpMessage, httpActions } from "../actions.ts";
import { basic, bearer } from "../authorization.ts";
import { jsonOf } from "../json-answer.ts";
import type contract from "./contract.ts";

type Site = { baseUrl: string; user?: string | undefined };

export default httpActions<typeof contract>({
  "issue.create": {
    message: (input, given) => {
      const { project, type, summary, description, labels, fields } = input;
      const own = { project: { key: project }, issuetype: { name: type }, summary, description, labels };
      return post(input, "issue", { fields: { ...fields, ...own } }, given);
    },
    read: (answer) => {
      const { id, key, self } = jsonOf(answer);
      return { id: id as string, key: key as string, url: String(self) };
    },
  },
  "issue.comment": {
    message: (input, given) => post(input, `issue/${input.issue}/comment`, { body: input.body }, given),
    read: (answer) => ({ id: jsonOf(answer)["id"] as string, url: String(jsonOf(answer)["self"]) }),
  },
  "issue.transition": {
    message: (input, given) =>
      post(input, `issue/${input.issue}/transitions`, { transition: { id: input.transition } }, given),
    read: () => ({ moved: true as const }),
  },
});

function post({ baseUrl, user }: Site, path: string, body: object, { secret }: Given): HttpMessage {
  return {
    ...{ kind: "http", method: "POST", url: `${baseUrl.replace(/\/+$/, "")}/rest/api/2/${path}` },
    headers: {
      ...(user === undefined ? bearer(secret) : basic(user, secret ?? "")),
      ...{ accept: "application/json", "content-type": "application/json" },
    },
    body: JSON.stringify(body),
  };
}
