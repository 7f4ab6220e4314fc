// Reproducible random numbers: the same seed results in the same fleet.

export type Chance = {
  /** In [0, 1). */
  next(): number;
  /** One of these. */
  pick<T>(choices: readonly T[]): T;
  /** True with this probability. */
  happens(probability: number): boolean;
  /** A whole number from `least` on, below `limit`. */
  whole(least: number, limit: number): number;
};

/** `stream` separates sequences of one seed, such as the nodes and the events of the fleet. */
export function chanceOf(seed: number, stream: number): Chance {
  // SplitMix32: short, and good enough where nothing must be unpredictable.
  let state = (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(stream + 1, 0xc2b2ae35)) >>> 0;
  const next = () => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
  const whole = (least: number, limit: number) => least + Math.floor(next() * (limit - least));
  return {
    next,
    whole,
    happens: (probability) => next() < probability,
    pick(choices) {
      const chosen = choices[whole(0, choices.length)];
      if (chosen === undefined) throw new Error("nothing to choose from");
      return chosen;
    },
  };
}
