// vitest runs this before every test file.

import { afterAll } from "vitest";
import { cleanUp } from "./at-end.ts";

afterAll(cleanUp);
