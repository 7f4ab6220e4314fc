// API tokens of controllers, sealed. The controller is bound to the box as associated data: a token cannot be moved to another one,
// and thereby be sent to another address.

import { randomBytes } from "node:crypto";
import { openBox, sealBox } from "../mechanisms/sealing/envelope.ts";
import type { Keyring } from "../mechanisms/sealing/keyring.ts";

type Owner = { id: string; url: string };

export type TokenVault = {
  seal(controller: Owner, token: string): Buffer;
  open(controller: Owner, sealed: Buffer): string;
};

export async function openTokenVault(keyring: Keyring): Promise<TokenVault> {
  const key = await keyring.getOrCreate("jenkins-tokens", () => randomBytes(32));
  const context = ({ id, url }: Owner) => `jenkins token:${id}:${url}`;
  return {
    seal: (controller, token) => sealBox(key, context(controller), Buffer.from(token)),
    open: (controller, sealed) => openBox(key, context(controller), sealed).toString(),
  };
}
