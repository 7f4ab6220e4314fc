// Makes a copy of the sources, and prints where it is. A process of its own: copying takes seconds on a busy machine, and
// whoever runs the stories must see all of them meanwhile.

import { copyCheckout } from "../../../testkit/processes/checkout.ts";

const { root, command } = copyCheckout({});
process.stdout.write(JSON.stringify({ root, command }));
