// The real api and the real gateway, with the node played by the test: from the token to the audit.

import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { closeTerminal, createTerminalToken, listTerminals } from "@holdfast/contracts/endpoints/terminals";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg, tokenFor } from "../../testkit/api/api.ts";
import { endTask, newPlace, opened, type Place, takeTask } from "../../testkit/api/terminals.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { SERVICE_TOKEN } from "../../testkit/gateway/api.ts";
import {
  comeUp,
  connectClient,
  connectNode,
  startTestGateway,
  type TestGateway,
} from "../../testkit/gateway/gateway.ts";

let api: TestApi;
let gateway: TestGateway;
let org: TestOrg;
let place: Place;
let token: string;

beforeAll(async () => {
  api = await startTestApi({ env: { HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN } });
  gateway = await startTestGateway({ url: api.internalUrl });
  org = await createOrg(api, "kelp");
  place = await newPlace(api, openRoles(api.database).superuser, org);
  token = await tokenFor(api, org, "admin");
});

const node = () => ({ ...place.node.tls, id: place.node.id, serial: "" });

async function open() {
  const minted = await api.as(token)(createTerminalToken, {
    params: { allocation_id: place.allocationId },
    body: {},
  });
  const client = await connectClient(gateway, minted.token, { origin: "" });
  client.send({ type: "resize", cols: 90, rows: 20 });
  const task = await takeTask(place.node);
  const stream = await connectNode(gateway, minted.session_id, node());
  await comeUp(stream);
  await client.next("ready");
  await endTask(place.node, task, opened);
  return { client, stream, minted };
}

const sessionOf = async (id: string) =>
  (await api.as(token)(listTerminals, { query: {} })).items.find((one) => one.id === id);

describe("a terminal through api and gateway", () => {
  it("TERM-08 has its whole chain with the api, and is in the audit", async () => {
    const { client, stream, minted } = await open();
    expect(minted.url).toBe(gateway.terminalUrl);
    await expect.poll(() => sessionOf(minted.session_id)).toMatchObject({ state: "open", attached: true });
    expect(Object.keys((await sessionOf(minted.session_id))?.chain ?? {}).sort()).toEqual([
      "browser_ws_ready",
      "node_stream_connected",
      "pty_ready",
      "terminal_open_sent",
      "token_ready",
    ]);
    stream.send({ type: "exit", code: 0, signal: null });
    await client.next("exit");
    await expect.poll(() => sessionOf(minted.session_id)).toMatchObject({ state: "closed", exit: { code: 0 } });
    const { items } = await api.operator(org.id)(listAudit, { query: {} });
    const actions = items.map(({ action }) => action);
    expect(actions).toEqual(expect.arrayContaining(["terminal.open", "terminal.attach", "terminal.close"]));
    expect(`${gateway.logged()}${api.logged()}`).not.toContain(minted.token);
  });

  it("TERM-01 TERM-08 a token works once, and what the second client is told to quote is in the audit", async () => {
    const { minted } = await open();
    const second = await connectClient(gateway, minted.token, { origin: "" });
    const { code, correlation_id } = await second.next("error");
    expect(code).toBe("terminal_token_refused");
    const { items } = await api.operator(org.id)(listAudit, { query: { correlation_id } });
    expect(items).toContainEqual(expect.objectContaining({ result: "denied", reason: code }));
  });

  it("TERM-10 ends when it is closed from elsewhere", async () => {
    const { client, stream, minted } = await open();
    await api.as(token)(closeTerminal, { params: { terminal_id: minted.session_id } });
    expect(await client.next("error")).toMatchObject({ retryable: expect.any(Boolean) });
    await stream.next("close");
    await expect.poll(() => sessionOf(minted.session_id)).toMatchObject({ state: "closed" });
  });

  it("TERM-11 a reload finds the same shell", async () => {
    const { client, stream, minted } = await open();
    client.socket.terminate();
    await stream.next("detach");
    const again = await api.as(token)(createTerminalToken, {
      params: { allocation_id: place.allocationId },
      body: { session_id: minted.session_id, offset: 0 },
    });
    const reloaded = await connectClient(gateway, again.token, { origin: "" });
    const { attachment } = await stream.next("attach");
    stream.send({ type: "attached", attachment, offset: 0, replay: 0 });
    expect(await reloaded.next("ready")).toMatchObject({ session_id: minted.session_id });
  });
});
