// Puts the node-facing side of an api process together: CA, standings, listener, profile.

import { randomBytes } from "node:crypto";
import type { Values } from "@holdfast/kit/settings";
import type { Forgery } from "@holdfast/service/forgeries";
import type { Log } from "@holdfast/service/log";
import type { Metrics } from "@holdfast/service/metrics";
import { listenerUrl } from "@holdfast/service/node-identity/names";
import type { NodeServices } from "../api/context.ts";
import { apiSettings } from "../api/settings.ts";
import type { Sql } from "../database/connect.ts";
import { openAuthority, temporaryAuthority } from "../identity/authority.ts";
import { createNodeDirectory } from "../nodes/directory.ts";
import { openRefusals } from "../nodes/refusals.ts";
import { openProfile, type ProfileSource, profileContent } from "../profiles/profile.ts";
import type { Keyring } from "../sealing/keyring.ts";
import { presentNodeUrl } from "../services/gateways.ts";
import { ingressMarkOf } from "../services/open.ts";
import type { Signals } from "../signals/signals.ts";
import type { TaskSigner } from "../tasks/signing.ts";
import { runPeriodically } from "../worker/periodic.ts";
import { createNodeListener, type NodeListener } from "./listener.ts";

export type NodeSide = {
  services: NodeServices;
  listener: NodeListener;
  /** Returns its port. */
  listen(): Promise<number>;
  /** When both listeners are open: what nodes are told about them. */
  publish(publicUrl: string): Promise<void>;
  /** Nodes are told where the gateway is, unless a setting says so. */
  gatewayAnnounced(): Promise<void>;
  stop(): Promise<void>;
};

/** Often, because a certificate made by a clock that was wrong locks every node out until it is replaced. */
const RENEWAL_SECONDS = 60;

export async function openNodeSide(options: {
  settings: Values<typeof apiSettings>;
  system: Sql;
  keyring: Keyring;
  signals: Signals;
  keys: TaskSigner;
  metrics: Metrics;
  log: Log;
  onForged(forgery: Forgery): void;
}): Promise<NodeSide> {
  const { settings, system, keyring, signals, log } = options;
  const now = new Date();
  const authority = await openAuthority(system, keyring, now);
  if (!authority) {
    log.error(
      "there are nodes, but their CA is not in the keyring: nothing is issued. Give back the database and KEK it had before",
    );
  }
  const directory = createNodeDirectory(system, signals, log);
  const refusals = openRefusals(system, log);
  const place = { bind: settings.nodeBind, url: settings.nodeUrl };
  const listener = await createNodeListener({
    place,
    authority: authority ?? (await temporaryAuthority(now)),
    directory,
    ticketKeys: await keyring.getOrCreate("tls-tickets:node-api", () => randomBytes(48)),
    ingressMark: ingressMarkOf(settings),
    onForged: options.onForged,
    onNodeRefused: refusals.saw,
    log,
    metrics: options.metrics,
  });
  const renewal = runPeriodically({
    name: "node-listener-certificate",
    seconds: RENEWAL_SECONDS,
    log,
    work: async () => void (await listener.renewIfDue(new Date())),
  });
  const profile = Promise.withResolvers<ProfileSource>();
  // Whoever asks for it gets the failure; without anybody asking it is the start that fails.
  profile.promise.catch(() => undefined);
  let source: ProfileSource | undefined;
  let apiUrl = listenerUrl(place, settings.nodePort);

  return {
    services: {
      authority,
      directory,
      keys: options.keys,
      async profile(known = 0) {
        const published = await profile.promise;
        if (published.current().version < known) await published.refresh();
        return published.current();
      },
      apiUrl: () => apiUrl,
      staleAfterSeconds: settings.nodeHeartbeatStaleSeconds,
    },
    listener,
    async listen() {
      const port = await listener.listen({ port: settings.nodePort, portSetting: apiSettings.nodePort.env });
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
      source = await openProfile(system, content, log);
      profile.resolve(source);
    },
    async gatewayAnnounced() {
      if (settings.nodeTerminalUrl !== undefined) return;
      const [published, url] = await Promise.all([profile.promise, presentNodeUrl(system)]);
      if (url === undefined || url === published.current().endpoints["node_terminal"]) return;
      await published.terminalsAt(url);
      log.info({ node_terminal: url }, "nodes are told where the terminal gateway is");
    },
    async stop() {
      await Promise.all([listener.stop(), renewal.stop(), directory.stop(), source?.stop()]);
      await refusals.settled();
    },
  };
}
