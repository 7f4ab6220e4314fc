// Every phase looks at what is there and may be repeated: a crash anywhere is repaired by running it again, and a failure
// or a cancellation undoes what was begun, unless the user was complete before.

import { userInfo } from "node:os";
import { executor, type Host, type TaskFailed } from "../executor.ts";
import { addAccount, addGroup, findAccount, findGroup } from "../os-users/accounts.ts";
import { withHostFailures } from "../os-users/failures.ts";
import { homeOf, makeHome, ownerOfHome, writeAuthorizedKeys } from "../os-users/home.ts";
import { owningUids } from "../os-users/leftovers.ts";
import { removePrivateDirectories } from "../os-users/private-directories.ts";
import { readRecord, recordIntention, type UserRecord } from "../os-users/records.ts";
import { removeParts, removeUser } from "../os-users/remove.ts";
import { isReserved } from "../os-users/reserved-names.ts";
import { userPhase, userPhaseStore } from "../os-users/user-phases.ts";
import { type Phase, runPhases } from "../phases/phases.ts";
import type contract from "./contract.ts";

type Fail = (code: keyof typeof contract.failures, message?: string) => TaskFailed;
type Wanted = {
  name: string;
  allocationId: string;
  keys: readonly string[];
  stateDir: string;
  signal: AbortSignal;
};
type Step = (phase: string) => void;

export default executor<typeof contract>({
  async run({ params, progress, signal, host, fail }) {
    if (!host.capabilities.includes("os_users")) return offerOwnAccount(params, host, fail);
    const step = (phase: string) => {
      signal.throwIfAborted();
      progress(phase);
    };
    const { username: name, allocation_id: allocationId, ssh_keys: keys } = params;
    return withHostFailures(fail, () =>
      provision({ name, allocationId, keys, stateDir: host.stateDir, signal }, step, fail),
    );
  },
});

function offerOwnAccount(params: { username: string; ssh_keys: string[] }, host: Host, fail: Fail) {
  if (params.username !== host.account)
    throw fail(
      "own_account_only",
      `The agent on this node runs without root and can offer only its own account, ${host.account}.`,
    );
  if (params.ssh_keys.length > 0) throw fail("keys_not_supported");
  const { uid, gid, homedir, shell } = userInfo();
  return {
    ...{ username: params.username, uid, gid, home: homedir, shell: shell ?? "/bin/sh" },
    ...{ created: false, own_account: true, keys: 0 },
  };
}

async function provision(wanted: Wanted, step: Step, fail: Fail) {
  const { name, stateDir, keys } = wanted;
  step("checking");
  const record = (await findRecord(wanted, step, fail)) ?? (await reserve(wanted, fail));
  const undo = async (recorded: UserRecord) =>
    void (await removeParts({ stateDir, name, record: recorded, enter: () => {}, fail: removalFailed(fail) }));
  await runPhases({
    phases: [userPhase(undo), ...phasesOf(wanted, record.uid, fail)],
    context: undefined,
    store: userPhaseStore(stateDir, name),
    enter: step,
  });
  const account = await findAccount(name);
  if (!account) throw fail("verification_failed");
  const { uid, gid, home, shell } = account;
  const created = record.state !== "made";
  return { username: name, uid, gid, home, shell, created, own_account: false, keys: keys.length };
}

/** The record to go on with; none for a new user. Refuses whatever is not this allocation's. */
async function findRecord(wanted: Wanted, step: Step, fail: Fail): Promise<UserRecord | undefined> {
  const { name, allocationId, stateDir } = wanted;
  const record = readRecord(stateDir, name);
  const account = await findAccount(name);
  if (account && account.uid !== record?.uid)
    throw fail("user_not_ours", `The user ${name} exists on this node with uid ${account.uid}.`);
  const group = await findGroup(name);
  if (group && group.gid !== record?.uid)
    throw fail("user_not_ours", `The group ${name} exists on this node with gid ${group.gid}.`);
  const home = homeOf(name);
  const owner = await ownerOfHome(name);
  if (record && record.allocation_id !== allocationId && (account || owner !== undefined))
    throw fail("user_taken", `The user ${name} on this node belongs to the allocation ${record.allocation_id}.`);
  if ((owner !== undefined && owner !== record?.uid) || (account && account.home !== home))
    throw fail("home_not_ours", `${home} does not belong to the user ${name} that is to be made.`);

  if (record?.allocation_id !== allocationId) return undefined;
  if (record.state !== "removing") {
    const nothingYet = !account && !group && owner === undefined;
    return nothingYet && !(await isFree(record.uid)) ? undefined : record;
  }
  step("finishing_removal");
  await removeUser({ stateDir, name, record, enter: () => {}, fail: removalFailed(fail) });
  return undefined;
}

/** Writes the record of a user that is to be made, with a uid that nobody else gets from then on. */
async function reserve({ name, allocationId, stateDir, signal }: Wanted, fail: Fail): Promise<UserRecord> {
  if (isReserved(name)) throw fail("name_reserved", `No user of an allocation may be called ${name}.`);
  const record = await recordIntention(stateDir, name, allocationId, {
    isTaken: async (uid) => !(await isFree(uid)),
    owning: () => owningUids({ signal }),
  });
  if (!record) throw fail("no_uid_left");
  return record;
}

async function isFree(uid: number): Promise<boolean> {
  return !(await findAccount(String(uid))) && !(await findGroup(String(uid)));
}

/** Each looks at what is there. What they make is undone as a whole, by the record's phase. */
function phasesOf({ name, allocationId, keys }: Wanted, uid: number, fail: Fail): Phase<unknown>[] {
  const home = homeOf(name);
  const owner = { uid, gid: uid };
  return [
    {
      name: "creating_group",
      act: async () => {
        if (!(await findGroup(name))) await addGroup(name, uid);
      },
    },
    {
      name: "creating_account",
      act: async () => {
        const comment = `Holdfast allocation ${allocationId}`;
        if (!(await findAccount(name))) await addAccount({ name, uid, home, comment });
      },
    },
    {
      name: "creating_home",
      act: async () => {
        if ((await ownerOfHome(name)) !== undefined) return;
        // An account that was removed by hand may have left them.
        await removePrivateDirectories(uid);
        await makeHome(name, owner, keys);
      },
    },
    { name: "writing_keys", act: () => writeAuthorizedKeys(name, owner, keys) },
    {
      name: "verifying",
      act: async () => {
        const account = await findAccount(name);
        if (account?.uid !== uid || account.home !== home || (await ownerOfHome(name)) !== uid)
          throw fail("verification_failed");
      },
    },
  ];
}

function removalFailed(fail: Fail) {
  return (_code: string, message: string) => fail("account_tool_failed", message);
}
