// Jenkins controllers: each queued build with a served label gets a VM of its own (ADR 52). No answer contains an API token.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { AnyText, Id, Slug, Time } from "../fields.ts";
import { TaskFailure } from "../node/protocol.ts";
import { LeaseState } from "./leases.ts";

export const MOST_CONTROLLERS = 50;

/** As Jenkins separates labels by spaces and combines them by operators, none of these is in a name here. */
const JenkinsLabel = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._+:@/-]{0,62}$/, "up to 63 letters, digits and . _ + : @ / -");

export const JenkinsLabelPolicy = z.strictObject({
  jenkins_labels: z.array(JenkinsLabel).min(1).max(20).describe("The labels of the node that a build gets."),
  lease_label: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, "up to 63 letters, digits, dots, underscores and hyphens")
    .describe("What its VM is like: a label of leases, with image, profile, architecture and accelerator."),
});
export type JenkinsLabelPolicy = z.infer<typeof JenkinsLabelPolicy>;

export const jenkinsBuildStates = ["claimed", "launching", "connected", "building", "removing", "ended"] as const;
const JenkinsBuildState = z.enum(jenkinsBuildStates);
export type JenkinsBuildState = z.infer<typeof JenkinsBuildState>;

const jenkinsControllerStates = ["unpolled", "working", "failing", "refused", "disabled"] as const;
const JenkinsControllerState = z.enum(jenkinsControllerStates);
export type JenkinsControllerState = z.infer<typeof JenkinsControllerState>;

/** What was decided about an item of the queue. */
const itemVerdicts = [
  "has_vm",
  "gets_vm",
  "not_buildable",
  "no_label",
  "label_unreadable",
  "not_served",
  "cap",
  "burst",
  "cooldown",
] as const;
const ItemVerdict = z.enum(itemVerdicts);
export type ItemVerdict = z.infer<typeof ItemVerdict>;

export const JenkinsQueueItem = z.strictObject({
  queue_id: z.int(),
  task: z.string(),
  label: z.string().nullable(),
  queued_at: Time.nullable(),
  verdict: ItemVerdict,
  message: z.string().describe("What happens to it, or why not."),
});
export type JenkinsQueueItem = z.infer<typeof JenkinsQueueItem>;

export const JenkinsBuild = z.strictObject({
  id: Id,
  status: JenkinsBuildState,
  queue_id: z.int(),
  attempt: z.int(),
  task: z.string(),
  label: z.string(),
  node_name: z.string(),
  lease_label: z.string(),
  lease_id: Id.nullable().describe("Null: no lease was requested yet, or it is no longer kept."),
  lease_status: LeaseState.nullable(),
  build_url: z.string().nullable(),
  reason: TaskFailure.nullable().describe("Why its VM and node are removed."),
  created_at: Time,
  connected_at: Time.nullable(),
  building_at: Time.nullable(),
  finished_at: Time.nullable(),
});
export type JenkinsBuild = z.infer<typeof JenkinsBuild>;

export const JenkinsController = z.strictObject({
  id: Id,
  name: z.string(),
  url: z.string(),
  user: z.string(),
  enabled: z.boolean(),
  state: JenkinsControllerState,
  problem: TaskFailure.nullable().describe("Why the last poll failed, and what to do."),
  labels: z.array(JenkinsLabelPolicy),
  max_leases: z.int(),
  burst: z.int(),
  cooldown_seconds: z.int(),
  connect_seconds: z.int(),
  last_polled_at: Time.nullable(),
  last_succeeded_at: Time.nullable(),
  queued: z.int().describe("Items of its queue, as of the last poll that succeeded."),
  builds: z.int().describe("Builds that have a VM, or for which one is being made or removed."),
  created_by: z.string(),
  created_at: Time,
});
export type JenkinsController = z.infer<typeof JenkinsController>;

const one = z.strictObject({ controller_id: Id });

export const listJenkinsControllers = endpoint({
  name: "listJenkinsControllers",
  noun: "jenkins",
  method: "GET",
  path: "/v1/jenkins-controllers",
  summary: "List Jenkins controllers",
  access: { scope: "leases:read" },
  answer: z.strictObject({ items: z.array(JenkinsController) }),
});

