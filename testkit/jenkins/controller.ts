// A Jenkins controller for tests, because Jenkins itself cannot be installed here. It keeps to what Jenkins documents and does: basic
// authentication, crumbs that belong to a session, the queue with its reasons, nodes made by the form of its own page, secrets of
// inbound agents, and a WebSocket by which an agent connects. A queued build starts on a connected, idle node with its labels.

import { createHmac, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import { matchesLabels, parseLabels } from "../../control-plane/src/jenkins/labels/expression.ts";
import { atEnd } from "../lifetime/at-end.ts";
import { accepted, type FormNode, readForm } from "./node-form.ts";
import { pick } from "./tree.ts";

export type StandInNode = FormNode & {
  heldOffline: boolean;
  agent: WebSocket | undefined;
  build: StandInBuild | undefined;
};
export type StandInItem = {
  id: number;
  task: string;
  label: string | undefined;
  since: number;
  cancelled: boolean;
};
export type StandInBuild = {
  item: StandInItem;
  node: string;
  url: string;
  result: "SUCCESS" | "FAILURE" | undefined;
};

export type StandInController = {
  url: string;
  user: string;
  token: string;
  nodes: Map<string, StandInNode>;
  queue: StandInItem[];
  builds: StandInBuild[];
  /** `POST /computer/doCreateItem`, in the order in which they came. */
  requests: string[];
  /** Answers instead, while it returns something. */
  instead:
    | ((
        request: IncomingMessage,
      ) => { status: number; headers?: Record<string, string>; body?: string } | undefined)
    | undefined;
  enqueue(task: string, label?: string): StandInItem;
  cancel(item: StandInItem): void;
  /** A node that somebody else made. */
  addNode(name: string, description?: string): void;
  secretOf(name: string): string;
  /** Nodes, queue and keys are kept; sessions and connections are not. */
  restart(): Promise<void>;
  stop(): Promise<void>;
  start(): Promise<void>;
};

type Answer = { status: number; headers?: Record<string, string>; body?: string | object };

export async function startController({
  prefix = "/jenkins",
  host = "127.0.0.1",
} = {}): Promise<StandInController> {
  const [user, token, key] = ["holdfast", randomBytes(17).toString("hex"), randomBytes(32)];
  const sessions = new Set<string>();
  const sockets = new Set<Socket>();
  const agents = new WebSocketServer({ noServer: true });
  let nextId = 100;
  const crumbOf = (session: string) => createHmac("sha256", key).update(`crumb ${session}`).digest("hex");

  const controller: StandInController = {
    ...{ url: "", user, token, nodes: new Map(), queue: [], builds: [], requests: [], instead: undefined },
    enqueue(task, label) {
      nextId += 1;
      const item = { id: nextId, task, label, since: Date.now(), cancelled: false };
      controller.queue.push(item);
      assign();
      return item;
    },
    cancel(item) {
      item.cancelled = true;
      controller.queue = controller.queue.filter((one) => one !== item);
      left.set(item.id, { item });
    },
    addNode(name, description = "") {
      const node = { name, description, labels: ["static"], mode: "NORMAL", executors: 1, remoteFs: "/srv" };
      controller.nodes.set(name, { ...node, heldOffline: false, agent: undefined, build: undefined });
    },
    secretOf: (name) => createHmac("sha256", key).update(name).digest("hex"),
    async restart() {
      await controller.stop();
      await controller.start();
    },
    async stop() {
      sessions.clear();
      for (const node of controller.nodes.values()) node.agent?.terminate();
      for (const socket of sockets) socket.destroy();
      if (!http.listening) return;
      http.close();
      await once(http, "close");
    },
    async start() {
      http.listen(port, host);
      await once(http, "listening");
      port = (http.address() as AddressInfo).port;
      controller.url = `http://${host}:${port}${prefix}/`;
    },
  };
  const left = new Map<number, { item: StandInItem; build?: StandInBuild }>();
  let port = 0;

  /** As the queue's maintenance does it: a build starts where a node may take it. */
  function assign(): void {
    for (const node of controller.nodes.values()) {
      if (!node.agent || node.heldOffline || node.build) continue;
      const labels = new Set([...node.labels, node.name]);
      const item = controller.queue.find(({ label }) =>
        label === undefined ? node.mode === "NORMAL" : matchesLabels(parseLabels(label), labels),
      );
      if (!item) continue;
      controller.queue = controller.queue.filter((one) => one !== item);
      const url = `${controller.url}job/${encodeURIComponent(item.task)}/${item.id}/`;
      const build: StandInBuild = { item, node: node.name, url, result: undefined };
      controller.builds.push(build);
      left.set(item.id, { item, build });
      node.build = build;
      node.agent.send(`build ${item.id}`);
    }
  }

  function finish(node: StandInNode, result: "SUCCESS" | "FAILURE"): void {
    if (node.build) node.build.result = result;
    node.build = undefined;
    assign();
  }

  const whyOf = ({ label }: StandInItem) => {
    if (label === undefined) return "Waiting for next available executor";
    const able = [...controller.nodes.values()].filter(({ labels, name }) =>
      matchesLabels(parseLabels(label), new Set([...labels, name])),
    );
    if (able.length === 0) return `There are no nodes with the label ‘${label}’`;
    if (able.every(({ agent, heldOffline }) => !agent || heldOffline))
      return `All nodes of label ‘${label}’ are offline`;
    return `Waiting for next available executor on ‘${label}’`;
  };

  const computerOf = (node: StandInNode) => ({
    _class: "hudson.slaves.SlaveComputer",
    ...{ displayName: node.name, description: node.description, numExecutors: node.executors },
    ...{
      idle: node.build === undefined,
      offline: !node.agent || node.heldOffline,
      temporarilyOffline: node.heldOffline,
    },
    executors: [{ currentExecutable: node.build ? { url: node.build.url } : null }],
  });
  const builtIn = {
    ...{ _class: "hudson.model.Hudson$MasterComputer", displayName: "Built-In Node", description: null },
    ...{ numExecutors: 0, idle: true, offline: false, temporarilyOffline: false, executors: [] },
  };

  function get(path: string, respond: (body: object) => Answer): Answer {
    if (path === "/api/json") return respond({ _class: "hudson.model.Hudson", mode: "NORMAL" });
    if (path === "/queue/api/json") {
      const items = controller.queue.map((item) => ({
        _class: "hudson.model.Queue$BuildableItem",
        ...{
          id: item.id,
          why: whyOf(item),
          buildable: true,
          blocked: false,
          stuck: false,
          inQueueSince: item.since,
        },
        task: { name: item.task, url: `${controller.url}job/${encodeURIComponent(item.task)}/` },
      }));
      return respond({ items });
    }
    if (path === "/computer/api/json")
      return respond({ computer: [builtIn, ...[...controller.nodes.values()].map(computerOf)] });
    const leftId = /^\/queue\/item\/(\d+)\/api\/json$/.exec(path)?.[1];
    if (leftId) {
      const known = left.get(Number(leftId));
      if (!known) return { status: 404 };
      const executable = known.build ? { url: known.build.url } : null;
      return respond({ _class: "hudson.model.Queue$LeftItem", cancelled: known.item.cancelled, executable });
    }
    const [, name = "", rest = ""] = /^\/computer\/([^/]+)\/(.*)$/.exec(path) ?? [];
    const node = controller.nodes.get(decodeURIComponent(name));
    if (node && rest === "api/json") return respond(computerOf(node));
    if (node && rest === "jenkins-agent.jnlp") return { status: 200, body: jnlpOf(node.name) };
    return { status: 404, body: "<html>Not found</html>" };
  }

  const jnlpOf = (name: string) =>
    `<jnlp codebase="${controller.url}computer/${name}/" spec="1.0+"><application-desc main-class="hudson.remoting.jnlp.Main">` +
    `<argument>${controller.secretOf(name)}</argument><argument>${name}</argument><argument>-webSocket</argument>` +
    `</application-desc></jnlp>`;

  function post(path: string, form: URLSearchParams): Answer {
    if (path === "/computer/doCreateItem") {
      const read = readForm(form, controller.nodes);
      if ("refused" in read) return { status: 400, body: `<html><h1>Error</h1><p>${read.refused}</p></html>` };
      controller.nodes.set(read.name, { ...read, heldOffline: false, agent: undefined, build: undefined });
      return accepted;
    }
    const [, name = "", action = ""] = /^\/computer\/([^/]+)\/(\w+)$/.exec(path) ?? [];
    const node = controller.nodes.get(decodeURIComponent(name));
    if (!node) return { status: 404 };
    if (action === "toggleOffline") {
      node.heldOffline = !node.heldOffline;
      assign();
      return accepted;
    }
    if (action !== "doDelete") return { status: 404 };
    controller.nodes.delete(node.name);
    node.agent?.terminate();
    return accepted;
  }

  async function answer(request: IncomingMessage): Promise<Answer> {
    const url = new URL(request.url ?? "/", "http://controller");
    controller.requests.push(`${request.method} ${url.pathname.slice(prefix.length)}`);
    const replaced = controller.instead?.(request);
    if (replaced) return replaced;
    if (!url.pathname.startsWith(`${prefix}/`)) return { status: 404 };
    const path = url.pathname.slice(prefix.length);
    if (path === "/jnlpJars/agent.jar") return { status: 200, body: "PK stand-in agent" };
    const { authorization, cookie = "" } = request.headers;
    if (authorization === undefined) return { status: 403, body: "Authentication required" };
    if (authorization !== `Basic ${Buffer.from(`${user}:${token}`).toString("base64")}`) {
      return {
        status: 401,
        headers: { "www-authenticate": 'Basic realm="Jenkins"' },
        body: "Invalid password/token",
      };
    }
    const json = (body: object): Answer => ({
      ...{ status: 200, body: pick(body, url.searchParams.get("tree")) },
      headers: { "x-jenkins": "2.528.1" },
    });
    if (path === "/crumbIssuer/api/json") {
      const session = randomBytes(16).toString("hex");
      sessions.add(session);
      const headers = { "set-cookie": `JSESSIONID.0=${session}; Path=${prefix}; HttpOnly` };
      return { ...json({ crumb: crumbOf(session), crumbRequestField: "Jenkins-Crumb" }), headers };
    }
    if (request.method === "GET") return get(path, json);
    const session = /JSESSIONID\.0=(\w+)/.exec(cookie)?.[1] ?? "";
    if (!sessions.has(session) || request.headers["jenkins-crumb"] !== crumbOf(session)) {
      return { status: 403, body: "<html>No valid crumb was included in the request</html>" };
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    return post(path, new URLSearchParams(Buffer.concat(chunks).toString()));
  }

  const http = createServer((request, response: ServerResponse) => {
    void answer(request).then(({ status, headers = {}, body = "" }) => {
      const text = typeof body === "string" ? body : JSON.stringify(body);
      response.writeHead(status, {
        "content-type": typeof body === "string" ? "text/html" : "application/json",
        ...headers,
      });
      response.end(text);
    });
  });
  http.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  http.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) => {
    const refuse = (status: number, text: string) =>
      socket.end(
        `HTTP/1.1 ${status} Refused\r\ncontent-length: ${text.length}\r\nconnection: close\r\n\r\n${text}`,
      );
    const { "node-name": name, "secret-key": secret, "x-remoting-capability": capability } = request.headers;
    if (request.url !== `${prefix}/wsagents/` || typeof name !== "string" || !secret || !capability)
      return refuse(400, "This endpoint is only for use from agent.jar in WebSocket mode");
    const node = controller.nodes.get(name);
    if (!node) return refuse(400, "no such agent");
    if (secret !== controller.secretOf(name) || node.agent) return refuse(403, "refused");
    agents.handleUpgrade(request, socket, head, (agent) => {
      node.agent = agent;
      agent.on("error", () => undefined);
      agent.on("message", (data) => {
        if (node.build && String(data) === `done ${node.build.item.id}`) finish(node, "SUCCESS");
      });
      agent.on("close", () => {
        node.agent = undefined;
        finish(node, "FAILURE");
      });
      assign();
    });
  });
  await controller.start();
  atEnd(() => controller.stop());
  return controller;
}
