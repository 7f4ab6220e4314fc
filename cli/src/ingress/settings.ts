// Settings of `holdfast ingress`, which runs beside the ingress proxy.

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
    help: "Name of the ingress in its certificate and in the audit.",
  }),
  directory: setting(kinds.path, {
    env: "HOLDFAST_INGRESS_DIR",
    default: "/etc/holdfast/ingress",
    help: "Directory to which listener.pem, ingress.pem (key and certificate chain each) and trust.pem are written for the proxy.",
  }),
  pidFile: optional(kinds.path, {
    env: "HOLDFAST_INGRESS_PID_FILE",
    help: "The pid file of nginx, which is reloaded (SIGHUP) after each renewal. If unset, nginx is not reloaded.",
  }),
  logLevel: logLevelSetting("HOLDFAST_INGRESS_LOG_LEVEL"),
};
