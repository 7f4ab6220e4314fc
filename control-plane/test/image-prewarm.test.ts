// Images with a URL over HTTP: what is refused, which hosts are asked, and what is shown meanwhile.

import { listHosts } from "@holdfast/contracts/endpoints/hosts";
import { addImage, listImages, prewarmImage, retireImage } from "@holdfast/contracts/endpoints/images";
import { getTask } from "@holdfast/contracts/endpoints/tasks";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { createOrg, startTestApi, type TestApi, tokenFor } from "../../testkit/api/api.ts";
import { IMAGE } from "../../testkit/api/leases.ts";
import { enrollTestNode, type TestNode } from "../../testkit/api/nodes.ts";
import { reportVms } from "../../testkit/api/vm-hosts.ts";

const url = "https://images.example.com/base/new.qcow2";
const image = { id: "new", sha256: "ef".repeat(32) };
let api: TestApi;
let client: ReturnType<TestApi["operator"]>;
let org: Awaited<ReturnType<typeof createOrg>>;
let nodes: Record<"open" | "closed", TestNode>;

beforeAll(async () => {
  api = await startTestApi();
  org = await createOrg(api, "prewarm");
  client = api.operator(org.id);
  nodes = {
    open: await enrollTestNode(api, org.id, { hostname: "open" }),
    closed: await enrollTestNode(api, org.id, { hostname: "closed" }),
  };
  await reportVms(nodes.open, { images: [], image_sources: ["https://images.example.com/base/"] });
  await reportVms(nodes.closed, { images: [] });
  await vi.waitUntil(async () => (await client(listHosts, {})).items.length === 2, { timeout: 60_000 });
});

const refusal = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    ({ envelope }) => envelope.code,
  );
const prewarm = (id: string, host_ids?: string[]) =>
  client(prewarmImage, { params: { image_id: id }, body: { host_ids } });

describe("an image with a URL", () => {
  it("VM-07 SEC-04 needs its digest, and a URL without secrets", async () => {
    expect(await refusal(client(addImage, { body: { id: "new", url } }))).toBe("image_digest_unknown");
    for (const wrong of ["https://user:secret@images.example.com/a", `${url}?token=x`, "file:///etc/passwd"])
      expect(await refusal(client(addImage, { body: { ...image, url: wrong } })), wrong).toBe("invalid_request");
    expect(await client(addImage, { body: { ...image, url } })).toMatchObject({ source: "remote_cache", url });
  });

  it("VM-07 VM-09 is fetched by hosts whose owners allow it, once, and the others say what to do", async () => {
    const { hosts } = await prewarm("new");
    const of = (name: string) => hosts.find((host) => host.name === name);
    expect(of("closed")).toMatchObject({
      ...{ outcome: "refused", task_id: null },
      message: expect.stringContaining("HOLDFAST_VM_IMAGE_SOURCES"),
    });
    const taskId = of("open")?.task_id ?? "";
    expect(await client(getTask, { params: { task_id: taskId } })).toMatchObject({
      ...{ type: "vm.image_fetch", params: { image, url } },
    });
    expect((await prewarm("new", [nodes.open.id])).hosts).toMatchObject([
      { outcome: "fetching", task_id: taskId },
    ]);
    const shown = (await client(listImages, {})).items.find(({ id }) => id === "new");
    expect(shown?.hosts).toMatchObject([{ name: "open", state: "fetching", fetched: false }]);
  });

  it("VM-07 is ready where a host has it", async () => {
    const one = { ...image, file_bytes: 1, virtual_bytes: 1, references: 0, problem: null, fetched: true };
    await reportVms(nodes.closed, { images: [one] });
    expect((await prewarm("new", [nodes.closed.id])).hosts).toMatchObject([{ outcome: "ready" }]);
  });

  it("VM-07 is not fetched when it has no URL, is retired, or the host is unknown", async () => {
    await client(addImage, { body: IMAGE });
    expect(await refusal(prewarm(IMAGE.id))).toBe("image_not_fetchable");
    expect(await refusal(prewarm("new", [uuidv7()]))).toBe("not_found");
    expect(await refusal(prewarm("no-such"))).toBe("not_found");
    const member = api.as(await tokenFor(api, org, "member"));
    const request = { params: { image_id: "new" }, body: {} };
    expect(await refusal(member(prewarmImage, request))).toBe("forbidden");
    await client(retireImage, { params: { image_id: "new" } });
    expect(await refusal(prewarm("new"))).toBe("image_retired");
  });
});
