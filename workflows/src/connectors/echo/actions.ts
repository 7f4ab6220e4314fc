// What the actions of the connector echo do.

import { quietActions } from "../actions.ts";
import type contract from "./contract.ts";

export default quietActions<typeof contract>({
  echo: { message: (input) => ({ kind: "none", output: input ?? null }) },
});
