/**
 * Starts the arena: the server with plinth.config.ts, and the page on a port of its own. Prints the
 * addresses.
 *
 * node scripts/run.mjs examples/arena/start.ts [--port 4310] [--page-port 4311] [--data examples/arena/data]
 */
import { runPageExample } from '../page-example.ts'

await runPageExample({
  folder: import.meta.dirname,
  ports: [4310, 4311],
  files: ['index.html', 'arena.css', 'arena.ts'],
  introduce: ({ apiUrl, pageUrl, settings }) => ({
    environment: {
      PAGE: pageUrl,
      ROOM: `${apiUrl}/api/room`,
      PLINTH_URL: apiUrl,
      PLINTH_SERVICE_KEY: settings.serviceKey,
    },
    welcome: (demoPath) => `\
  Arena         ${pageUrl}/
  Shell setup   ${demoPath}

Open the arena in two windows, then continue with examples/arena/README.md.`,
  }),
})
