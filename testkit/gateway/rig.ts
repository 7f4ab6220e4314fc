// A stand-in api, a real gateway on it and one enrolled node, for a whole test file. Started before its first test.

import { beforeAll } from "vitest";
import { type StandInApi, startStandInApi } from "./api.ts";
import {
  certificateFor,
  type NodeCertificate,
  type OpenTerminal,
  openTerminal,
  startTestGateway,
  type TestGateway,
} from "./gateway.ts";

type Granted = Parameters<StandInApi["grant"]>[0];

export type Rig = {
  api: StandInApi;
  gateway: TestGateway;
  node: NodeCertificate;
  /** A terminal of the node that is ready, with both its peers. */
  open(granted?: Granted): Promise<OpenTerminal>;
  /** A token for a client that attaches to a shell of the node. */
  attachTo(sessionId: string, more?: Granted): ReturnType<StandInApi["grant"]>;
};

/** Its fields may be read from the first test on. */
export function useRig(): Rig {
  const rig = {
    open: (granted) => openTerminal(rig, granted),
    attachTo: (sessionId, more) =>
      rig.api.grant({ session_id: sessionId, node_id: rig.node.id, purpose: "attach", ...more }),
  } as Rig;
  beforeAll(async () => {
    rig.api = await startStandInApi();
    rig.gateway = await startTestGateway(rig.api);
    rig.node = await certificateFor(rig.api.authority);
  });
  return rig;
}
