// Rows about the way between a node and the server. A node that is cut off cannot report why: an operator reads it from the
// host and hands it in.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { edgePresents, edgeRestartsWith } from "../../faults/edge.ts";
import {
  addressChanged,
  addressOfAnotherProfile,
  agentKilled,
  agentStopped,
  clockOff,
  diskFull,
  movableClock,
} from "../../faults/host.ts";
import { egressDropped } from "../../faults/network.ts";
import type { Lab } from "../../lab/lab.ts";
import { API_NAME } from "../../lab/network.ts";
import type { Row } from "../row.ts";

function selfSigned({ directory }: Lab): string {
  const [key, cert] = [join(directory, "proxy.key"), join(directory, "proxy.crt")];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"];
  const names = ["-subj", "/CN=proxy", "-addext", `subjectAltName=DNS:${API_NAME}`];
  execFileSync("openssl", ["req", "-x509", ...kind, ...names, "-keyout", key, "-out", cert], { stdio: "ignore" });
  return `${readFileSync(key, "utf8")}${readFileSync(cert, "utf8")}`;
}

const page = (text: string) => `<html><h1>${text}</h1></html>`;

export const linkRows: Row[] = [
  {
    row: "D01",
    how: "the agent is stopped for a moment and started again",
    at: "lab",
    returns: true,
    run: (scene) => scene.breaks(agentStopped(scene.lab.node)),
  },
  {
    row: "N01",
    how: "the agent is killed -9, and nobody looks at the host",
    at: "lab",
    returns: true,
    run: (scene) => scene.breaks(agentKilled(scene.lab.node)),
  },
  {
    row: "D04",
    how: "the ingress is up and has no server behind it; the host's records are handed in",
    at: "lab",
    lab: { edge: true },
    returns: true,
    async run(scene) {
      const rule = { path: "", do: "answer", status: 502, page: page("Bad Gateway") } as const;
      await scene.breaks(edgeRestartsWith(scene.lab, "the ingress returns 502", rule));
      await scene.handsInRecords("control_plane_unreachable");
    },
  },
  {
    row: "D11",
    how: "the edge returns 429 to every request; the host's records are handed in",
    at: "lab",
    lab: { edge: true },
    returns: true,
    async run(scene) {
      const rule = { path: "", do: "answer", status: 429, page: page("Too many requests") } as const;
      await scene.breaks(edgeRestartsWith(scene.lab, "the edge returns 429", rule));
      await scene.handsInRecords("edge_rate_limited");
    },
  },
  {
    row: "N02",
    how: "a firewall drops what the node sends to the server; the host's records are handed in",
    at: "lab",
    returns: true,
    async run(scene) {
      await scene.breaks(egressDropped(scene.lab));
      await scene.handsInRecords("api_unreachable");
    },
  },
  {
    row: "N03",
    how: "a proxy presents a certificate of another CA; the host's records are handed in",
    at: "lab",
    lab: { edge: true },
    returns: true,
    async run(scene) {
      await scene.breaks(edgePresents(scene.lab, selfSigned(scene.lab)));
      await scene.handsInRecords("server_tls_untrusted");
    },
  },
  {
    row: "D10",
    how: "the node is offline for a reason that the server cannot see; an operator reads it on the host",
    at: "lab",
    lab: { edge: true },
    returns: true,
    async run(scene) {
      await scene.breaks(edgePresents(scene.lab, selfSigned(scene.lab)));
      await scene.isSilent();
      await scene.handsInRecords("server_tls_untrusted");
    },
  },
  {
    row: "D07",
    how: "the agent is restarted with the address of another environment; the host's records are handed in",
    at: "lab",
    returns: true,
    async run(scene) {
      await scene.breaks(addressOfAnotherProfile(scene.lab.node));
      await scene.handsInRecords("endpoint_profile_drift");
    },
  },
  {
    row: "D15",
    how: "the host gets another address",
    at: "lab",
    run: (scene) => scene.breaks(addressChanged(scene.lab.node)),
  },
  {
    row: "D26",
    how: "the host's clock is ten minutes ahead",
    at: "lab",
    lab: { agentEnv: movableClock },
    returns: true,
    run: (scene) => scene.breaks(clockOff(scene.lab.directory, "+600")),
  },
  {
    row: "N08",
    how: "the file system of the agent's state is filled up",
    at: "lab",
    lab: { stateMegabytes: 24 },
    returns: true,
    run: (scene) => scene.breaks(diskFull(scene.lab.node)),
  },
];
