/** Shows notifications, also while no page is open. A click on one opens the page. */
self.addEventListener('install', () => self.skipWaiting())
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()))

self.addEventListener('push', (event) => {
  const { title, body, image, tag, data } = event.data.json()
  event.waitUntil(
    (async () => {
      await self.registration.showNotification(title, { body, image, tag, data })
      for (const page of await self.clients.matchAll()) page.postMessage({ title, body, data })
    })(),
  )
})

self.addEventListener('notificationclick', (event) => {
  event.notification.close()
  event.waitUntil(
    (async () => {
      const [page] = await self.clients.matchAll({ type: 'window' })
      if (page) await page.focus()
      else await self.clients.openWindow('/')
    })(),
  )
})
