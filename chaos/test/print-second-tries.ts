// What failed beside others and was judged by a second run is printed: it passed, and somebody should still look at it.

type Tried = { name: string; notes: readonly string[] };

export function printSecondTries(results: readonly Tried[]): void {
  for (const { name, notes } of results) {
    for (const note of notes.filter((one) => one.startsWith("failed beside others"))) {
      process.stderr.write(`second try of ${name}: ${note}\n`);
    }
  }
}
