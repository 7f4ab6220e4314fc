// An agent that runs one script in a container, to be killed meanwhile; with `dieAt`, it kills itself at that point, or once the
// script has printed that. Its only argument is a JSON object.

import { uuidv7 } from "@holdfast/kit/uuid";
import type { ContainerOptions } from "../../src/drivers/sandbox/container/driver.ts";
import { dockerDriver } from "../../src/drivers/sandbox/docker.ts";
import { podmanDriver } from "../../src/drivers/sandbox/podman.ts";
import { roomy } from "../drivers/sandbox/bench.ts";

const { script, image, engine, options, dieAt } = JSON.parse(process.argv[2] ?? "") as {
  script: string;
  image: string;
  engine: "docker" | "podman";
  options: ContainerOptions;
  dieAt?: string;
};

const die = () => process.kill(process.pid, "SIGKILL");
const reached = (point: string) => {
  if (point === dieAt) die();
  const afterMs = Number(/^(\d+) ms after started$/.exec(dieAt ?? "")?.[1]);
  if (point === "started" && afterMs > 0) setTimeout(die, afterMs);
};

const open = engine === "docker" ? dockerDriver : podmanDriver;
const driver = open({ ...options, reached });
await driver.run({
  ...{ id: uuidv7(), shell: "sh", script, env: {}, network: false, image, limits: roomy },
  onOutput: (_, text) => reached(text.trim()),
}).ended;
