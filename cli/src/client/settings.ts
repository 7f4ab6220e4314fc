// Settings of the commands that talk to a server.

import { kinds, optional } from "@holdfast/kit/settings";

export const clientSettings = {
  apiUrl: optional(kinds.httpUrl, {
    env: "HOLDFAST_API_URL",
    help: "URL of the server that commands connect to. Default: the server signed in to, else the one on this machine.",
  }),
  token: optional(kinds.text, {
    env: "HOLDFAST_TOKEN",
    secret: true,
    help: "API token for HOLDFAST_API_URL; if that is not set, for the server on this machine.",
  }),
  org: optional(kinds.text, {
    env: "HOLDFAST_ORG",
    help: "Organization that commands act in, by slug or id. The option --org overrides it.",
  }),
};
