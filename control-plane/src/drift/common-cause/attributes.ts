// What distinguishes nodes with one cause from others, and where it is read. A further one has a line in the
// contract's list and one here: in what a heartbeat brings, or in the columns of a node.

import type { NodeAttribute } from "@holdfast/contracts/endpoints/incidents";
import type { Heartbeat } from "@holdfast/contracts/node/protocol";
import { ConstantSql } from "../../database/connect.ts";
import { subnetOf } from "../../fleet/node.ts";

/** Those that are known. */
export type Attributes = Readonly<Partial<Record<NodeAttribute, string>>>;

/** Stored beside the heartbeat: reading those of the whole fleet does not parse its heartbeats. */
export function reportedAttributes(
  { facts, profile, setup }: Pick<Heartbeat, "facts" | "profile" | "setup">,
  ingress: string | null,
): Attributes {
  const subnet = subnetOf({ facts, setup });
  return {
    ingress: ingress ?? DIRECT,
    profile: `${profile.name} version ${profile.version}`,
    agent_version: facts.agent_version,
    ...(subnet === null ? {} : { subnet }),
  };
}

/** No ingress can have this name. */
export const DIRECT = "direct connection";

/** Of a node `n` and its newest certificate `c`. */
const columns = {
  ca: "c.issuer",
  provider: "n.provider",
  network_side: "n.network_side",
} as const satisfies Partial<Record<NodeAttribute, string>>;
type Column = keyof typeof columns;
const columnNames = Object.keys(columns) as Column[];

export const attributeColumns = new ConstantSql(
  columnNames.map((name) => `${columns[name]} AS ${name}`).join(", "),
);

export type AttributeRow = { reported: Attributes } & Record<Column, string | null>;

export function attributesOf(row: AttributeRow): Attributes {
  const own = columnNames.flatMap((name): [Column, string][] => (row[name] === null ? [] : [[name, row[name]]]));
  return { ...row.reported, ...Object.fromEntries(own) };
}
