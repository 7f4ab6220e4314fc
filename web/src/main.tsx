// The web app starts here. public/boot.js ran before.

import "./design/tokens.css";
import { CSPProvider } from "@base-ui/react/csp-provider";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { followNetwork, onReachChange } from "./connection.ts";
import { takeLinkSecret } from "./features/links/secret.ts";
import { queryClient, router } from "./router.tsx";

takeLinkSecret();

followNetwork(window);
onReachChange((reach) => {
  if (reach === "unreachable") return;
  void router.invalidate();
  void queryClient.invalidateQueries();
});

// After the first page, loads the code of the others: they then work even if the network fails later.
setTimeout(() => {
  for (const route of Object.values(router.routesById)) void router.loadRouteChunk(route);
}, 2_000);

const container = document.getElementById("root");
if (!container) throw new Error("index.html has no #root");

createRoot(container).render(
  <StrictMode>
    <CSPProvider disableStyleElements>
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </CSPProvider>
  </StrictMode>,
);
