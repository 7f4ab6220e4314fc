// Builds the web app into dist/, which the api serves. In development, pages come from Vite and
// calls go to an api on its default port.

import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// As an object, so that the Host header stays: the api compares it with the Origin of a write.
const api = { target: "http://127.0.0.1:3001", ws: true };

export default defineConfig({
  plugins: [react(), tailwindcss()],
  build: {
    target: "es2023",
    // The content security policy allows fonts and images as files only.
    assetsInlineLimit: 0,
    rolldownOptions: {
      output: {
        // A few shared files instead of forty crumbs; what changes rarely stays cached over releases.
        codeSplitting: {
          groups: [
            { name: "react", test: /node_modules\/(react|react-dom|scheduler|@tanstack)\// },
            // Only the page that needs it loads it.
            { name: "xterm", test: /node_modules\/@xterm\// },
            { name: "graph", test: /node_modules\/(@xyflow|d3-[a-z]+|zustand|classcat)\// },
            {
              name: "code-editor",
              test: /node_modules\/(@codemirror|@lezer|@marijn|style-mod|w3c-keyname|crelt)\//,
            },
            { name: "workflows", test: /node_modules\/(yaml|jsonata|croner)\/|workflows\/src/ },
            { name: "vendor", test: /node_modules/ },
            { name: "common", test: /contracts\/src|web\/src\/(design\/|[\w-]+\.tsx?$)/ },
          ],
        },
      },
    },
  },
  server: { proxy: { "/v1": api, "/openapi.json": api, "/runbooks": api } },
});
