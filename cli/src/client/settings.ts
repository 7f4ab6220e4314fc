// Settings of the commands that talk to a server.

import { kinds, optional } from "@holdfast/kit/settings";

export const clientSettings = {
  apiUrl: optional(kinds.httpUrl, {
    env: "HOLDFAST_API_URL",
    help: "The server that commands talk to, instead of the one signed in to or the one on this machine.",
  }),
  token: optional(kinds.text, {
    env: "HOLDFAST_TOKEN",
    secret: true,
    help: "API token for HOLDFAST_API_URL, or without that for the server on this machine.",
  }),
  org: optional(kinds.text, {
    env: "HOLDFAST_ORG",
    help: "Organization that commands act in, by slug or id; the option --org wins over it.",
  }),
};
