/**
 * Starts the server of plinth.config.ts, and serves the page with its service worker on another port. Prints the URLs.
 *
 * node scripts/run.mjs examples/push/start.ts [--port 4500] [--page-port 4501] [--data examples/push/data]
 */
import { createECDH } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runPageExample } from '../page-example.ts'

/** Loads the VAPID keys, or generates them once: the subscriptions of browsers are bound to them. */
function loadOrCreateKeys(dataFolder: string): { publicKey: string; privateKey: string } {
  const path = join(dataFolder, 'vapid.json')
  if (existsSync(path)) return JSON.parse(readFileSync(path, 'utf8'))
  const keys = createECDH('prime256v1')
  const publicKey = keys.generateKeys('base64url')
  const privateKey = Buffer.from(keys.getPrivateKey('hex').padStart(64, '0'), 'hex').toString('base64url')
  mkdirSync(dataFolder, { recursive: true })
  writeFileSync(path, JSON.stringify({ publicKey, privateKey }), { mode: 0o600 })
  return { publicKey, privateKey }
}

await runPageExample({
  folder: import.meta.dirname,
  ports: [4500, 4501],
  files: ['index.html', 'push.css', 'page.ts', 'worker.ts'],
  prepare(dataFolder) {
    if (process.env.VAPID_PUBLIC_KEY) return
    const { publicKey, privateKey } = loadOrCreateKeys(dataFolder)
    process.env.VAPID_PUBLIC_KEY = publicKey
    process.env.VAPID_PRIVATE_KEY = privateKey
  },
  introduce: ({ apiUrl, pageUrl, settings }) => ({
    environment: {
      PAGE: pageUrl,
      PUSH: `${apiUrl}/api/push`,
      JSON: 'Content-Type: application/json',
      KEY: `X-Platform-Service-Key: ${settings.serviceKey}`,
    },
    welcome: (demoPath) => `\
  The page      ${pageUrl}/
  For a shell   ${demoPath}

Open the page and turn notifications on. examples/push/README.md describes the next steps.`,
  }),
})
