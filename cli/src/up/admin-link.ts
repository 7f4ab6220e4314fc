// The sign-in link of the first administrator: it works once and is created only while there is no administrator.

import { createAdminLink, getPlatformStatus } from "@holdfast/contracts/endpoints/platform";
import { clientOf, type Server } from "../client/connect.ts";

/** Undefined when there is an administrator already, who has a password. */
export async function firstAdminLink(server: Server): Promise<string | undefined> {
  const call = clientOf(server);
  const status = await call(getPlatformStatus, {});
  if (status.administrator_exists) return undefined;
  const link = await call(createAdminLink, { body: {} });
  return link.url;
}
