// Finds out whose shell it is to be; the agent's terminals do the rest, at the same time.

import { userInfo } from "node:os";
import { executor, type Host, type ShellUser, type TaskFailed } from "../executor.ts";
import { findAccount, ToolRefused } from "../os-users/accounts.ts";
import { RecordsUnusable, readRecord } from "../os-users/records.ts";
import { ToolMissing } from "../os-users/tools.ts";
import type contract from "./contract.ts";

type Wanted = { username: string; allocation_id: string };
type Refuse = (message: string) => TaskFailed;

export default executor<typeof contract>({
  async run({ taskId, params, progress, signal, host, fail }) {
    progress("opening");
    const refuse: Refuse = (message) => fail("terminal_pty_failed", message);
    return host.terminals.open({
      taskId,
      sessionId: params.session_id,
      correlationId: params.correlation_id,
      size: { cols: params.cols, rows: params.rows },
      at: async () => ({ user: await userOf(params, host, refuse) }),
      withinMs: params.within_seconds * 1000,
      detachedMs: params.detached_seconds * 1000,
      signal,
    });
  },
  /** Shells outlive the agent, so the terminal may be open although the agent ended before it could report that. */
  recover: ({ taskId, signal, host }) => host.terminals.recover(taskId, signal),
});

async function userOf(wanted: Wanted, host: Host, refuse: Refuse): Promise<ShellUser> {
  try {
    return host.capabilities.includes("os_users")
      ? await allocatedUser(wanted, host.stateDir, refuse)
      : ownAccount(wanted, host, refuse);
  } catch (error) {
    const known = error instanceof RecordsUnusable || error instanceof ToolRefused || error instanceof ToolMissing;
    throw known ? refuse(error.message) : error;
  }
}

/** Looked up anew: a user may have been removed, or made again by somebody else, since the allocation began. */
async function allocatedUser(
  { username, allocation_id }: Wanted,
  stateDir: string,
  refuse: Refuse,
): Promise<ShellUser> {
  const record = readRecord(stateDir, username);
  if (record?.allocation_id !== allocation_id)
    throw refuse(`The user ${username} on this node was not made for this allocation.`);
  if (record.state !== "made") throw refuse(`The user ${username} is being made or removed.`);
  const account = await findAccount(username);
  if (!account) throw refuse(`There is no user ${username} on this node.`);
  if (account.uid !== record.uid)
    throw refuse(`The user ${username} of this node has uid ${account.uid}; the allocation's had ${record.uid}.`);
  return account;
}

function ownAccount({ username }: Wanted, { account }: Host, refuse: Refuse): ShellUser {
  if (username !== account)
    throw refuse(`The agent runs without root and can offer only its own account, ${account}.`);
  const { uid, gid, homedir, shell } = userInfo();
  return { name: account, uid, gid, home: homedir, shell: shell ?? "" };
}
