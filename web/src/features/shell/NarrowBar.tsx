// On narrow screens: a bar at the top, and the navigation in a drawer.

import { Dialog } from "@base-ui/react/dialog";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { IconButton } from "../../design/controls/Button.tsx";
import { Icon } from "../../design/controls/Icon.tsx";
import { Wordmark } from "../../design/layout/Logo.tsx";
import { Navigation } from "./Navigation.tsx";

export function NarrowBar() {
  const [open, setOpen] = useState(false);
  return (
    <header className="on-deep sticky top-0 z-30 flex h-13 items-center justify-between bg-deep pr-2 pl-4 lg:hidden">
      <Link to="/" className="rounded-sm" aria-label="Holdfast, overview">
        <Wordmark />
      </Link>
      <Dialog.Root open={open} onOpenChange={setOpen}>
        <Dialog.Trigger render={<IconButton label="Open navigation" onDeep className="size-9" />}>
          <Icon name="menu" className="size-5" />
        </Dialog.Trigger>
        <Dialog.Portal>
          <Dialog.Backdrop className="fixed inset-0 z-40 bg-[rgb(4_16_18_/_60%)] lg:hidden" />
          <Dialog.Popup className="on-deep fixed inset-y-0 left-0 z-40 w-72 max-w-[85vw] bg-deep text-on-deep shadow-raised outline-none lg:hidden">
            <Dialog.Title className="sr-only">Navigation</Dialog.Title>
            <Navigation onNavigate={() => setOpen(false)} />
            <Dialog.Close
              render={<IconButton label="Close navigation" onDeep className="absolute top-4 right-3" />}
            >
              <Icon name="close" />
            </Dialog.Close>
          </Dialog.Popup>
        </Dialog.Portal>
      </Dialog.Root>
    </header>
  );
}
