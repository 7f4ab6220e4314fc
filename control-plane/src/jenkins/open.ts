// What an api process has for Jenkins controllers: how to open their tokens, and how to reach them.

import type { Values } from "@holdfast/kit/settings";
import type { Keyring } from "../mechanisms/sealing/keyring.ts";
import { type Allowance, allowanceOf } from "../notify/send/addresses.ts";
import { type JenkinsClient, jenkinsClient } from "./client/client.ts";
import { type ControllerAccess, connectController } from "./client/http.ts";
import type { jenkinsSettings } from "./settings.ts";
import { openTokenVault, type TokenVault } from "./vault.ts";

export type Jenkins = {
  vault: TokenVault;
  allowance: Allowance;
  /** Throws a JenkinsFailure if the address is not allowed, or has no name. */
  connect(access: ControllerAccess): Promise<JenkinsClient>;
};

export async function openJenkins(
  keyring: Keyring,
  settings: Pick<Values<typeof jenkinsSettings>, "jenkinsAllowPrivate">,
): Promise<Jenkins> {
  const allowance = allowanceOf(settings.jenkinsAllowPrivate);
  return {
    vault: await openTokenVault(keyring),
    allowance,
    connect: async (access) => jenkinsClient(await connectController(access, { allowance })),
  };
}
