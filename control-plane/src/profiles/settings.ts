// Kinds of settings that the environment profile is made from: addresses by name.

import { isIP } from "node:net";
import { kinds, type SettingKind } from "@holdfast/kit/settings";

export const httpsUrl: SettingKind<string> = {
  allowed: "an https:// address without path, such as https://nodes.example.com:18442",
  parse: (text) => (text.startsWith("https://") ? kinds.httpUrl.parse(text) : undefined),
};

const endpointName = /^[a-z][a-z0-9_]{0,39}$/;
const hostName = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;

export const namedUrls: SettingKind<Record<string, string>> = {
  allowed: "names with addresses, such as registry=https://registry.internal,mirror=http://10.0.0.5:8080",
  parse: (text) =>
    pairs(text, (name, value) => (endpointName.test(name) ? kinds.httpUrl.parse(value) : undefined)),
};

export const namedAddresses: SettingKind<Record<string, string[]>> = {
  allowed: "host names with IP addresses, such as nodes.internal=10.0.0.5+10.0.0.6,registry.internal=10.0.0.7",
  parse: (text) =>
    pairs(text, (name, value) => {
      const addresses = value.split("+");
      return hostName.test(name) && addresses.every((one) => isIP(one) !== 0) ? addresses : undefined;
    }),
};

/** Undefined as soon as one of them is not valid, or stands there twice. */
function pairs<T>(
  text: string,
  read: (name: string, value: string) => T | undefined,
): Record<string, T> | undefined {
  const result: Record<string, T> = {};
  for (const pair of text.split(",")) {
    const at = pair.indexOf("=");
    const name = pair.slice(0, at).trim();
    const value = at < 0 ? undefined : read(name, pair.slice(at + 1).trim());
    if (value === undefined || Object.hasOwn(result, name)) return undefined;
    result[name] = value;
  }
  return result;
}