/** Not a create: an idempotency key would keep a digest of the request, and thereby of the API token. */
export const addJenkinsController = endpoint({
  name: "addJenkinsController",
  noun: "jenkins",
  method: "POST",
  path: "/v1/jenkins-controllers",
  summary: "Add a Jenkins controller",
  description:
    "Its queue is polled from then on. The user needs the permissions Overall/Read and Agent/Create, Configure, Connect, Disconnect and " +
    "Delete. The API token is stored encrypted and never returned.",
  access: { scope: "leases:write" },
  action: "jenkins_controller.add",
  body: z.strictObject({
    name: Slug,
    url: AnyText.min(1).max(500).describe("As browsers use it, such as https://ci.example.com/jenkins/."),
    user: AnyText.trim().min(1).max(200),
    api_token: AnyText.min(1).max(500).describe("Of the user. It is never returned."),
    labels: z.array(JenkinsLabelPolicy).min(1).max(50),
    max_leases: z.int().min(0).max(10_000).default(20).describe("How many VMs its builds have at a time."),
    burst: z.int().min(1).max(1000).default(5).describe("How many VMs are requested within one cooldown at most."),
    cooldown_seconds: z
      .int()
      .min(1)
      .max(3600)
      .default(10)
      .describe("Also how long an item waits after its VM failed; doubled with each failure."),
    connect_seconds: z
      .int()
      .min(10)
      .max(3600)
      .default(240)
      .describe("Within which the agent of a started VM has to connect to the controller."),
  }),
  answer: JenkinsController,
  errors: ["jenkins_address_refused", "lease_label_unknown", "name_taken", "conflict"],
});

export const getJenkinsController = endpoint({
  name: "getJenkinsController",
  noun: "jenkins",
  method: "GET",
  path: "/v1/jenkins-controllers/{controller_id}",
  summary: "Show a Jenkins controller with its queue and its builds",
  access: { scope: "leases:read" },
  params: one,
  answer: JenkinsController.extend({
    queue: z.array(JenkinsQueueItem).describe("As of the last poll that succeeded, at most 100."),
    recent: z.array(JenkinsBuild).describe("Those that have not ended, and the last 50."),
  }),
});

export const checkJenkinsController = endpoint({
  name: "checkJenkinsController",
  noun: "jenkins",
  method: "POST",
  path: "/v1/jenkins-controllers/{controller_id}/check",
  summary: "Check now whether a controller can be used",
  description: "Signs in, reads queue and nodes, and requests a crumb. It changes nothing on the controller.",
  access: { scope: "leases:write" },
  action: "jenkins_controller.check",
  params: one,
  answer: z.strictObject({
    usable: z.boolean(),
    version: z.string().nullable(),
    queued: z.int().nullable(),
    nodes: z.int().nullable().describe("All nodes of the controller, also others than Holdfast's."),
    problem: TaskFailure.nullable(),
  }),
  errors: ["rate_limit_exceeded"],
});

/** Not a create, as above: no digest of the API token is kept. */
export const setJenkinsToken = endpoint({
  name: "setJenkinsToken",
  noun: "jenkins",
  method: "POST",
  path: "/v1/jenkins-controllers/{controller_id}/set-token",
  summary: "Replace the API token of a controller",
  description:
    "The next poll uses it, at once. Builds that have a VM keep it. The API token is stored encrypted and never returned.",
  access: { scope: "leases:write" },
  action: "jenkins_controller.set_token",
  params: one,
  body: z.strictObject({ api_token: AnyText.min(1).max(500).describe("Of the same user. It is never returned.") }),
  answer: JenkinsController,
});

export const enableJenkinsController = endpoint({
  name: "enableJenkinsController",
  noun: "jenkins",
  method: "POST",
  path: "/v1/jenkins-controllers/{controller_id}/enable",
  summary: "Serve a controller's queue again",
  access: { scope: "leases:write" },
  action: "jenkins_controller.enable",
  params: one,
  answer: JenkinsController,
});

export const disableJenkinsController = endpoint({
  name: "disableJenkinsController",
  noun: "jenkins",
  method: "POST",
  path: "/v1/jenkins-controllers/{controller_id}/disable",
  summary: "Request no more VMs for a controller's queue",
  description: "Builds that have a VM keep it until they end.",
  access: { scope: "leases:write" },
  action: "jenkins_controller.disable",
  params: one,
  answer: JenkinsController,
});

export const removeJenkinsController = endpoint({
  name: "removeJenkinsController",
  noun: "jenkins",
  method: "DELETE",
  path: "/v1/jenkins-controllers/{controller_id}",
  summary: "Remove a controller",
  description:
    "Refused with `jenkins_controller_in_use` while builds have VMs, unless `force` is set: then their VMs are terminated, and their " +
    "nodes stay on the controller.",
  access: { scope: "leases:write" },
  action: "jenkins_controller.remove",
  params: one,
  query: z.strictObject({ force: z.enum(["true", "false"]).default("false") }),
  errors: ["jenkins_controller_in_use"],
});
