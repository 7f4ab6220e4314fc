// Touches only users that are recorded as ours. Where there is nothing to remove, all is as wanted.

import { executor } from "../executor.ts";
import { findAccount } from "../os-users/accounts.ts";
import { withHostFailures } from "../os-users/failures.ts";
import { owningUids } from "../os-users/leftovers.ts";
import { beginRound, cleanUids, readRecord } from "../os-users/records.ts";
import { removeUser } from "../os-users/remove.ts";
import type contract from "./contract.ts";

/** From here on uids that were used before are looked for: a new user should not have to wait for it. */
const FEW_UIDS = 500;

export default executor<typeof contract>({
  async run({ params, progress, signal, host, fail }) {
    const { username, allocation_id } = params;
    const nothing = {
      ...{ username, removed: false, own_account: false, ended_processes: 0 },
      ...{ removed_files: 0, removed_ipc: 0, unseen_places: 0 },
    };
    const enter = (phase: string, done?: { files: number }) => {
      signal.throwIfAborted();
      progress(phase, done);
    };
    return withHostFailures(fail, async () => {
      enter("checking");
      if (!host.capabilities.includes("os_users")) {
        if (username === host.account) return { ...nothing, own_account: true };
        if (!(await findAccount(username))) return nothing;
        throw fail("own_account_only", `The agent runs without root and cannot remove the user ${username}.`);
      }
      const record = readRecord(host.stateDir, username);
      if (!record) {
        if (!(await findAccount(username))) return nothing;
        throw fail("user_not_ours", `The user ${username} of this node was not made by Holdfast.`);
      }
      // This allocation's user is gone already; another one has the name now.
      if (record.allocation_id !== allocation_id) return nothing;
      const { stateDir } = host;
      const { ended, files, ipc, unseen } = await removeUser({
        ...{ stateDir, name: username, record, enter, signal, fail },
      });
      if (cleanUids(stateDir) < FEW_UIDS) {
        enter("searching_for_clean_uids");
        await beginRound(stateDir, () => owningUids({ signal }));
      }
      return {
        ...{ ...nothing, removed: true, ended_processes: ended },
        ...{ removed_files: files, removed_ipc: ipc, unseen_places: unseen },
      };
    });
  },
});
