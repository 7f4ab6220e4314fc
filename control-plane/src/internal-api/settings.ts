// Settings of the api's internal listener, which the other processes of an installation use.

import { kinds, optional, setting } from "@holdfast/kit/settings";
import { bindAddress, ingressTokenSetting, serviceTokenSetting } from "@holdfast/service/settings";
import { httpsUrl } from "../profiles/settings.ts";

export const internalApiSettings = {
  internalPort: setting(kinds.port, {
    env: "HOLDFAST_API_INTERNAL_PORT",
    default: 3004,
    help: "Port of the api's internal listener for gateways, with mutual TLS.",
  }),
  internalBind: setting(bindAddress, {
    env: "HOLDFAST_API_INTERNAL_BIND",
    default: "127.0.0.1",
    help: "Address the internal listener listens on. For a gateway on another machine, set one that it can reach.",
  }),
  internalUrl: optional(httpsUrl, {
    env: "HOLDFAST_API_INTERNAL_URL",
    help: "On the api: the URL that gateways use, if its host is not one of the api's other names.",
  }),
  serviceToken: serviceTokenSetting,
  ingressToken: ingressTokenSetting,
};
