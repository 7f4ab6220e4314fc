// Where a terminal failed and who can repair it, in words for the page.

import { type TerminalHop, terminalHopWords } from "@holdfast/contracts/reasons/hops";
import { type TerminalOwner, terminalOwnerWords } from "@holdfast/contracts/reasons/owners";

export const hopInWords = (hop: string) => terminalHopWords[hop as TerminalHop] ?? hop.replaceAll("_", " ");
export const ownerInWords = (owner: string) => terminalOwnerWords[owner as TerminalOwner] ?? owner;
