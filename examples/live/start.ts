/**
 * Starts the server of plinth.config.ts, fills it on the first start, and serves the page on another port. Prints the
 * URLs.
 *
 * node scripts/run.mjs examples/live/start.ts [--port 4300] [--page-port 4301] [--data examples/live/data]
 */
import { systemClock } from '../../packages/server/src/base/clock.ts'
import { createFirstSigningKey } from '../../packages/server/src/features/users/sessions/signing-keys.ts'
import { createTokens } from '../../packages/server/src/features/users/sessions/tokens.ts'
import { runPageExample } from '../page-example.ts'
import { fill } from './fill.ts'

/** Every start signs new tokens. */
const demoTokenLifetimeMs = 24 * 60 * 60 * 1000

/** Signs a token like the server does; the user need not exist. */
function signToken(id: string, secret: string): string {
  const tokens = createTokens(createFirstSigningKey(secret), systemClock)
  return tokens.signAccess({ id, displayName: id, expiresInMs: demoTokenLifetimeMs })
}

await runPageExample({
  folder: import.meta.dirname,
  ports: [4300, 4301],
  files: ['index.html', 'map.css', 'map.ts'],
  async introduce({ apiUrl, pageUrl, settings }) {
    await fill(apiUrl, settings.serviceKey)
    const [marie, omar] = ['marie', 'omar'].map((id) => signToken(id, settings.secret))
    return {
      environment: {
        PAGE: pageUrl,
        DB: `${apiUrl}/api/db/shared/tables`,
        JSON: 'Content-Type: application/json',
        MARIE: `Authorization: Bearer ${marie}`,
        OMAR: `Authorization: Bearer ${omar}`,
      },
      welcome: (demoPath) => `\
  Anonymous map   ${pageUrl}/
  Marie's map     ${pageUrl}/#token=${marie}
  For a shell     ${demoPath}

Open both side by side. examples/live/README.md describes the next steps.`,
    }
  },
})
