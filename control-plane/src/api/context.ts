// What the api process has at hand to answer requests: made once at start, given to every noun.

import type { Log } from "@holdfast/service/log";
import type { FastifyInstance } from "fastify";
import type { Sql } from "../database/connect.ts";
import type { AnswerVault } from "../idempotency/replay.ts";
import type { Authenticator } from "../people/authenticate.ts";
import type { SessionCookie } from "../people/session-cookie.ts";

export type ApiContext = {
  http: FastifyInstance;
  /** Row-level security shows this one an organization at a time; use it through `withOrg`. */
  app: Sql;
  /** Sees all organizations: sign-in and platform routes only. */
  system: Sql;
  authenticator: Authenticator;
  answers: AnswerVault;
  cookie: SessionCookie;
  log: Log;
  publicUrl: string | undefined;
};
