// Certificates for whatever stands in front of the api, got as an operator gets them.

import { join } from "node:path";
import { holdfast } from "./command.ts";
import type { Network } from "./network.ts";
import { start } from "./program.ts";

/** Returns the directory with `listener.pem`, `ingress.pem` and `trust.pem`. */
export async function enrollIngress(options: {
  network: Network;
  directory: string;
  ingressToken: string;
}): Promise<string> {
  const { network, directory } = options;
  const certificates = join(directory, "ingress");
  const enrolling = start({
    host: network.control.host,
    name: "ingress",
    command: [process.execPath, holdfast, "ingress", "--once", "--json"],
    env: {
      HOLDFAST_API_INTERNAL_URL: "https://127.0.0.1:3004",
      HOLDFAST_INGRESS_TOKEN: options.ingressToken,
      HOLDFAST_INGRESS_DIR: certificates,
    },
    logFile: join(directory, "ingress.log"),
  });
  await enrolling.ended;
  return certificates;
}
