// @ts-check
// From root to a tenant's user, for good. Every step can fail silently in some way, so afterwards it is
// looked at what the kernel says, and tried whether there is a way back.

import { readFileSync } from "node:fs";
import { userInfo } from "node:os";

/** Throws when it is not done completely; the process must then end. @param {{ name: string, uid: number, gid: number }} user */
export function becomeUser({ name, uid, gid }) {
  // initgroups is not in the types of Node.js.
  const { initgroups, setgid, setuid } =
    /** @type {NodeJS.Process & { initgroups?: (user: string, group: number) => void }} */ (process);
  if (!initgroups || !setgid || !setuid) throw new Error("this system has no users");
  // Also refuses to go on without root: nobody else can become somebody.
  initgroups(name, gid);
  setgid(gid);
  setuid(uid);
  // None of the three minds a user that does not exist.
  if (nameOfOwn() !== name) throw new Error(`There is no user ${name} with the uid ${uid} on this node.`);
  const status = readFileSync("/proc/self/status", "utf8");
  const all = (/** @type {string} */ field, /** @type {number} */ id) =>
    new RegExp(`^${field}:\t${id}\t${id}\t${id}\t${id}$`, "m").test(status);
  const powerless = ["CapPrm", "CapEff"].every((set) => new RegExp(`^${set}:\t0+$`, "m").test(status));
  if (!all("Uid", uid) || !all("Gid", gid) || !powerless || !refuses(() => setuid(0)) || !refuses(() => setgid(0)))
    throw new Error(`the process could not give up root's rights for those of ${name}`);
}

function nameOfOwn() {
  try {
    return userInfo().username;
  } catch {
    return undefined;
  }
}

/** @param {() => void} wayBack */
function refuses(wayBack) {
  try {
    wayBack();
    return false;
  } catch {
    return true;
  }
}
