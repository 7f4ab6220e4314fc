// The VM host of an agent in a process of its own, so that a test can run it inside the network of an invented host. Requests and
// replies go over the channel of its parent; it ends with that channel, and its VMs go on.

import type { VmLaunch } from "@holdfast/contracts/node/vm-host";
import { launch, startVmHost, terminate, type VmPlace } from "./vm-host.ts";

export type VmAgentRequest =
  | { does: "launch"; wanted: VmLaunch }
  | { does: "terminate"; vmId: string }
  | { does: "inventory" };

const place = JSON.parse(process.env["VM_PLACE"] ?? "") as VmPlace;
const { host } = await startVmHost(place);

const respond = (request: VmAgentRequest): Promise<unknown> => {
  if (request.does === "launch") return launch(host, request.wanted);
  if (request.does === "terminate") return terminate(host, request.vmId);
  return host.inventory({ expected: null, remove: true });
};

process.on("message", (request: VmAgentRequest) => {
  void respond(request).then(
    (value) => process.send?.({ value }),
    ({ code, message }: { code?: string; message: string }) => process.send?.({ error: { code, message } }),
  );
});
process.on("disconnect", () => process.exit());
process.send?.({ value: "ready" });
