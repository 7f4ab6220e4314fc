// Receivers on the command line: added, tested for real, listed with what they returned, and removed.

import type { Delivery, Receiver } from "@holdfast/contracts/endpoints/notify";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, tokenFor } from "../../../testkit/api/api.ts";
import { startWebhookServer, type WebhookServer } from "../../../testkit/receivers/webhook-server.ts";
import { aPerson, type Person } from "../support/command.ts";

let owner: Person;
let operator: Person;
let server: WebhookServer;

beforeAll(async () => {
  server = await startWebhookServer();
  const api = await startTestApi({ env: { HOLDFAST_NOTIFY_ALLOW_PRIVATE: "127.0.0.1" } });
  const org = await createOrg(api, "kelp");
  const withToken = (token: string) => aPerson({ HOLDFAST_API_URL: api.url, HOLDFAST_TOKEN: token });
  owner = withToken(await tokenFor(api, org, "owner"));
  operator = withToken(api.operatorToken);
});

describe("holdfast notify", () => {
  it("DRIFT-16 adds a receiver, tests it for real, and lists and removes it", async () => {
    expect(await owner.holdfast(["notify", "test"])).toMatchObject({ code: 2 });
    expect(await owner.holdfast(["notify", "receiver", "create"])).toMatchObject({ code: 2 });
    const created = await owner.json<Receiver & { secret: string }>([
      ...["notify", "receiver", "create", "--url", server.url],
    ]);
    expect(created.secret).toMatch(/^hfw_/);
    const tested = await owner.holdfast(["notify", "test", created.id]);
    expect(tested).toMatchObject({ code: 0, stderr: "" });
    expect(tested.stdout).toMatch(/delivered +200 thank you/);
    server.answer = (response) => response.writeHead(503).end("closed");
    const failed = await owner.holdfast(["notify", "test"]);
    expect(failed.code).toBe(1);
    expect(failed.stdout).toMatch(/failed +503 closed/);
    const { items } = await owner.json<{ items: Delivery[] }>(["notify", "history", "--receiver", created.id]);
    expect(items.map(({ state }) => state)).toEqual(["failed", "delivered"]);
    expect((await owner.holdfast(["notify", "receiver", "list"])).stdout).toContain(created.id);
    expect(await owner.holdfast(["notify", "receiver", "remove", created.id])).toMatchObject({ code: 0 });
    expect((await owner.holdfast(["notify", "receiver", "list"])).stdout).toContain("No receivers yet.");
  });

  it("DRIFT-16 says what to set where the installation has no receivers", async () => {
    const { code, stderr } = await operator.holdfast(["notify", "test", "--installation"]);
    expect(code).toBe(2);
    expect(stderr).toContain("HOLDFAST_NOTIFY_WEBHOOK_URL");
    expect(await operator.holdfast(["notify", "history", "--installation"])).toMatchObject({ code: 0 });
  });
});
