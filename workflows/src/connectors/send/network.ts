// From where connectors connect, and to which addresses they may. The worker reaches public addresses and what its operator lists; an
// agent, whatever the owner of its host allows.

import { type Allowance, type Destination, type Resolve, resolveDestination } from "@holdfast/kit/addresses";

export type Network = {
  /** The addresses to connect to; nothing else resolves the name. Throws AddressRefused. */
  addressesOf(destination: Destination): Promise<string[]>;
};

export function networkOf(allowance: Allowance, resolve?: Resolve): Network {
  return { addressesOf: (destination) => resolveDestination(destination, allowance, resolve) };
}
