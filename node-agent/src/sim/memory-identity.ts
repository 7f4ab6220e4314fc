// The identity of a simulated agent, in force and candidates, as session.ts stores it for an agent with files.

import type { VerifierKeys } from "@holdfast/contracts/node/protocol";
import type { VerifierKeyring } from "@holdfast/kit/detached-jws";
import type { AgentIdentity } from "../core/agent-core.ts";
import { takeOffer } from "../identity/accept-trust.ts";
import { type AgentFile, verifierKeyring } from "../identity/agent-file.ts";
import { withoutPresent } from "../identity/candidates.ts";
import type { Identity } from "../identity/identity-file.ts";
import { withRecovered } from "../identity/recovered.ts";
import type { Candidates, Way } from "../identity/trials.ts";

/** What a join returned. */
export type SimIdentity = { identity: Identity; roots: readonly string[]; agent: AgentFile };

export function createMemoryIdentity(
  { identity, roots, agent: joined }: SimIdentity,
  options: {
    apiUrl: URL;
    /** The same keys for every agent of the process, created once. */
    keyringOf: (verifiers: VerifierKeys) => VerifierKeyring;
    onAdopted: (way: Way) => void;
  },
): AgentIdentity {
  let agent = joined;
  let way: Way = { identity, roots, profile: agent.profile, apiUrl: options.apiUrl.origin };
  let candidates: Candidates = {};
  let keyring = options.keyringOf(agent.verifiers);
  const keep = (next: Candidates) => {
    candidates = withoutPresent(next, way);
  };
  return {
    nodeId: identity.nodeId,
    agent: () => agent,
    verifiers: () => keyring,
    present: () => way,
    candidates: () => candidates,
    offer: (more) => keep({ ...candidates, ...more }),
    adopt(change) {
      way = { ...way, ...change };
      keep(candidates);
      options.onAdopted(way);
    },
    recover(recovered) {
      agent = withRecovered(agent, recovered);
      keyring = options.keyringOf(agent.verifiers);
      way = { ...way, identity: recovered.identity, roots: recovered.trust.bundle.roots, profile: agent.profile };
      candidates = {};
      options.onAdopted(way);
    },
    storeRecovered: () => true,
    learn(offer) {
      const taken = takeOffer({ agent, way, candidates }, offer);
      agent = taken.agent;
      keyring = options.keyringOf(agent.verifiers);
      keep(taken.candidates);
      return taken.refused;
    },
  };
}

/** One for each set of keys, however many agents have it. */
export function sharedKeyrings(): (verifiers: VerifierKeys) => VerifierKeyring {
  const rings = new Map<string, VerifierKeyring>();
  return (verifiers) => {
    const name = verifiers.keys.map(({ kid, x }) => `${kid} ${x}`).join();
    const ring = rings.get(name) ?? verifierKeyring(verifiers);
    rings.set(name, ring);
    return ring;
  };
}
