// What to say under a new password while it is typed. The rule itself is the contract's `NewPassword`.

export const minimumPasswordLength = 12;

export function passwordHint(password: string): string {
  const length = [...password].length;
  if (length === 0) return `At least ${minimumPasswordLength} characters. Several random words work well.`;
  const missing = minimumPasswordLength - password.length;
  if (missing > 0) return `${missing} more ${missing === 1 ? "character" : "characters"}.`;
  return `Long enough (${length} characters).`;
}
