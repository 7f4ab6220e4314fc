// Settings of `holdfast ingress`, which runs beside the proxy in front.

import { gatewaySettings } from "@holdfast/gateway/settings";
import { kinds, optional, setting } from "@holdfast/kit/settings";
import { ingressTokenSetting, logLevelSetting } from "@holdfast/service/settings";

const name = {
  allowed: "lower-case letters, digits and dashes, 63 at most",
  parse: (text: string) => (/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(text) ? text : undefined),
};

export const ingressSettings = {
  apiUrl: gatewaySettings.apiUrl,
  token: ingressTokenSetting,
  name: setting(name, {
    env: "HOLDFAST_INGRESS_NAME",
    default: "ingress",
    help: "What the ingress is called, in its certificate and in the audit.",
  }),
  directory: setting(kinds.path, {
    env: "HOLDFAST_INGRESS_DIR",
    default: "/etc/holdfast/ingress",
    help: "Where listener.pem, ingress.pem (key and certificates each) and trust.pem are written for the proxy.",
  }),
  pidFile: optional(kinds.path, {
    env: "HOLDFAST_INGRESS_PID_FILE",
    help: "The pid file of nginx, which is told to read its certificates again after each renewal. Left out: nobody is told.",
  }),
  logLevel: logLevelSetting("HOLDFAST_INGRESS_LOG_LEVEL"),
};
