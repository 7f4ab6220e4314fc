// Passwords: argon2id with the parameters OWASP recommends (19 MiB, 2 passes). Two at a time: each
// takes a core, and the thread pool also serves files and name lookups.

import { type Algorithm, hash, verify } from "@node-rs/argon2";

// `Algorithm` is a const enum, which type stripping cannot inline.
const ARGON2ID = 2 as Algorithm.Argon2id;
const parameters = { algorithm: ARGON2ID, memoryCost: 19_456, timeCost: 2, parallelism: 1 };
const AT_ONCE = 2;

let running = 0;
const waiting: (() => void)[] = [];

export async function hashPassword(password: string): Promise<string> {
  return inTurn(() => hash(password, parameters));
}

/** Without a hash (an unknown account) it takes as long and returns false, so the time discloses nothing. */
export async function verifyPassword(password: string, storedHash: string | undefined): Promise<boolean> {
  const against = storedHash ?? (await decoy());
  const right = await inTurn(() => verify(against, password));
  return right && storedHash !== undefined;
}

let decoyHash: Promise<string> | undefined;
function decoy(): Promise<string> {
  decoyHash ??= hashPassword("nobody has this password");
  return decoyHash;
}

async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (running >= AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
  else running += 1;
  try {
    return await work();
  } finally {
    const next = waiting.shift();
    if (next) next();
    else running -= 1;
  }
}
