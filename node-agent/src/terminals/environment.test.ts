import { describe, expect, it } from "vitest";
import { localeOf } from "./environment.ts";

describe("the locale of a shell", () => {
  it.for([
    ["LANG=de_DE.UTF-8\n", "de_DE.UTF-8"],
    ['# set by localectl\nLANG="en_US.utf8"\nLC_TIME=C\n', "en_US.utf8"],
    ["export LANG=ca_ES.UTF-8@valencia", "ca_ES.UTF-8@valencia"],
    ["LANG=de_DE\n", "C.UTF-8"],
    ["LANG=C\n", "C.UTF-8"],
    ["LC_ALL=fr_FR.UTF-8\n", "C.UTF-8"],
    ["LANG=$(reboot).UTF-8\n", "C.UTF-8"],
    ["", "C.UTF-8"],
  ] as const)("TERM-10 of %j is %s", ([settings, locale]) => {
    expect(localeOf(settings)).toBe(locale);
  });
});
