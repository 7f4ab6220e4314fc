// The forms of secrets that Holdfast makes. The prefix says what a leaked string is, lets scanners
// and our own redaction recognise it, and keeps one kind from being accepted as another.

export const secretPrefix = {
  /** API token of one organization. */
  apiToken: "hft_",
  /** Token file of the machine that ran `holdfast up`. */
  localOperator: "hfo_",
  /** Browser session, in a cookie. */
  session: "hfs_",
  /** Browser that has signed in before, in a cookie. It only keeps strangers from locking the account. */
  device: "hfd_",
  /** One-time link, in a URL fragment. */
  link: "hfl_",
  /** Pairing token: enrolls one node once. */
  enrollment: "hfe_",
  /** Bootstrap token: enrolls its one node again and again. */
  bootstrap: "hfb_",
  /** Recovery token: a new identity for the node that has it, once. */
  recovery: "hfr_",
  /** Of a recovery bundle: a new identity for the node that it was created for, once. */
  bundle: "hfu_",
  /** Terminal token: one connection to the gateway. */
  terminal: "hfp_",
  /** Signs the messages to one webhook. */
  webhook: "hfw_",
  /** Starts runs by a webhook of a workflow. */
  hook: "hfk_",
  /** Of an agent that runs steps, and of its pairing token: both follow `<organization>.`. */
  agent: "hfx_",
  /** Dispatches steps at the gateway's internal listener. */
  dispatch: "hfg_",
  /** What the api and the gateway know each other by. */
  service: "hfv_",
} as const;

export type SecretKind = keyof typeof secretPrefix;

/** Before a recovery bundle as one line to paste, which contains its secret: `hfbundle1.<root>.<bundle>`. */
export const BUNDLE_LINE_PREFIX = "hfbundle1.";
