/**
 * Web push and nothing else: visitors get an account without asking, and everybody may be sent to. start.ts makes the
 * keys on the first start, and keeps them with the data.
 */
import { defineConfig } from 'plinth'

const { VAPID_PUBLIC_KEY = '', VAPID_PRIVATE_KEY, PUSH_SERVICE } = process.env

export default defineConfig({
  auth: { anonymous: true },
  push: {
    vapid: {
      subject: 'mailto:ops@example.com',
      publicKey: VAPID_PUBLIC_KEY,
      privateKey: VAPID_PRIVATE_KEY,
      // For the test of this example, which has a push service of its own on this machine.
      localServices: PUSH_SERVICE ? [PUSH_SERVICE] : [],
    },
  },
})
