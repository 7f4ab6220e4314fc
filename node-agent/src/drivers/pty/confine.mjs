// @ts-check
// What only root can do for a shell, before its holder becomes the user: puts it into the user's control groups and
// mounts the user's own directories over the host's.

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";

/** @typedef {{ directories: { source: string, target: string }[], cgroups: string[] }} Confinement */
/** What was done. @typedef {{ private_directories: boolean, control_group: boolean }} Confined */

/**
 * @param {Confinement | undefined} confinement
 * @param {{ ownMounts: boolean }} holder Without mounts of its own it would hide the host's directories from everybody.
 * @returns {Confined}
 */
export function confine({ directories, cgroups } = { directories: [], cgroups: [] }, { ownMounts }) {
  return {
    control_group: cgroups.length > 0 && cgroups.every((directory) => done(() => enter(directory))),
    private_directories: ownMounts && directories.length > 0 && directories.every((one) => done(() => mount(one))),
  };
}

/** @param {string} cgroup */
function enter(cgroup) {
  writeFileSync(`${cgroup}/cgroup.procs`, String(process.pid));
}

/** @param {{ source: string, target: string }} directory */
function mount({ source, target }) {
  const options = { env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" }, stdio: /** @type {const} */ ("ignore") };
  execFileSync("mount", ["--bind", source, target], options);
}

/** @param {() => void} step */
function done(step) {
  try {
    step();
    return true;
  } catch {
    return false;
  }
}
