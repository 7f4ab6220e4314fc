// Who repairs what. The ids are those of the failure matrix. The older, coarser owner words of the public API are
// groups of these ids by this table; an entry whose word was another one before there were ids keeps it (`ownerWord`).

/** Groups of what can be wrong with a node. */
export const nodeOwners = ["nobody", "node", "network", "platform"] as const;
export type NodeOwner = (typeof nodeOwners)[number];

/** Groups of what can be wrong with a terminal. */
export type TerminalOwner = "tenant" | "operator" | "network" | "node" | "control plane";

type Owner = { title: string; ofNode: Exclude<NodeOwner, "nobody">; ofTerminal: TerminalOwner };

export const owners = {
  node_runtime: { title: "Host and agent service", ofNode: "node", ofTerminal: "node" },
  provider_network: { title: "Provider network", ofNode: "network", ofTerminal: "network" },
  environment_networking: { title: "Environment network", ofNode: "network", ofTerminal: "network" },
  pki: { title: "Certificates and trust", ofNode: "platform", ofTerminal: "control plane" },
  node_enrollment: { title: "Node enrollment and identity", ofNode: "platform", ofTerminal: "node" },
  control_plane: { title: "Control plane", ofNode: "platform", ofTerminal: "control plane" },
  api: { title: "API service", ofNode: "platform", ofTerminal: "control plane" },
  observability: { title: "Logs and metrics", ofNode: "platform", ofTerminal: "operator" },
  release_packaging: { title: "Agent releases", ofNode: "node", ofTerminal: "node" },
  ops_access: { title: "Operator access to hosts", ofNode: "platform", ofTerminal: "operator" },
  provider_vm_runtime: { title: "Provider VM runtime", ofNode: "node", ofTerminal: "node" },
  edge: { title: "Edge and proxy", ofNode: "platform", ofTerminal: "operator" },
  terminal_gateway: { title: "Terminal gateway", ofNode: "platform", ofTerminal: "operator" },
  web: { title: "Web interface", ofNode: "platform", ofTerminal: "control plane" },
  endpoint_profile: { title: "Environment profile", ofNode: "platform", ofTerminal: "operator" },
  app_runtime: { title: "App runtime", ofNode: "node", ofTerminal: "tenant" },
  credential_broker: { title: "Credential broker", ofNode: "platform", ofTerminal: "operator" },
  security: { title: "Security", ofNode: "platform", ofTerminal: "operator" },
  authorization: { title: "Sign-in, roles and limits", ofNode: "platform", ofTerminal: "tenant" },
} as const satisfies Record<string, Owner>;
export type OwnerId = keyof typeof owners;
export const ownerIds = Object.keys(owners) as [OwnerId, ...OwnerId[]];

export function nodeOwnerOf(id: OwnerId | null): NodeOwner {
  return id === null ? "nobody" : owners[id].ofNode;
}

/** What nobody has to repair is for the person at the terminal to continue with. */
export function terminalOwnerOf(id: OwnerId | null): TerminalOwner {
  return id === null ? "tenant" : owners[id].ofTerminal;
}

/** `place`: where it is repaired. `person`: by whom, as a host's own diagnosis names them. */
export const nodeOwnerWords: Record<NodeOwner, { place: string | null; person: string }> = {
  nobody: { place: null, person: "nobody" },
  node: { place: "On the machine", person: "the operator of this host" },
  network: { place: "On the network", person: "the operator of the network between this host and the server" },
  platform: { place: "On the server", person: "the operator of the server" },
};

export const terminalOwnerWords: Record<TerminalOwner, string> = {
  tenant: "you, or an administrator of your organization",
  operator: "the operator of this installation",
  network: "the operator of the network between node and gateway",
  node: "the operator of the node",
  "control plane": "the operator of this installation",
};
