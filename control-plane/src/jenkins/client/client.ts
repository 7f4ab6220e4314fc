// What Holdfast does on a controller. Each call may be repeated: a node that exists is not made twice, one that is gone is gone.

import { z } from "zod";
import type { QueuedItem } from "../builds/decide-claims.ts";
import type { ReportedNode } from "../builds/decide-progress.ts";
import { labelOf } from "../labels/of-item.ts";
import { JenkinsFailure } from "./failure.ts";
import { type ControllerHttp, jsonOf } from "./http.ts";
import { leaseOfNode, type NewNode, nodeForm } from "./node.ts";

export type ControllerNode = NonNullable<ReportedNode> & { name: string; description: string };

export type JenkinsClient = {
  version(): Promise<string>;
  /** Throws unless a crumb can be had, where the controller wants one. */
  checkCrumb(): Promise<void>;
  nodes(): Promise<ControllerNode[]>;
  queue(): Promise<QueuedItem[]>;
  /** What became of an item that left the queue; undefined: the controller no longer knows. */
  leftItem(queueId: number): Promise<{ cancelled: boolean; buildUrl: string | undefined } | undefined>;
  /** `refused`: why the controller does not create it. */
  createNode(node: NewNode): Promise<{ refused?: string }>;
  /** The secret by which the node's agent connects; undefined: there is no such node. */
  agentSecret(name: string): Promise<string | undefined>;
  /** Now, whatever a list said before. */
  hasNode(name: string): Promise<boolean>;
  /** It takes no further builds. The controller only has a toggle, so what it is now is read first. */
  holdOffline(name: string): Promise<void>;
  deleteNode(name: string): Promise<void>;
};

const text = z
  .string()
  .nullish()
  .transform((value) => value ?? "");

const Nodes = z.object({
  computer: z.array(
    z.object({
      displayName: z.string(),
      description: text,
      idle: z.boolean(),
      offline: z.boolean(),
      temporarilyOffline: z.boolean(),
      executors: z
        .array(z.object({ currentExecutable: z.object({ url: text }).nullish() }))
        .nullish()
        .transform((value) => value ?? []),
    }),
  ),
});

const Queue = z.object({
  items: z.array(
    z.object({
      id: z.int(),
      why: text,
      buildable: z.boolean().nullish(),
      inQueueSince: z.number().nullish(),
      assignedLabel: z.object({ name: text }).nullish(),
      task: z.object({ name: text, labelExpression: text }).nullish(),
    }),
  ),
});

const LeftItem = z.object({
  cancelled: z.boolean().nullish(),
  executable: z.object({ url: text }).nullish(),
});

const nodeTree =
  "computer[displayName,description,idle,offline,temporarilyOffline,executors[currentExecutable[url]]]";
const queueTree = "items[id,why,buildable,inQueueSince,assignedLabel[name],task[name,labelExpression]]";

export function jenkinsClient(http: ControllerHttp): JenkinsClient {
  const read = async <T extends z.ZodType>(path: string, form: T): Promise<z.output<T> | undefined> => {
    const response = await http.get(path);
    if (!response) return undefined;
    const parsed = form.safeParse(jsonOf(response));
    if (!parsed.success)
      throw new JenkinsFailure("unexpected", `The answer to ${path.split("?")[0]} has another form.`);
    return parsed.data;
  };
  const required = <T>(value: T | undefined, path: string): T => {
    if (value === undefined) throw new JenkinsFailure("unexpected", `404 for ${path}.`);
    return value;
  };
  const nodePath = (name: string) => `computer/${encodeURIComponent(name)}`;

  return {
    checkCrumb: () => http.checkCrumb(),
    async version() {
      const { headers } = required(await http.get("api/json?tree=mode"), "api/json");
      const version = headers["x-jenkins"];
      if (typeof version !== "string")
        throw new JenkinsFailure("unexpected", "The answer has no header X-Jenkins.");
      return version;
    },
    async nodes() {
      const { computer } = required(await read(`computer/api/json?tree=${nodeTree}`, Nodes), "computer/api/json");
      return computer.map((one) => ({
        ...{ name: one.displayName, description: one.description, offline: one.offline },
        ...{ heldOffline: one.temporarilyOffline, busy: !one.idle },
        buildUrl: one.executors.map(({ currentExecutable }) => currentExecutable?.url).find(Boolean),
      }));
    },
    async queue() {
      const { items } = required(await read(`queue/api/json?tree=${queueTree}`, Queue), "queue/api/json");
      return items.map((item) => ({
        ...{ queueId: item.id, why: item.why, buildable: item.buildable === true, label: labelOf(item) },
        task: item.task?.name || `item ${item.id}`,
        queuedAt: item.inQueueSince ?? undefined,
      }));
    },
    async leftItem(queueId) {
      const item = await read(`queue/item/${queueId}/api/json?tree=cancelled,executable[url]`, LeftItem);
      return item && { cancelled: item.cancelled === true, buildUrl: item.executable?.url || undefined };
    },
    async createNode(node) {
      const response = required(await http.post("computer/doCreateItem", nodeForm(node)), "computer/doCreateItem");
      if (response.status !== 400) return {};
      // It exists already, or is refused; what it is there decides.
      const path = `${nodePath(node.name)}/api/json?tree=displayName,description`;
      const found = await read(path, z.object({ displayName: z.string(), description: text }));
      const { name, leaseId, controllerId } = node;
      if (found && leaseOfNode({ name, description: found.description }, controllerId) === leaseId) return {};
      return {
        refused:
          response.body
            .replace(/<[^>]*>/g, " ")
            .replace(/\s+/g, " ")
            .trim()
            .slice(0, 200) || "400",
      };
    },
    async agentSecret(name) {
      const response = await http.get(`${nodePath(name)}/jenkins-agent.jnlp`);
      if (!response) return undefined;
      // The first argument of the agent. The file is small and made by a program.
      const secret = /<application-desc[^>]*>\s*<argument>([0-9a-f]{64})<\/argument>/.exec(response.body)?.[1];
      if (!secret) throw new JenkinsFailure("unexpected", "jenkins-agent.jnlp has no secret.");
      return secret;
    },
    hasNode: async (name) => (await http.get(`${nodePath(name)}/api/json?tree=displayName`)) !== undefined,
    async holdOffline(name) {
      const form = z.object({ temporarilyOffline: z.boolean() });
      const node = await read(`${nodePath(name)}/api/json?tree=temporarilyOffline`, form);
      if (!node || node.temporarilyOffline) return;
      await http.post(`${nodePath(name)}/toggleOffline`, { offlineMessage: "One build for each VM (Holdfast)." });
    },
    async deleteNode(name) {
      await http.post(`${nodePath(name)}/doDelete`);
    },
  };
}
