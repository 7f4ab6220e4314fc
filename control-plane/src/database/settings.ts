// How a control-plane process finds its database.

import { kinds, optional } from "@holdfast/kit/settings";

export const databaseSettings = {
  databaseUrl: optional(kinds.postgresUrl, {
    env: "HOLDFAST_DATABASE_URL",
    aliases: ["DATABASE_URL"],
    secret: true,
    help: "PostgreSQL 15 or newer. Left out, `holdfast up` runs an embedded PostgreSQL 18.",
  }),
};
