// The user of the host that a script runs as: one that owns nothing, and another in each run.

/** Users that exist nowhere: one run shares none with another, nor with a service of this host. */
const FIRST_USER = 1_900_000_000;
const USERS = 50_000_000;

/** Root gives up being root. Everybody else has nothing to give up: there is no user but the agent's. */
export function userOfRun(id: string): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const user = FIRST_USER + (Number.parseInt(id.slice(-8), 16) % USERS);
  return { uid: user, gid: user };
}
