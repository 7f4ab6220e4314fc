// How the way back from a terminal looks: an arrow in the header, a button in a panel.

import { buttonClasses } from "../../design/controls/Button.tsx";

export const backClasses = {
  arrow:
    "flex size-8 shrink-0 items-center justify-center rounded-md text-on-deep-muted hover:bg-deep-hover hover:text-on-deep",
  button: buttonClasses(),
};
