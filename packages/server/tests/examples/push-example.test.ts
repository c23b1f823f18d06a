/**
 * The push example does what its README says, with a push service of ours: subscribing and registering in a real
 * browser, signing and encrypting in the server, and showing in the service worker. The browser needs Chromium; where
 * there is none this says so, and the README is run all the same.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createECDH } from 'node:crypto'
import { systemClock } from '../../src/base/clock.ts'
import { type Chromium, describeInBrowser, openChromium } from '../harness/chromium.ts'
import { describePageExample } from '../harness/page-example.ts'
import { openPushEndpoint } from '../harness/push/push-endpoint.ts'

const keys = createECDH('prime256v1')
const publicKey = keys.generateKeys('base64url')
const pushes = openPushEndpoint(publicKey, systemClock)
const example = describePageExample('push', () => ({
  PUSH_SERVICE: pushes.origin,
  VAPID_PUBLIC_KEY: publicKey,
  VAPID_PRIVATE_KEY: Buffer.from(keys.getPrivateKey('hex').padStart(64, '0'), 'hex').toString('base64url'),
}))
afterAll(() => pushes.close())

/** Runs in a page: from here on the browser subscribes at our push service, if asked with the right key. */
async function standIn(token: string, publicKey: string): Promise<void> {
  const subscription = { toJSON: () => JSON.parse(token), unsubscribe: async () => true }
  PushManager.prototype.subscribe = async (options) => {
    const isAsked = options?.userVisibleOnly === true && options.applicationServerKey === publicKey
    if (!isAsked) throw new Error('subscribed in another way')
    return subscription as unknown as PushSubscription
  }
  PushManager.prototype.getSubscription = async () => subscription as unknown as PushSubscription
}

/** Runs in a page: clicks a button, and resolves with what the page says then. */
function click(id: string, expected: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const state = document.getElementById('state') as HTMLElement
    const timer = setTimeout(() => reject(new Error(`It says: ${state.textContent}`)), 60_000)
    new MutationObserver((_, observer) => {
      if (document.body.dataset.state !== expected && !state.textContent?.startsWith('It did not')) return
      observer.disconnect()
      clearTimeout(timer)
      resolve(state.textContent ?? '')
    }).observe(document.body, { subtree: true, childList: true, attributes: true })
    // It can be pressed once the page's script is there.
    const button = document.getElementById(id) as HTMLButtonElement
    const press = () => !button.disabled && button.click()
    if (button.disabled) new MutationObserver(press).observe(button, { attributeFilter: ['disabled'] })
    press()
  })
}

/** Runs in a page: resolves with the notifications once the page lists so many messages. */
function shown(count: number): Promise<{ listed: string[]; notifications: string[] }> {
  return new Promise((resolve, reject) => {
    const list = document.getElementById('shown') as HTMLElement
    const timer = setTimeout(() => reject(new Error(`It lists: ${list.textContent}`)), 60_000)
    const look = async () => {
      if (list.children.length < count) return
      clearTimeout(timer)
      const worker = await navigator.serviceWorker.ready
      const notifications = (await worker.getNotifications()).map(({ title, body, tag }) => `${title}/${body}/${tag}`)
      resolve({ listed: [...list.children].map(({ textContent }) => textContent ?? ''), notifications })
    }
    new MutationObserver(look).observe(list, { childList: true })
    look()
  })
}

describeInBrowser('web push', 'a browser', (chromium) => {
  const browser = pushes.subscribe()
  let page: Chromium

  beforeAll(async () => {
    page = await openChromium(chromium)
    await page.allowNotifications(example.demo('PAGE'))
    await page.open(`${example.demo('PAGE')}/`)
    await page.run(standIn, browser.token, publicKey)
  })

  afterAll(() => page?.close())

  async function broadcast(payload: object): Promise<void> {
    const before = browser.taken.length
    const [name = '', key = ''] = example.demo('KEY').split(': ')
    const response = await fetch(`${example.demo('PUSH')}/broadcast`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', [name]: key },
      body: JSON.stringify({ payload }),
    })
    expect(await response.json()).toEqual({ success: true })
    await pushes.until(() => browser.taken.length > before)
  }

  test('subscribes and registers', async () => {
    expect(await page.run(click, 'on', 'on')).toBe('Notifications are on.')
  })

  test('is woken by what the server has encrypted for it, and shows it', async () => {
    await broadcast({ title: 'Hello', body: 'This page may be closed now.', collapseId: 'hello' })
    await page.deliverPush(example.demo('PAGE'), JSON.stringify(browser.taken.at(-1)?.json))
    expect(await page.run(shown, 1)).toEqual({
      listed: ['Hello: This page may be closed now.'],
      notifications: ['Hello/This page may be closed now./hello'],
    })
    await broadcast({ title: 'Hello', body: 'Once more.', collapseId: 'hello' })
    await page.deliverPush(example.demo('PAGE'), JSON.stringify(browser.taken.at(-1)?.json))
    expect((await page.run(shown, 2)).notifications).toEqual(['Hello/Once more./hello'])
  })

  test('is forgotten when it is switched off', async () => {
    expect(await page.run(click, 'off', 'off')).toBe('Notifications are off.')
    const before = browser.taken.length
    const other = pushes.subscribe()
    await page.run(standIn, other.token, publicKey)
    await page.run(click, 'on', 'on')
    const [name = '', key = ''] = example.demo('KEY').split(': ')
    await fetch(`${example.demo('PUSH')}/broadcast`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', [name]: key },
      body: JSON.stringify({ payload: { title: 'a', body: 'b' } }),
    })
    await pushes.until(() => other.taken.length > 0)
    expect(browser.taken).toHaveLength(before)
  })
})
