import { mkdirSync, rmSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import type { AgentFile } from "../identity/agent-file.ts";
import { stateFiles } from "../identity/state-directory.ts";
import { emptyState, type RecoveryState } from "../recovery/state.ts";
import { openRecoveryFile } from "../recovery/state-file.ts";
import { lookAtRecovery, recoveryText } from "./recovery.ts";

const HOUR = 3_600_000;
const now = Date.UTC(2027, 0, 1, 12);
const node_id = "0190a3f0-0000-7000-8000-000000000001";
const agent = { node_id, profile: { name: "lab" }, recovery_api_url: "https://recovery" } as AgentFile;
const tokenUntil = (at: number, profile = "lab") => ({
  ...{ token: "hfr_secret", seq: 7, profile, issued_at: new Date(now).toISOString() },
  expires_at: new Date(at).toISOString(),
});

function look(changes: Partial<RecoveryState>) {
  const files = stateFiles(scratchDirectory());
  const store = openRecoveryFile(files, node_id);
  store.write({ ...emptyState(node_id), ...changes });
  store.close();
  const { picture } = lookAtRecovery(files, agent, now);
  return { picture, text: recoveryText(picture, now) };
}

describe("what diagnose says about recovery", () => {
  it("AGENT-04 is whether there is a current token and until when, never the token itself", () => {
    const { picture, text } = look({ token: tokenUntil(now + 5 * HOUR) });
    expect(text).toBe("token 7 valid until 2027-01-01T17:00:00.000Z, 5 hours from now");
    expect(picture).toMatchObject({ url: "https://recovery", token: { seq: 7, current: true }, requested: false });
    expect(JSON.stringify(picture)).not.toContain("hfr_");
    expect(look({ token: tokenUntil(now - 5 * HOUR) }).text).toMatch(/^token 7 expired at .*, 5 hours ago$/);
    expect(look({ token: tokenUntil(now + HOUR, "old") }).text).toBe("token 7 is for another environment, old");
    expect(look({}).text).toBe("no recovery token yet");
  });

  it("AGENT-03 is also a request without a response, and until when further ones are suppressed", () => {
    const { text } = look({
      sent: { token: tokenUntil(now + HOUR), key: "key" },
      rejected: { count: 1, until: now + 600_000 },
    });
    expect(text).toContain("a new identity was requested, without a response so far");
    expect(text).toContain("no other one is requested before 2027-01-01T12:10:00.000Z");
    expect(look({ rejected: { count: 1, until: now - 1 } }).picture.suppressed_until).toBeNull();
  });

  it("AGENT-05 is why it cannot be read, if that is so", () => {
    const files = stateFiles(scratchDirectory());
    rmSync(files.recovery, { force: true });
    mkdirSync(files.recovery);
    expect(recoveryText(lookAtRecovery(files, agent, now).picture, now)).toMatch(/^cannot be read: EISDIR/);
  });
});
