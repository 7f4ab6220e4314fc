// vitest runs this before every test file.

import { afterAll } from "vitest";
import { cleanUp } from "./at-end.ts";
import { takeProcessorTime } from "./processor-time.ts";

// biome-ignore lint/correctness/noEmptyPattern: vitest accepts no other form for what is not used.
afterAll(async ({}, file) => {
  await cleanUp();
  file.meta.processorMs = takeProcessorTime();
});
