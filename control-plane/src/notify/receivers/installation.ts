// The receivers of the installation itself, which settings name: they need no database.

import { UsageError, type Values } from "@holdfast/kit/settings";
import { displayOf } from "../send/addresses.ts";
import type { Target } from "../send/sender.ts";
import { notifySettings } from "../settings.ts";

export type InstallationReceiver = { kind: Target["kind"]; address: string; target: Target };

export function installationReceivers(settings: Values<typeof notifySettings>): InstallationReceiver[] {
  const { notifyWebhookUrl: url, notifyWebhookSecret: secret, notifyMailTo: to } = settings;
  if ((url === undefined) !== (secret === undefined)) {
    const { notifyWebhookUrl, notifyWebhookSecret } = notifySettings;
    throw new UsageError(`Set ${notifyWebhookUrl.env} and ${notifyWebhookSecret.env} together.`);
  }
  if (to !== undefined && (settings.smtpHost === undefined || settings.notifyMailFrom === undefined)) {
    const { notifyMailTo, notifyMailFrom, smtpHost } = notifySettings;
    throw new UsageError(`${notifyMailTo.env} needs ${smtpHost.env} and ${notifyMailFrom.env}.`);
  }
  const found: InstallationReceiver[] = [];
  if (url !== undefined && secret !== undefined) {
    const target: Target = { kind: "webhook", url, secret, trusted: true };
    found.push({ kind: "webhook", address: displayOf(new URL(url)), target });
  }
  if (to !== undefined) found.push({ kind: "mail", address: to, target: { kind: "mail", to } });
  return found;
}
