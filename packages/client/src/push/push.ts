/** The feature `push`: registers this browser for web push notifications. */
import type { Core } from '../core/core.ts'
import { failure } from '../core/error.ts'
import type { Feature } from '../core/feature.ts'
import { randomId } from '../core/ids.ts'
import { createLocalValues } from '../core/local-values.ts'

interface Registration {
  readonly serviceWorker: ServiceWorkerRegistration | string
  readonly topics?: readonly string[]
}

function createPush(core: Core): object {
  const post = (path: string, body: object) => core.json<void>('POST', `/api/push/${path}`, { body })

  const topic = (name: string, action: string) => post(`topic/${action}`, { topic: name })

  return {
    /** To be called in response to a click: the browser asks the user. */
    async register({ serviceWorker, topics = [] }: Registration): Promise<void> {
      if ((await Notification.requestPermission()) !== 'granted') throw failure('permission-denied')
      const { push } = await core.json<{ push: { vapidPublicKey: string | null } | null }>('GET', '/api/config')
      if (!push?.vapidPublicKey) throw failure('push-not-configured')
      const worker =
        typeof serviceWorker === 'string' ? await navigator.serviceWorker.register(serviceWorker) : serviceWorker
      await navigator.serviceWorker.ready
      const options = { userVisibleOnly: true, applicationServerKey: push.vapidPublicKey }
      const subscription = await worker.pushManager.subscribe(options)
      const values = createLocalValues(core)
      const deviceId = (await values.get('device-id')) ?? randomId()
      await values.set('device-id', deviceId)
      await post('register', { deviceId, platform: 'web', token: JSON.stringify(subscription) })
      for (const name of topics) await topic(name, 'subscribe')
    },
    async unregister(): Promise<void> {
      const worker = await navigator.serviceWorker.getRegistration()
      const subscription = await worker?.pushManager.getSubscription()
      if (!subscription) return
      await post('unregister', { token: JSON.stringify(subscription) })
      await subscription.unsubscribe()
    },
    subscribe: (name: string) => topic(name, 'subscribe'),
    unsubscribe: (name: string) => topic(name, 'unsubscribe'),
  }
}

/** Push notifications to this device. */
export const push: Feature = (core) => ({ push: createPush(core) })
