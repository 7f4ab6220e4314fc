// Generated from contract.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { CheckedConnector } from "../checked-connector.ts";

export default {
  name: "echo",
  title: "Echo",
  summary: "Returns its input, to try out a workflow or an agent",
  usesNetwork: false,
  actions: {
    echo: {
      summary: "Return the input",
      effect: "idempotent",
      secret: null,
      input: check.of(check.unknown()),
      output: check.of(check.unknown()),
    },
  },
} satisfies CheckedConnector;
