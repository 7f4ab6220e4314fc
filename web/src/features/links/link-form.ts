// What a one-time link asks for and says, decided from what the server tells about it.

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
};

const forms: Record<LinkPurpose, (link: LinkFacts) => LinkForm> = {
  first_admin: () => ({
    title: "Create the administrator",
    intro: "You are the first person here. This account may do everything, and invites everybody else.",
    asksEmail: true,
    asksName: true,
    password: "new",
    action: "Create account",
  }),
  sign_in: () => ({
    title: "Set a new password",
    intro: "The new password replaces the old one, and you are signed in with it.",
    asksEmail: false,
    asksName: false,
    password: "new",
    action: "Set password and sign in",
  }),
  invitation: (link) => ({
    title: link.organization ? `Join ${link.organization}` : "Join an organization",
    intro: link.known_user
      ? "You have an account here already. Enter its password to accept the invitation."
      : "Tell us your name and choose a password to accept the invitation.",
    asksEmail: false,
    asksName: !link.known_user,
    password: link.known_user ? "current" : "new",
    action: "Accept invitation",
  }),
};

export function formOfLink(link: LinkFacts): LinkForm {
  return forms[link.purpose](link);
}
