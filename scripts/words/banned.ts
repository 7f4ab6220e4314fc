// What the repository does not say, and what it says instead. A phrase belongs here when a native speaker would have to
// read it twice, or when it is a second word for a thing that has one in docs/reference/glossary.md.

/** Whole words, in any case, also across line breaks: in prose, comments and text that a program prints. */
export const bannedPhrases: Record<string, string> = {
  "counts no more": "is no longer accepted",
  "count no more": "are no longer accepted",
  "nobody at it": "detached",
  "given back": "released, or returned",
  "gives back": "releases, or returns",
  "own side": "control plane",
  "our side": "control plane; in a benchmark, Holdfast",
  "for ever": "cannot be undone, or without a time limit",
  "no such thing": "not found",
  "not yours to see": "you have no access",
  "answers with": "returns",
  "set aside": "quarantined, or ignored",
  "ends in peace": "exits normally",
  "nothing is heard": "offline",
  particulars: "details",
  "scrolled away": "scrollback",
};

/** Parts of identifiers and of file names: `told` is also found in `wasTold` and `told-once.ts`. */
export const bannedNames: Record<string, string> = {
  lazily: "on demand, or the name of what is created",
  life: "validity, lifecycle or activity",
  tells: "reports",
  told: "reported, received, published or printed",
};

/** Where words of others or of earlier versions stand. */
export const exempt: RegExp[] = [
  // Their digests are checked at every start, so an applied migration is never edited.
  /^control-plane\/db\/migrations\//,
  // Lists renames, so it quotes the old names.
  /^CHANGELOG\.md$/,
  // Written by npm run generate from sources that are checked.
  /^docs\/reference\//,
  /^package-lock\.json$/,
  /^LICENSE$/,
  // These files quote what they look for.
  /^scripts\/words\//,
];
