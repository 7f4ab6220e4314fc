// Faults of a node's identity.

import { createPublicKey } from "node:crypto";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { explainNode } from "@holdfast/contracts/endpoints/drift";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { resolveClone } from "@holdfast/contracts/endpoints/nodes";
import { temporaryAuthority } from "@holdfast/control-plane/identity/authority";
import { newPrivateKey, privateKeyPem } from "@holdfast/kit/certificate-request";
import { holdfast } from "../lab/command.ts";
import type { Lab } from "../lab/lab.ts";
import { type RunningProgram, start } from "../lab/program.ts";
import type { Fault } from "./fault.ts";
import { agentRestarted } from "./host.ts";

export function enrolledAgain(lab: Lab): Fault {
  return {
    what: "the node has a new certificate, and the old one ends",
    async inject() {
      const body = { node_id: lab.node.id };
      const { token, api_url } = await lab.control.operator(createEnrollmentToken, { body });
      await lab.node.holdfast(["join", "--api", api_url], { HOLDFAST_ENROLLMENT_TOKEN: token });
    },
    repair: async () => undefined,
  };
}

/** As a host that was restored from a backup. It is repaired as the product says: with a token made for the node. */
export function oldCertificate(lab: Lab): Fault {
  const { node } = lab;
  const file = join(node.stateDir, "identity.pem");
  const again = enrolledAgain(lab);
  return {
    what: "the agent has a certificate that the server has replaced",
    async inject() {
      const old = readFileSync(file);
      await node.stopAgent();
      await again.inject();
      writeFileSync(file, old);
      node.startAgent();
    },
    repair: again.inject,
  };
}

/**
 * A disk image is used for two hosts: the agent's state on the second one is a copy of the first one's. It is repaired as the
 * product says: an operator keeps the first one, which gets a new key.
 */
export function cloned(lab: Lab): Fault {
  const { node, second } = lab;
  if (!second) throw new Error("this lab has no second node");
  const state = join(lab.directory, "cloned-state");
  let clone: RunningProgram | undefined;
  return {
    what: "a second host runs an agent with the identity of the first",
    async inject() {
      // On the host itself: its state may be on a file system that only the host sees.
      await node.host.run("cp", "-a", node.stateDir, state);
      for (const name of readdirSync(state)) if (/lock|[.]sock$/.test(name)) rmSync(join(state, name));
      clone = start({
        host: second.host,
        name: "clone",
        command: [process.execPath, holdfast, "agent", "run"],
        env: { HOLDFAST_AGENT_STATE_DIR: state, HOLDFAST_AGENT_PORT: "9001" },
        logFile: join(lab.directory, "agent-clone.log"),
      });
    },
    async repair() {
      await clone?.stop("SIGKILL");
      rmSync(state, { recursive: true, force: true });
      const params = { node_id: node.id };
      const { clone: seen } = await lab.control.operator(explainNode, { params });
      const keep = seen?.recommended ?? seen?.instances[0]?.holder;
      if (keep === undefined) return;
      const { token, api_url } = await lab.control.operator(resolveClone, { params, body: { keep } });
      await node.holdfast(["join", "--api", api_url], { HOLDFAST_ENROLLMENT_TOKEN: token });
      await atDesk(lab, "node", "reactivate", node.name);
    },
  };
}

/**
 * The database is restored from a backup that leaves out its keys, as rules about backups demand: the server starts, and
 * cannot sign as before. It is repaired with these tables of a complete backup: all else that happened since stays.
 */
export function signingCaLost({ backups, control, directory }: Lab): Fault {
  const complete = join(directory, "complete.dump");
  const without = join(directory, "without-keys.dump");
  return {
    what: "the server is restarted with a database that was restored without its keys",
    async inject() {
      await control.whileStopped(async () => {
        await backups().dump(complete);
        await backups().dump(without, ...keys.map((table) => `--exclude-table-data=*.${table}`));
        await backups().restore(without);
      });
    },
    repair: () => control.whileStopped(() => backups().restoreTables(complete, keys)),
  };
}

const keys = ["sealed_keys", "task_signing_keys", "task_key_sets"];

/** As after a rendering of its configuration with the files of another installation. */
export function otherClientCa({ nginx }: Lab): Fault {
  if (!nginx) throw new Error("this lab has no nginx");
  const { certificates } = temporaryAuthority(new Date());
  return {
    what: "the ingress trusts another CA than the one that signs certificates of nodes",
    inject: () => nginx.trustsClientsOf(certificates.join("")),
    repair: () => nginx.trustsClientsOf(undefined),
  };
}

/**
 * As on a host with the identity of another installation's node of the same id. Only the terminal gateway gets it: the api
 * would reject it, too, and there would be no terminal to open.
 */
export function otherCaForTerminals(lab: Lab): Fault {
  const { node } = lab;
  const key = newPrivateKey();
  const publicKey = createPublicKey(key).export({ type: "spki", format: "der" });
  const now = new Date();
  const { chain } = temporaryAuthority(now).issueToNode({ id: node.id, publicKey }, now);
  const file = otherIdentity(lab);
  return {
    what: "the node presents to the terminal gateway a certificate of a CA that is not the installation's",
    async inject() {
      writeFileSync(file, `${privateKeyPem(key)}${chain}`, { mode: 0o600 });
      const preloads = [node.environment["NODE_OPTIONS"] ?? "", `--import=${otherCertificate}`];
      await agentRestarted(node, { NODE_OPTIONS: preloads.join(" ").trim(), LAB_TERMINAL_IDENTITY: file });
    },
    repair: () => agentRestarted(node),
  };
}

/** Where its certificate and its key are. */
export const otherIdentity = ({ directory }: Lab) => join(directory, "other-identity.pem");
const otherCertificate = new URL("./other-certificate.mjs", import.meta.url).href;

export const fenced = (lab: Lab): Fault => ({
  what: "an operator quarantines the node",
  inject: () => atDesk(lab, "node", "fence", lab.node.name),
  repair: () => atDesk(lab, "node", "reactivate", lab.node.name),
});

async function atDesk(lab: Lab, ...words: string[]): Promise<void> {
  const { code, stderr } = await lab.control.holdfast(...words, "--json");
  if (code !== 0) throw new Error(`holdfast ${words.join(" ")}: ${stderr}`);
}
