// What some tests need of the machine beyond npm's packages. A test that needs something absent is
// listed as not run, with what would change that; under CI it fails instead. Plain JavaScript:
// `npm test` reads it before anything is installed.

import { existsSync } from "node:fs";

export const facilities = {
  root: {
    present: () => process.getuid?.() === 0,
    covers: "accounts of other users, directories they cannot enter",
    remedy: "run the tests as root",
  },
  chromium: {
    present: () => existsSync("/usr/bin/chromium"),
    covers: "the web app in a browser",
    remedy: "apt-get install chromium",
    debianPackage: "chromium",
  },
};

/** For `it.skipIf(lacks("root"))`. Under CI nothing may be skipped: it throws. */
export function lacks(/** @type {keyof typeof facilities} */ name) {
  if (facilities[name].present()) return false;
  if (process.env.CI) throw new Error(`CI must have ${name}: ${facilities[name].remedy}`);
  return true;
}
