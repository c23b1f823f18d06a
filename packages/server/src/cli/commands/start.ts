/** `plinth start`: release mode. One line says that it is ready; nothing secret is printed but to a terminal. */
import type { Command } from '../command.ts'
import { readyLine, serve, serveOptions } from '../serve.ts'

export const startCommand: Command = {
  name: 'start',
  summary: 'Serve in release mode',
  options: serveOptions('0.0.0.0'),
  details: `Prints one line with the address when it is ready, and its log as JSON lines.
SIGTERM, SIGQUIT or Ctrl-C finishes what runs and ends with code 0; a second one ends at
once. Without a terminal, SIGHUP serves the configuration as it is in its files now.
At a terminal, while there is no administrator, it also prints a link to make one.

Environment, each after the option of the same meaning:
  PLINTH_SERVICE_KEY  The root key (default: made up once, kept in the data folder)
  PLINTH_SECRET       Signs tokens (default: made up once, kept in the data folder)
  PLINTH_PORT, PLINTH_HOST, PLINTH_DATA
  PLINTH_TRUST_PROXY  How many proxies stand in front, or the networks they call
                      from, so that X-Forwarded-For is believed (default: none)
  PLINTH_PUBLIC_URL   Where browsers reach the server, for links in mails and sign-in
                      through providers, such as https://api.example.com
  DATABASE_URL        PostgreSQL, instead of SQLite in the data folder
  REDIS_URL           Redis, through which several nodes agree
  REDIS_PREFIX        Begins every key in Redis (default plinth:)`,
  run: ({ options, terminal }) =>
    serve({
      mode: 'release',
      options,
      terminal,
      showsSetupLink: process.stdout.isTTY === true,
      onReady({ app, setupLink }) {
        terminal.out(readyLine(app.url))
        if (setupLink !== null) terminal.out(`There is no administrator yet. Make one at ${setupLink}`)
        return null
      },
    }),
}
