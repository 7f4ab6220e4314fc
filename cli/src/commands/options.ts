// Parsers of option values that several commands share.

import { integer } from "@holdfast/kit/settings";
import { InvalidArgumentError } from "commander";

export function wholeNumber(range: { min: number; max: number }): (text: string) => number {
  return (text) => {
    const number = integer(range).parse(text);
    if (number === undefined)
      throw new InvalidArgumentError(`Use a whole number from ${range.min} to ${range.max}.`);
    return number;
  };
}

/** For a repeatable option. */
export function collected(text: string, earlier: string[] | undefined): string[] {
  return [...(earlier ?? []), text];
}
