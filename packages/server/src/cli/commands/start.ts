/** `plinth start`: release mode. Prints a line when ready; prints secrets only to a terminal. */
import type { Command } from '../command.ts'
import { readyLine, serve, serveOptions } from '../serve.ts'

export const startCommand: Command = {
  name: 'start',
  summary: 'Serve in release mode',
  options: serveOptions('0.0.0.0'),
  details: `Prints one line with the address when it is ready, and its log as JSON lines.
SIGTERM, SIGQUIT or Ctrl-C shuts down gracefully with exit code 0; a second one exits at
once. Without a terminal, SIGHUP reloads the configuration. At a terminal, while there is
no administrator, it also prints a link that creates one.

Environment variables; options take precedence:
  PLINTH_SERVICE_KEY  The root key (default: generated, stored in the data folder)
  PLINTH_SECRET       Signs tokens (default: generated, stored in the data folder)
  PLINTH_PORT, PLINTH_HOST, PLINTH_DATA
  PLINTH_TRUST_PROXY  The number of reverse proxies in front, or their networks, whose
                      X-Forwarded-For is trusted (default: none)
  PLINTH_PUBLIC_URL   The public URL, for links in mails and sign-in through providers,
                      such as https://api.example.com
  DATABASE_URL        PostgreSQL, instead of SQLite in the data folder
  REDIS_URL           Redis, for coordination between several nodes
  REDIS_PREFIX        Prefix of every key in Redis (default plinth:)`,
  run: ({ options, terminal }) =>
    serve({
      mode: 'release',
      options,
      terminal,
      showsSetupLink: process.stdout.isTTY === true,
      onReady({ app, setupLink }) {
        terminal.out(readyLine(app.url))
        if (setupLink !== null) terminal.out(`There is no administrator yet. Create one at ${setupLink}`)
        return null
      },
    }),
}
