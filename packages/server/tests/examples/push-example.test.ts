/**
 * The push example with a local push service: subscribing and registering in a real browser, signing and encrypting in
 * the server, and notifications in the service worker. Without Chromium only the README is tested.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createECDH } from 'node:crypto'
import { systemClock } from '../../src/base/clock.ts'
import { describePageExample } from '../harness/examples/page-example.ts'
import { type Chromium, describeInBrowser, openChromium } from '../harness/processes/chromium.ts'
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

/** Runs in a page: replaces the push service of the browser by the local one, and checks the subscription options. */
async function mockPushManager(token: string, publicKey: string): Promise<void> {
  const subscription = { toJSON: () => JSON.parse(token), unsubscribe: async () => true }
  PushManager.prototype.subscribe = async (options) => {
    const isExpected = options?.userVisibleOnly === true && options.applicationServerKey === publicKey
    if (!isExpected) throw new Error('unexpected subscription options')
    return subscription as unknown as PushSubscription
  }
  PushManager.prototype.getSubscription = async () => subscription as unknown as PushSubscription
}

/** Runs in a page: clicks a button, and resolves with the resulting status text. */
function click(id: string, expected: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const state = document.getElementById('state') as HTMLElement
    const timer = setTimeout(() => reject(new Error(`Status: ${state.textContent}`)), 60_000)
    new MutationObserver((_, observer) => {
      if (document.body.dataset.state !== expected && !state.textContent?.startsWith('Error')) return
      observer.disconnect()
      clearTimeout(timer)
      resolve(state.textContent ?? '')
    }).observe(document.body, { subtree: true, childList: true, attributes: true })
    // The button is enabled once the script has loaded.
    const button = document.getElementById(id) as HTMLButtonElement
    const press = () => !button.disabled && button.click()
    if (button.disabled) new MutationObserver(press).observe(button, { attributeFilter: ['disabled'] })
    press()
  })
}

/** Runs in a page: resolves with the notifications once the page lists this number of messages. */
function shown(count: number): Promise<{ listed: string[]; notifications: string[] }> {
  return new Promise((resolve, reject) => {
    const list = document.getElementById('shown') as HTMLElement
    const timer = setTimeout(() => reject(new Error(`Listed: ${list.textContent}`)), 60_000)
    const check = async () => {
      if (list.children.length < count) return
      clearTimeout(timer)
      const worker = await navigator.serviceWorker.ready
      const notifications = (await worker.getNotifications()).map(({ title, body, tag }) => `${title}/${body}/${tag}`)
      resolve({ listed: [...list.children].map(({ textContent }) => textContent ?? ''), notifications })
    }
    new MutationObserver(check).observe(list, { childList: true })
    check()
  })
}

describeInBrowser('web push', 'a browser', (chromium) => {
  const browser = pushes.subscribe()
  let page: Chromium

  beforeAll(async () => {
    page = await openChromium(chromium)
    await page.allowNotifications(example.demo('PAGE'))
    await page.open(`${example.demo('PAGE')}/`)
    await page.run(mockPushManager, browser.token, publicKey)
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

  test('subscribes and registers the browser', async () => {
    expect(await page.run(click, 'on', 'on')).toBe('Notifications are on.')
  })

  test('shows a message that the server has encrypted for the browser', async () => {
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

  test('removes the device when notifications are turned off', async () => {
    expect(await page.run(click, 'off', 'off')).toBe('Notifications are off.')
    const before = browser.taken.length
    const other = pushes.subscribe()
    await page.run(mockPushManager, other.token, publicKey)
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
