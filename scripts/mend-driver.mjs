// The PostgreSQL driver loses its footing when the server closes a connection at the wrong moment, and its newest
// version still does. Mended here after every install, until a release does it:
//
// - A write that was put off to the next turn is not forgotten with its connection. It then happens on no socket, which
//   ends the process, or the connection that is opened again waits for it and never sends anything.
// - What is asked between a connection's failure and its end is not refused. Its place in the line stays, so that the
//   connection, opened again, gives it the answer to another question, or keeps others waiting for good.
// - A connection that is lost while it asks for the types there are, as each does at first, ends the process.
// - A transaction whose connection was lost goes on in what may be somebody else's transaction by then.
//
// control-plane/test/driver.test.ts shows each of them.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const mends = [
  {
    file: "connection.js",
    was: "    clearImmediate(nextWriteTimer)\n    socket.removeListener('data', data)\n",
    is: "    clearImmediate(nextWriteTimer)\n    chunk = nextWriteTimer = null\n    socket.removeListener('data', data)\n",
  },
  {
    file: "connection.js",
    was: "    if (terminated)\n      return queryError(q, Errors.connection('CONNECTION_DESTROYED', options))\n",
    is: "    if (terminated || socket === null)\n      return queryError(q, Errors.connection('CONNECTION_DESTROYED', options)), true\n",
  },
  {
    file: "connection.js",
    was: "    !hadError && (query || sent.length) && error(Errors.connection('CONNECTION_CLOSED', options, socket))\n",
    is: "    ;(query || sent.length) && error(Errors.connection('CONNECTION_CLOSED', options, socket))\n    query = errorResponse = null\n",
  },
  {
    file: "connection.js",
    was: "        return fetchArrayTypes()\n",
    is: "        return fetchArrayTypes().catch(() => { needsTypes = true })\n",
  },
  {
    file: "index.js",
    was: "        new Promise((_, reject) => connection.onclose = reject)\n",
    is: "        new Promise((_, reject) => connection.onclose = e => reject(lost = e))\n",
  },
  { file: "index.js", was: "      , prepare = null\n", is: "      , prepare = null\n      , lost = null\n" },
  {
    file: "index.js",
    was: "        q.catch(e => uncaughtError || (uncaughtError = e))\n",
    is: "        q.catch(e => uncaughtError || (uncaughtError = e))\n        if (lost) return q.reject(lost)\n",
  },
];

/** @param {string} modules the directory of packages */
export function mendDriver(modules) {
  for (const { file, was, is } of mends) {
    const path = join(modules, "postgres/src", file);
    const text = readFileSync(path, "utf8");
    if (text.includes(is)) continue;
    if (text.split(was).length !== 2) {
      throw new Error(`${path} is not what scripts/mend-driver.mjs was written for: is the mending still needed?`);
    }
    writeFileSync(
      path,
      text.replace(was, () => is),
    );
  }
}
