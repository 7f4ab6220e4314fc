// Every backend that this version has. A new one is a line here. Containers come first: a directory that they left behind may be a
// mount, which only they undo.

import type { Environment } from "@holdfast/kit/settings";
import { bubblewrapDriver } from "./bubblewrap/bubblewrap.ts";
import { dockerDriver } from "./docker.ts";
import type { SandboxDriver, SandboxOptions } from "./driver.ts";
import { hostDriver } from "./host.ts";
import { podmanDriver } from "./podman.ts";

/** `image`: of steps that name none; `environment`: of the agent. */
export type AllOptions = SandboxOptions & { image: string; environment: Environment };

export function sandboxDrivers(options: AllOptions): SandboxDriver[] {
  return [dockerDriver(options), podmanDriver(options), bubblewrapDriver(options), hostDriver(options)];
}
