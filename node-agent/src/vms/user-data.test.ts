import { hash } from "node:crypto";
import type { VmLaunch } from "@holdfast/contracts/node/vm-host";
import { expect, it } from "vitest";
import { withUserData } from "./user-data.ts";

const wanted = { vm_id: "01a1e13c-bc3d-71c5-9b58-aada3c2346d4", user_data: "#cloud-config\n" } as VmLaunch;
const user_data_sha256 = hash("sha256", "a script");

it("SEC-03 VM-06 takes user data with secrets from the control plane, and uses only the text that the signed task names", async () => {
  expect(await withUserData(wanted, () => Promise.reject(new Error("not called")))).toBe(wanted);
  expect(await withUserData({ ...wanted, user_data_sha256 }, async () => "a script")).toMatchObject({
    user_data: "a script",
  });
});

const another: Record<string, (vmId: string) => Promise<string | null>> = {
  "another text": async () => "another script",
  none: async () => null,
  "a connection that fails": () => Promise.reject(new Error("no connection")),
};

it.for(Object.keys(another))("SEC-03 VM-06 refuses %s", async (what) => {
  const take = another[what] ?? (async () => null);
  const taken = withUserData({ ...wanted, user_data_sha256 }, take);
  await expect(taken).rejects.toMatchObject({ code: "vm_user_data_unavailable" });
});
