// SSH public keys as people paste them: one per line, blank lines and comments between.

import { SshPublicKey } from "@holdfast/contracts/endpoints/allocations";

const mostKeys = 20;

export type PastedKeys = { keys: string[]; problem?: string };

export function keysFrom(text: string): PastedKeys {
  const keys: string[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    const key = line.trim();
    if (key === "" || key.startsWith("#")) continue;
    const parsed = SshPublicKey.safeParse(key);
    if (!parsed.success) return { keys, problem: `Line ${index + 1} is not a public key: ${advice(key)}` };
    keys.push(parsed.data);
  }
  if (keys.length > mostKeys)
    return { keys, problem: `At most ${mostKeys} keys are allowed; there are ${keys.length}.` };
  return { keys };
}

function advice(line: string): string {
  if (line.startsWith("-----BEGIN"))
    return "this is a private key. Paste the .pub file, and keep this one secret.";
  if (/\bssh-|\becdsa-/.test(line)) return "options before the key are not accepted. Start with the key type.";
  return "it must start with the key type, as in id_ed25519.pub.";
}
