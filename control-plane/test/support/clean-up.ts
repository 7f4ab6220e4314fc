// vitest runs this before every test file, also in a worker that ran other files before.

import { afterAll } from "vitest";
import { cleanUp } from "./at-end.ts";

afterAll(cleanUp);
