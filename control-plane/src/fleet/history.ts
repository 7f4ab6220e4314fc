// The changes of a fleet by version, so that a client that knows a version receives only what changed since. A version is
// valid only in the process that issued it.

import { randomBytes } from "node:crypto";
import type { FleetNode } from "./node.ts";

/** A client whose version is older than this many removals receives the whole fleet again. */
const MOST_GONE = 5_000;

export type FleetChanges = { changed: readonly FleetNode[]; gone: readonly string[] };

export function keepHistory() {
  const processId = randomBytes(6).toString("base64url");
  const changedIn = new Map<string, { node: FleetNode; version: number }>();
  let present: readonly FleetNode[] = [];
  let gone: { name: string; version: number }[] = [];
  let version = 0;
  let knownFrom = 1;
  return {
    version: () => `${processId}.${version}`,
    nodes: () => present,
    /** Returns whether anything has changed. */
    record(nodes: readonly FleetNode[]): boolean {
      const next = version + 1;
      const ids = new Set(nodes.map(({ id }) => id));
      let different = version === 0;
      for (const [id, { node }] of changedIn) {
        if (ids.has(id)) continue;
        changedIn.delete(id);
        gone.push({ name: node.name, version: next });
        different = true;
      }
      for (const node of nodes) {
        const before = changedIn.get(node.id);
        if (before && isSame(before.node, node)) {
          before.node = node;
          continue;
        }
        if (before && before.node.name !== node.name) gone.push({ name: before.node.name, version: next });
        changedIn.set(node.id, { node, version: next });
        different = true;
      }
      if (gone.length > MOST_GONE) {
        knownFrom = gone[gone.length - MOST_GONE]?.version ?? next;
        gone = gone.slice(-MOST_GONE);
      }
      present = nodes;
      if (different) version = next;
      return different;
    },
    since(known: string): FleetChanges | undefined {
      const [from, text] = known.split(".");
      const number = Number(text);
      if (from !== processId || !Number.isInteger(number) || number < knownFrom || number > version)
        return undefined;
      const here = new Set(present.map(({ name }) => name));
      return {
        changed: present.filter(({ id }) => (changedIn.get(id)?.version ?? 0) > number),
        gone: gone.flatMap((one) => (one.version > number && !here.has(one.name) ? one.name : [])),
      };
    },
  };
}

function isSame(a: FleetNode, b: FleetNode): boolean {
  return (
    a.state === b.state &&
    a.name === b.name &&
    a.version === b.version &&
    a.block === b.block &&
    a.causes.length === b.causes.length &&
    a.causes.every((cause, index) => cause.spokenAs === b.causes[index]?.spokenAs) &&
    a.severity === b.severity &&
    a.since === b.since
  );
}
