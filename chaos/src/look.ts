// What an operator sees of the node at one moment: its connection and attention items on the page, and what
// `holdfast agent diagnose` explains on the host.

import { codeOf } from "@holdfast/contracts/client";
import { getNode, type NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import type { Look } from "./evidence.ts";
import { causeText } from "./expectations.ts";
import { isHostAs, isPageAs } from "./judge.ts";
import type { Lab } from "./lab/lab.ts";
import { PATIENCE_SECONDS, until } from "./until.ts";

export type LookOptions = {
  /** A reason on the host that is left out. */
  ignored: string | undefined;
  /** Learns everything that the page says. */
  onAttention: (attention: NodeDetail["attention"]) => void;
};

/**
 * Waits until page and host are both as wanted. Nobody goes to the host before the page is: a command there costs more than
 * all else. Returns the last look when the wanted one never came, so that it can be judged.
 */
export async function lookUntil(lab: Lab, wanted: Look, { ignored, onAttention }: LookOptions): Promise<Look> {
  const look = async () => {
    const page = await lookAtPage(lab, onAttention);
    if (!isPageAs(page, wanted)) return undefined;
    const host = await lookAtHost(lab, ignored);
    return isHostAs(host, wanted) && { ...page, host };
  };
  return until("the wanted look", PATIENCE_SECONDS, look).catch(async () => ({
    ...(await lookAtPage(lab, onAttention)),
    host: await lookAtHost(lab, ignored),
  }));
}

async function lookAtHost(lab: Lab, ignored: string | undefined): Promise<string[]> {
  const { findings, last_problem } = await lab.node.diagnose();
  const reasons = [...findings, ...(last_problem ? [last_problem] : [])].map(({ reason }) => reason as string);
  return [...new Set(reasons)].filter((reason) => reason !== ignored);
}

async function lookAtPage(lab: Lab, onAttention: LookOptions["onAttention"]): Promise<Omit<Look, "host">> {
  try {
    const { attention, connection } = await lab.control.operator(getNode, { params: { node_id: lab.node.id } });
    const causes = attention.map(({ reason, signal, severity, owner_id }) =>
      causeText({ reason, signal, severity, owner: owner_id }),
    );
    onAttention(attention);
    return { connection, attention: attention.map(({ code }) => code), causes };
  } catch (error) {
    return { connection: codeOf(error) ?? "unreachable", attention: [], causes: [] };
  }
}
