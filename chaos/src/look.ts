// What an operator sees of the node at one moment: its connection and attention items on the page, and what
// `holdfast agent diagnose` explains on the host.

import { codeOf } from "@holdfast/contracts/client";
import { getNode, type NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import type { Look } from "./evidence.ts";
import { causeText } from "./expectations.ts";
import type { Lab } from "./lab/lab.ts";
import { PATIENCE_SECONDS, until } from "./until.ts";

export type LookOptions = {
  /** A reason on the host that is left out. */
  ignored: string | undefined;
  /** Learns everything that the page says. */
  onAttention: (attention: NodeDetail["attention"]) => void;
};

/** Returns the last look when the wanted one never came, so that it can be judged. */
export async function lookUntil(
  lab: Lab,
  { ignored, onAttention }: LookOptions,
  wanted: (look: Look) => boolean,
): Promise<Look> {
  let latest = await look(lab, { ignored, onAttention });
  await until("the wanted look", PATIENCE_SECONDS, async () => {
    if (!wanted(latest)) latest = await look(lab, { ignored, onAttention });
    return wanted(latest);
  }).catch(() => undefined);
  return latest;
}

async function look(lab: Lab, { ignored, onAttention }: LookOptions): Promise<Look> {
  const { findings, last_problem } = await lab.node.diagnose();
  const reasons = [...findings, ...(last_problem ? [last_problem] : [])].map(({ reason }) => reason as string);
  const host = [...new Set(reasons)].filter((reason) => reason !== ignored);
  try {
    const { attention, connection } = await lab.control.operator(getNode, { params: { node_id: lab.node.id } });
    const causes = attention.map(({ reason, signal, severity, owner_id }) =>
      causeText({ reason, signal, severity, owner: owner_id }),
    );
    onAttention(attention);
    return { connection, attention: attention.map(({ code }) => code), causes, host };
  } catch (error) {
    return { connection: codeOf(error) ?? "unreachable", attention: [], causes: [], host };
  }
}
