// The fields and texts of a one-time link's form, derived from what the server returns about it.

import type { AnswerOf } from "@holdfast/contracts/endpoint";
import type { inspectLink, LinkPurpose } from "@holdfast/contracts/endpoints/sign-in";

export type LinkFacts = AnswerOf<typeof inspectLink>;

export type LinkForm = {
  title: string;
  intro: string;
  asksEmail: boolean;
  asksName: boolean;
  /** Whoever has an account joins with its password: an invitation must not be able to change it. */
  password: "current" | "new";
  action: string;
  /** The person says whether they have an account. */
  asksStanding: boolean;
  /** It replaces a password, so the tokens made under the old one may end too. */
  offersRevocation: boolean;
};

/** Chosen by the person: the server does not reveal who has an account, because the inviter has the link too. */
export type Standing = "new" | "existing";

const forms: Record<LinkPurpose, (link: LinkFacts, standing: Standing) => LinkForm> = {
  first_admin: () => ({
    title: "Create the administrator",
    intro: "You are the first user. This account has full control and can invite others.",
    asksEmail: true,
    asksName: true,
    password: "new",
    action: "Create account",
    asksStanding: false,
    offersRevocation: false,
  }),
  sign_in: () => ({
    title: "Set a new password",
    intro:
      "The new password replaces the old one. Your other sessions end, your terminals close, and you are signed in here.",
    asksEmail: false,
    asksName: false,
    password: "new",
    action: "Set password and sign in",
    asksStanding: false,
    offersRevocation: true,
  }),
  invitation: (link, standing) => ({
    title: link.organization ? `Join ${link.organization}` : "Join an organization",
    intro:
      standing === "existing"
        ? "Enter the password of your account to accept the invitation."
        : "Enter your name and choose a password to accept the invitation.",
    asksEmail: false,
    asksName: standing === "new",
    password: standing === "new" ? "new" : "current",
    action: "Accept invitation",
    asksStanding: true,
    offersRevocation: false,
  }),
};

export function formOfLink(link: LinkFacts, standing: Standing): LinkForm {
  return forms[link.purpose](link, standing);
}
