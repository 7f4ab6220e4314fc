import type { SandboxBackend } from "@holdfast/contracts/execution/limits";
import { describe, expect, it } from "vitest";
import type { SandboxCheck, SandboxDriver } from "../drivers/sandbox/driver.ts";
import { createBackends } from "./backends.ts";

function driver(name: SandboxBackend, works: () => boolean): SandboxDriver & { checks: number } {
  const one = {
    ...{ name, checks: 0, provides: { isolation: true, images: false } },
    ...{ run: () => expect.unreachable(), recover: async () => 0 },
    check: async (): Promise<SandboxCheck> => {
      one.checks += 1;
      const problem = works() ? undefined : { what: `${name} is broken`, remedy: `repair ${name}` };
      return { backend: name, problem, limits: {} as SandboxCheck["limits"] };
    },
  };
  return one;
}

const names = async (works: SandboxBackend[], configured?: SandboxBackend) => {
  const drivers = (["host", "bubblewrap", "podman", "docker"] as const).map((name) =>
    driver(name, () => works.includes(name)),
  );
  const choice = await createBackends(drivers, configured).choose();
  return "refused" in choice ? choice.refused : choice.driver.name;
};

describe("the backend of shell steps", () => {
  it("SBX-04 is docker if it works, else podman, else bubblewrap, and never the host by itself", async () => {
    expect(await names(["docker", "podman", "bubblewrap", "host"])).toBe("docker");
    expect(await names(["podman", "bubblewrap", "host"])).toBe("podman");
    expect(await names(["bubblewrap", "host"])).toBe("bubblewrap");
    const refused = await names(["host"]);
    expect(refused).toMatch(/docker: docker is broken; repair docker\. podman: .*bubblewrap: /);
    expect(refused).toMatch(/HOLDFAST_EXECUTION_BACKEND=host/);
  });

  it("SBX-04 is the one that the owner of the host chose, or none", async () => {
    expect(await names(["docker", "host"], "host")).toBe("host");
    expect(await names(["docker", "host"], "bubblewrap")).toMatch(/bubblewrap is broken; repair bubblewrap/);
    const choice = await createBackends([], "podman").choose();
    expect(choice).toEqual({ refused: "this version of the agent does not support the backend podman" });
  });

  it("SBX-04 is checked once while it works, and again when that is in doubt or it did not work", async () => {
    let works = false;
    const one = driver("bubblewrap", () => works);
    const backends = createBackends([one], undefined);
    expect(await backends.choose()).toHaveProperty("refused");
    works = true;
    await Promise.all([backends.choose(), backends.choose(), backends.choose()]);
    expect(one.checks).toBe(2);
    backends.doubt();
    await backends.choose();
    expect(one.checks).toBe(3);
  });
});
