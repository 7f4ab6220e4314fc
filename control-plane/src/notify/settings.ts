// Settings of messages that leave the product.

import { integer, kinds, oneOf, optional, type SettingKind, setting } from "@holdfast/kit/settings";

const webhookUrl: SettingKind<string> = {
  allowed: "an http:// or https:// URL without a password",
  parse: (text) => {
    if (!URL.canParse(text)) return undefined;
    const { protocol, username, password } = new URL(text);
    return /^https?:$/.test(protocol) && !username && !password ? text : undefined;
  },
};
const mailAddress: SettingKind<string> = {
  allowed: "a mail address, such as ops@example.com",
  parse: (text) => (/^[^\s@<>,;"]+@[^\s@<>,;"]+$/.test(text) ? text : undefined),
};
const webhookSecret: SettingKind<string> = {
  allowed: "at least 20 characters",
  parse: (text) => (text.length >= 20 ? text : undefined),
};

export const notifySettings = {
  notifyWebhookUrl: optional(webhookUrl, {
    env: "HOLDFAST_NOTIFY_WEBHOOK_URL",
    secret: true,
    help: "Webhook of the installation itself. It gets what the receivers of all organizations get, incidents across organizations, and that the database cannot be reached.",
  }),
  notifyWebhookSecret: optional(webhookSecret, {
    env: "HOLDFAST_NOTIFY_WEBHOOK_SECRET",
    secret: true,
    help: "Signs the messages to HOLDFAST_NOTIFY_WEBHOOK_URL, which needs it.",
  }),
  notifyMailTo: optional(mailAddress, {
    env: "HOLDFAST_NOTIFY_MAIL_TO",
    help: "Mail address of the installation itself. It gets the same as HOLDFAST_NOTIFY_WEBHOOK_URL.",
  }),
  notifyMailFrom: optional(mailAddress, {
    env: "HOLDFAST_NOTIFY_MAIL_FROM",
    help: "Sender of mail. Without it and HOLDFAST_SMTP_HOST no mail is sent.",
  }),
  notifyAllowPrivate: setting(kinds.addressList, {
    env: "HOLDFAST_NOTIFY_ALLOW_PRIVATE",
    default: [],
    defaultText: "none",
    help: "Private, loopback and link-local addresses that webhooks of organizations may have, and that may be reached without TLS.",
  }),
  smtpHost: optional(kinds.text, { env: "HOLDFAST_SMTP_HOST", help: "Mail server that takes outgoing mail." }),
  smtpPort: setting(kinds.port, { env: "HOLDFAST_SMTP_PORT", default: 587, help: "Port of HOLDFAST_SMTP_HOST." }),
  smtpTls: setting(oneOf("starttls", "tls", "none"), {
    env: "HOLDFAST_SMTP_TLS",
    default: "starttls",
    help: "`starttls`: mail is not sent unless the server offers TLS. `tls`: from the first byte, usually on port 465. `none`: without, for a server on this machine.",
  }),
  smtpUser: optional(kinds.text, { env: "HOLDFAST_SMTP_USER", help: "User name at HOLDFAST_SMTP_HOST." }),
  smtpPassword: optional(kinds.text, {
    env: "HOLDFAST_SMTP_PASSWORD",
    secret: true,
    help: "Password of HOLDFAST_SMTP_USER.",
  }),
  deadmanUrl: optional(webhookUrl, {
    env: "HOLDFAST_DEADMAN_URL",
    secret: true,
    help: "Requested at an interval while a canary node completes full round trips: a monitor outside alarms when the requests stop.",
  }),
  deadmanIntervalSeconds: setting(integer({ min: 5, max: 3_600 }), {
    env: "HOLDFAST_DEADMAN_INTERVAL_SECONDS",
    default: 60,
    help: "Interval of round trips through the canary node, each of which is followed by a request to HOLDFAST_DEADMAN_URL if it succeeds.",
  }),
  deadmanNode: optional(kinds.text, {
    env: "HOLDFAST_DEADMAN_NODE",
    help: "The canary node, by id or name. Default: an online node on the api's own machine.",
  }),
};
