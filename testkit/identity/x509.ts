// The one place that loads an X.509 library, which needs its metadata polyfill first. The product writes and reads
// certificates itself; tests compare with what others make of them.

import "reflect-metadata";
import { webcrypto } from "node:crypto";
import * as x509 from "@peculiar/x509";

x509.cryptoProvider.set(webcrypto);

export { x509 };
