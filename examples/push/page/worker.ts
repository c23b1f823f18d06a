/** Shows notifications, also while no page is open. A click on one opens the page. */

/** The part of the types of service workers that is used; they cannot be combined with those of pages. */
interface Worker {
  readonly registration: ServiceWorkerRegistration
  readonly clients: {
    claim(): Promise<void>
    matchAll(options?: {
      type: 'window'
    }): Promise<{ postMessage(message: unknown): void; focus(): Promise<unknown> }[]>
    openWindow(url: string): Promise<unknown>
  }
  skipWaiting(): Promise<void>
  addEventListener(type: string, listener: (event: WorkerEvent) => void): void
}

interface WorkerEvent {
  waitUntil(work: Promise<unknown>): void
  /** Of `push`. */
  readonly data: { json(): { title: string; body?: string; image?: string; tag?: string; data?: unknown } }
  /** Of `notificationclick`. */
  readonly notification: Notification
}

const worker = self as unknown as Worker

async function show(event: WorkerEvent): Promise<void> {
  const { title, ...options } = event.data.json()
  await worker.registration.showNotification(title, options)
  for (const page of await worker.clients.matchAll()) page.postMessage({ title, body: options.body })
}

async function openPage(): Promise<void> {
  const [page] = await worker.clients.matchAll({ type: 'window' })
  if (page) await page.focus()
  else await worker.clients.openWindow('/')
}

worker.addEventListener('install', () => void worker.skipWaiting())
worker.addEventListener('activate', (event) => event.waitUntil(worker.clients.claim()))
worker.addEventListener('push', (event) => event.waitUntil(show(event)))
worker.addEventListener('notificationclick', (event) => {
  event.notification.close()
  event.waitUntil(openPage())
})
