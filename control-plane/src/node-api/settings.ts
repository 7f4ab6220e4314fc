// Settings of the node-facing listener, and of what is published to nodes about the installation.

import { kinds, optional, setting } from "@holdfast/kit/settings";
import { bindAddress } from "@holdfast/service/settings";
import { httpsUrl, namedAddresses, namedUrls } from "../profiles/settings.ts";

export const nodeListenerSettings = {
  nodePort: setting(kinds.port, {
    env: "HOLDFAST_NODE_API_PORT",
    default: 18_442,
    help: "Port that agents connect to, with mutual TLS.",
  }),
  nodeBind: setting(bindAddress, {
    env: "HOLDFAST_NODE_API_BIND",
    default: "127.0.0.1",
    help: "Address the node-facing API listens on. For agents on other machines, set one that they can reach, such as 0.0.0.0.",
  }),
  nodeUrl: optional(httpsUrl, {
    env: "HOLDFAST_NODE_API_URL",
    help: "URL by which agents reach the node-facing API, if it is not the address listened on.",
  }),
  nodeEndpoints: setting(namedUrls, {
    env: "HOLDFAST_NODE_ENDPOINTS",
    default: {},
    defaultText: "none",
    help: "Additional addresses in the environment profile, which nodes may probe by name.",
  }),
  nodeResolve: setting(namedAddresses, {
    env: "HOLDFAST_NODE_RESOLVE",
    default: {},
    defaultText: "none",
    help: "Host names with addresses that nodes use where there is no private DNS.",
  }),
};
