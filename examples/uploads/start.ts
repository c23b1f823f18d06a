/**
 * Starts the server of plinth.config.ts, and serves the page on another port. Prints the URLs.
 *
 * node scripts/run.mjs examples/uploads/start.ts [--port 4400] [--page-port 4401] [--data examples/uploads/data]
 */
import { runPageExample } from '../page-example.ts'

await runPageExample({
  folder: import.meta.dirname,
  ports: [4400, 4401],
  files: ['index.html', 'drawer.css', 'drawer.ts'],
  introduce: ({ apiUrl, pageUrl }) => ({
    // No secrets: users of the page sign in anonymously.
    environment: {
      PAGE: pageUrl,
      AUTH: `${apiUrl}/api/auth`,
      DRAWER: `${apiUrl}/api/storage/drawer`,
      API: apiUrl,
      JSON: 'Content-Type: application/json',
    },
    welcome: (demoPath) => `\
  The drawer      ${pageUrl}/
  For a shell     ${demoPath}

examples/uploads/README.md describes the next steps.`,
  }),
})
