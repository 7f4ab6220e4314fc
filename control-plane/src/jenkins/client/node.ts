// A node on a controller, as Holdfast makes it: one executor, for builds with its labels only, with an agent that connects by
// itself over WebSocket. Its description carries the mark by which it is recognised; nothing without it is ever changed.

const PREFIX = "holdfast-";

export const nodeNameOf = (leaseId: string) => `${PREFIX}${leaseId}`;

export const markOf = (controllerId: string, leaseId: string) => `[holdfast/${controllerId}/${leaseId}]`;

/** Of a node that was made for this controller's entry, and still has the name that it was made with. */
export function leaseOfNode(
  { name, description }: { name: string; description: string },
  controllerId: string,
): string | undefined {
  const [, controller, leaseId] = /\[holdfast\/([0-9a-f-]{36})\/([0-9a-f-]{36})\]$/.exec(description) ?? [];
  if (controller !== controllerId || leaseId === undefined) return undefined;
  return name === nodeNameOf(leaseId) ? leaseId : undefined;
}

export type NewNode = { name: string; controllerId: string; leaseId: string; labels: readonly string[] };

/** Where the agent keeps its workspace in the VM. */
export const REMOTE_DIRECTORY = "/var/lib/jenkins-agent";

/** The form that the controller's own page for a new node sends. */
export function nodeForm({ name, controllerId, leaseId, labels }: NewNode): Record<string, string> {
  const type = "hudson.slaves.DumbSlave";
  const json = {
    name,
    nodeDescription: `VM of lease ${leaseId} ${markOf(controllerId, leaseId)}`,
    numExecutors: "1",
    remoteFS: REMOTE_DIRECTORY,
    labelString: labels.join(" "),
    mode: "EXCLUSIVE",
    type,
    retentionStrategy: classed("hudson.slaves.RetentionStrategy$Always"),
    nodeProperties: { "stapler-class-bag": "true" },
    launcher: {
      ...classed("hudson.slaves.JNLPLauncher"),
      webSocket: true,
      workDirSettings: {
        disabled: false,
        workDirPath: "",
        internalDir: "remoting",
        failIfWorkDirIsMissing: false,
      },
    },
  };
  return { name, type, json: JSON.stringify(json) };
}

const classed = (name: string) => ({ "stapler-class": name, $class: name });
