// The key-encryption key that everything secret in the database is sealed under. Only the api gets it.

import { kinds, optional, setting } from "@holdfast/kit/settings";

export const sealingSettings = {
  kek: optional(kinds.key256, {
    env: "HOLDFAST_KEK_BASE64",
    aliases: ["SECRETS_KEK_BASE64"],
    secret: true,
    help: "The key-encryption key that seals all other keys and secrets. `holdfast up` creates one; replicas must share it.",
  }),
  kekId: setting(kinds.text, {
    env: "HOLDFAST_KEK_ID",
    aliases: ["SECRETS_KEK_ID"],
    default: "local-1",
    help: "Name of the key-encryption key. For a new key use a new name, set the old one as the previous key, and run `holdfast secret rewrap`.",
  }),
  previousKek: optional(kinds.key256, {
    env: "HOLDFAST_PREVIOUS_KEK_BASE64",
    secret: true,
    help: "A second key-encryption key, which the api can open and does not seal with: the one before, until `holdfast secret rewrap` has rewrapped everything; or the next one, while replicas are being restarted.",
  }),
  previousKekId: optional(kinds.text, {
    env: "HOLDFAST_PREVIOUS_KEK_ID",
    help: "Name of HOLDFAST_PREVIOUS_KEK_BASE64.",
  }),
};
