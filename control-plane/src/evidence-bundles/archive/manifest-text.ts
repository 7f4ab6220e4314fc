// The one form in which a manifest is written. The signature covers what a manifest says; that it is also in this form excludes
// what two readers may understand differently, such as a key that appears twice.

export function manifestText(manifest: unknown): string {
  return `${JSON.stringify(manifest, null, 2)}\n`;
}
