// Returns its input: for trying out a connection.

import { z } from "zod";
import { connector } from "../connector.ts";

export default connector({
  name: "echo",
  title: "Echo",
  summary: "Returns its input, to try out a workflow or an agent",
  usesNetwork: false,
  actions: {
    echo: {
      summary: "Return the input",
      effect: "idempotent",
      secret: null,
      input: z.unknown().describe("Any value."),
      output: z.unknown().describe("The input."),
    },
  },
});
