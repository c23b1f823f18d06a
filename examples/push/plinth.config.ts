/**
 * Web push only: visitors sign in anonymously and register their browsers. start.ts generates the VAPID keys on the
 * first start and stores them with the data.
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
      // The test of this example uses a local push service.
      localServices: PUSH_SERVICE ? [PUSH_SERVICE] : [],
    },
  },
})
