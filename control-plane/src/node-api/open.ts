// Puts the node-facing side of an api process together: CA, standings, listener, profile.

import { randomBytes } from "node:crypto";
import type { Values } from "@holdfast/kit/settings";
import type { Forgery } from "@holdfast/service/forgeries";
import type { Log } from "@holdfast/service/log";
import type { Metrics } from "@holdfast/service/metrics";
import { listenerUrl } from "@holdfast/service/node-identity/names";
import type { agentReleaseSettings } from "../agent-release/settings.ts";
import type { NodeServices, NodeUpkeep } from "../api/context.ts";
import type { FailureAudit } from "../audit/failures/failures.ts";
import type { Sql } from "../database/connect.ts";
import { openAuthority, temporaryAuthority } from "../identity/authority.ts";
import { readIngressTrust } from "../identity/ingress-trust/check.ts";
import { createIssuanceGate } from "../identity/issuance-gate.ts";
import { presentNodeUrl } from "../internal-api/gateways.ts";
import { ingressMarkOf } from "../internal-api/ingress.ts";
import type { internalApiSettings } from "../internal-api/settings.ts";
import type { Keyring } from "../mechanisms/sealing/keyring.ts";
import type { Signals } from "../mechanisms/signals.ts";
import { createNodeDirectory } from "../nodes/directory/standings.ts";
import { openRefusals } from "../nodes/identity/refusals.ts";
import type { nodeApiSettings } from "../nodes/settings.ts";
import { openProfile, type ProfileSource, profileContent } from "../profiles/profile.ts";
import type { TaskSigner } from "../tasks/signing.ts";
import type { terminalSettings } from "../terminals/settings.ts";
import { createNodeListener, type NodeListener } from "./listener.ts";
import { nodeListenerSettings } from "./settings.ts";

export type NodeSide = {
  services: NodeServices;
  listener: NodeListener;
  upkeep: NodeUpkeep;
  /** Returns its port. */
  listen(): Promise<number>;
  /** Called when both listeners are open: publishes their addresses to nodes. */
  publish(publicUrl: string): Promise<void>;
  /** Publishes the gateway's address to nodes, unless a setting has it. */
  gatewayAnnounced(): Promise<void>;
  stop(): Promise<void>;
};

type NodeSideSettings = Values<typeof nodeListenerSettings> &
  Pick<
    Values<typeof nodeApiSettings>,
    "nodeHeartbeatStaleSeconds" | "nodeQuarantineClones" | "allowUnknownHosts"
  > &
  Pick<Values<typeof agentReleaseSettings>, "agentRequiredVersion"> &
  Pick<Values<typeof terminalSettings>, "nodeTerminalUrl"> &
  Pick<Values<typeof internalApiSettings>, "ingressToken">;

export async function openNodeSide(options: {
  settings: NodeSideSettings;
  system: Sql;
  keyring: Keyring;
  signals: Signals;
  keys: TaskSigner;
  failures: FailureAudit;
  metrics: Metrics;
  log: Log;
  onForged(forgery: Forgery): void;
}): Promise<NodeSide> {
  const { settings, system, keyring, signals, failures, log } = options;
  const now = new Date();
  const authority = await openAuthority(system, keyring, now);
  if (!authority) {
    log.error(
      "there are nodes, but their CA is not in the keyring: no certificates are issued. Restore the earlier database and KEK",
    );
  }
  if (settings.allowUnknownHosts === "true")
    log.warn(
      "ALLOW_UNKNOWN_HOST_REGISTRATION is on: whoever has the bootstrap token of one host can register others. Use it in development only",
    );
  const directory = createNodeDirectory(system, signals, log);
  const refusals = openRefusals({ system, failures, log });
  const place = { bind: settings.nodeBind, url: settings.nodeUrl };
  const listener = await createNodeListener({
    place,
    authority: authority ?? temporaryAuthority(now),
    directory,
    ticketKeys: await keyring.getOrCreate("tls-tickets:node-api", () => randomBytes(48)),
    ingressMark: ingressMarkOf(settings),
    onForged: options.onForged,
    onNodeRefused: refusals.saw,
    log,
    metrics: options.metrics,
  });
  const profile = Promise.withResolvers<ProfileSource>();
  // Callers that await it get the failure; without one, the start fails.
  profile.promise.catch(() => undefined);
  let source: ProfileSource | undefined;
  let apiUrl = listenerUrl(place, settings.nodePort);

  return {
    services: {
      authority,
      // What other replicas have seen counts from the start.
      gate: createIssuanceGate(await readIngressTrust(system), log),
      directory,
      keys: options.keys,
      async profile(known = 0) {
        const published = await profile.promise;
        if (published.current().version < known) await published.refresh();
        return published.current();
      },
      apiUrl: () => apiUrl,
      get staleAfterSeconds() {
        return settings.nodeHeartbeatStaleSeconds;
      },
      get quarantineClones() {
        return settings.nodeQuarantineClones === "on";
      },
      allowUnknownHosts: settings.allowUnknownHosts === "true",
      requiredAgentVersion: settings.agentRequiredVersion,
    },
    listener,
    upkeep: {
      renewCertificate: listener.renewIfDue,
      refreshProfile: async () => source?.refresh(),
    },
    async listen() {
      const port = await listener.listen({
        port: settings.nodePort,
        portSetting: nodeListenerSettings.nodePort.env,
      });
      apiUrl = listenerUrl(place, port);
      return port;
    },
    async publish(publicUrl) {
      const content = profileContent({
        nodeApiUrl: apiUrl,
        publicUrl,
        terminalUrl: settings.nodeTerminalUrl,
        endpoints: settings.nodeEndpoints,
        resolve: settings.nodeResolve,
        caSha256: authority?.rootSha256 ?? [],
      });
      source = await openProfile(system, content);
      profile.resolve(source);
    },
    async gatewayAnnounced() {
      if (settings.nodeTerminalUrl !== undefined) return;
      const [published, url] = await Promise.all([profile.promise, presentNodeUrl(system)]);
      if (url === undefined || url === published.current().endpoints["node_terminal"]) return;
      await published.terminalsAt(url);
      log.info({ node_terminal: url }, "published the terminal gateway's address to nodes");
    },
    async stop() {
      directory.stop();
      await listener.stop();
      await refusals.settled();
    },
  };
}
