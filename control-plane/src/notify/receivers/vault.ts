// What is needed to send to a webhook, sealed: the URL, which often contains a secret, and the key that signs.

import { randomBytes } from "node:crypto";
import { openBox, sealBox } from "../../mechanisms/sealing/envelope.ts";
import type { Keyring } from "../../mechanisms/sealing/keyring.ts";

export type Webhook = { url: string; secret: string };
export type ReceiverVault = {
  seal(id: string, webhook: Webhook): Buffer;
  open(id: string, sealed: Buffer): Webhook;
};

export async function createReceiverVault(keyring: Keyring): Promise<ReceiverVault> {
  const key = await keyring.getOrCreate("notification-receivers", () => randomBytes(32));
  const contextOf = (id: string) => `receiver:${id}`;
  return {
    seal: (id, webhook) => sealBox(key, contextOf(id), Buffer.from(JSON.stringify(webhook))),
    open: (id, sealed) => JSON.parse(openBox(key, contextOf(id), sealed).toString()) as Webhook,
  };
}
