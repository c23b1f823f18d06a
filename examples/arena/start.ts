/**
 * The arena: the server of plinth.config.ts, and beside it the page to play on, as plain files from a port of its own.
 * Prints where to go.
 *
 * node scripts/run.mjs examples/arena/start.ts [--port 4310] [--page-port 4311] [--data examples/arena/data]
 */
import { runPageExample } from '../page-example.ts'

await runPageExample({
  folder: import.meta.dirname,
  ports: [4310, 4311],
  files: ['index.html', 'arena.css', 'arena.mjs', 'person.mjs', 'room.mjs'],
  introduce: ({ apiUrl, pageUrl, settings }) => ({
    environment: {
      PAGE: pageUrl,
      ROOM: `${apiUrl}/api/room`,
      PLINTH_URL: apiUrl,
      PLINTH_SERVICE_KEY: settings.serviceKey,
    },
    welcome: (demoPath) => `\
  The arena     ${pageUrl}/
  For a shell   ${demoPath}

Open it in two windows; examples/arena/README.md goes on from here.`,
  }),
})
