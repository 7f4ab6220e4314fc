// The one place that loads the X.509 library: it needs its metadata polyfill first.

import "reflect-metadata";
import { webcrypto } from "node:crypto";
import * as x509 from "@peculiar/x509";

x509.cryptoProvider.set(webcrypto);

export { x509 };
