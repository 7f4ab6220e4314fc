// Asks the agent at the other end of a stream to return a nonce: proof that it is alive, and not just its connection.

export type Challenges = {
  /** Whether the agent returns the nonce in time. */
  challenge(nonce: Buffer): Promise<boolean>;
  returned(nonce: Buffer): void;
  /** The stream has ended: nobody returns anything. */
  end(): void;
};

const WITHIN_MS = 10_000;

export function createChallenges(ping: (nonce: Buffer) => void): Challenges {
  const open = new Map<string, (answered: boolean) => void>();
  let ended = false;
  return {
    challenge: (nonce) =>
      new Promise((resolve) => {
        const key = nonce.toString("hex");
        const settle = (answered: boolean) => {
          clearTimeout(timer);
          open.delete(key);
          resolve(answered);
        };
        const timer = setTimeout(() => settle(false), WITHIN_MS).unref();
        open.set(key, settle);
        if (ended) settle(false);
        else ping(nonce);
      }),
    returned: (nonce) => open.get(nonce.toString("hex"))?.(true),
    end() {
      ended = true;
      for (const settle of open.values()) settle(false);
    },
  };
}
