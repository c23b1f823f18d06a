/**
 * The uploads example in a real browser: uploads resume after the server is killed, the connection is cut and the page
 * is closed, byte for byte. A relay pauses uploads at a known byte, so that the tests do not depend on timing. Without
 * Chromium only the README is tested.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { connect, createServer, type Socket } from 'node:net'
import { Transform } from 'node:stream'
import { describePageExample } from '../harness/examples/page-example.ts'
import { type Chromium, describeInBrowser, openChromium } from '../harness/processes/chromium.ts'

const MiB = 1024 * 1024
/** The client sends eight chunks of 5 MiB; three are stored when the fourth is paused midway. */
const fileBytes = 40 * MiB
const pauseAtBytes = 18 * MiB
const storedBytes = 15 * MiB
const chunkBytes = 5 * MiB

/** A TCP relay between the browser and the server that can be paused and cut. */
interface Relay {
  readonly port: number
  /** Forwards this many more bytes to the server, then pauses; resolves once it is paused. */
  pauseAfter(bytes: number): Promise<void>
  /** Resumes forwarding, and resets the count of forwarded bytes. */
  resume(): void
  /** Closes every connection, and resumes forwarding. */
  cut(): void
  /** Bytes forwarded to the server since the last `resume`. */
  forwarded(): number
  close(): void
}

async function openRelay(target: number): Promise<Relay> {
  const sockets = new Set<Socket>()
  let allowed = Number.POSITIVE_INFINITY
  let forwarded = 0
  let waiting: (() => void)[] = []
  let onPaused = (): void => {}

  const createGate = (): Transform =>
    new Transform({
      transform(chunk: Buffer, _encoding, done) {
        const pass = (): void => {
          forwarded += chunk.length
          done(null, chunk)
        }
        if (forwarded + chunk.length <= allowed) return pass()
        waiting.push(pass)
        onPaused()
      },
    })
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1')
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        other.destroy()
      })
    }
    client.pipe(createGate()).pipe(upstream)
    upstream.pipe(client)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }

  const resume = (): void => {
    allowed = Number.POSITIVE_INFINITY
    forwarded = 0
    const paused = waiting
    waiting = []
    for (const pass of paused) pass()
  }
  const cut = (): void => {
    waiting = []
    for (const socket of sockets) socket.destroy()
    resume()
  }
  return {
    port,
    pauseAfter: (bytes) =>
      new Promise((resolve) => {
        allowed = forwarded + bytes
        onPaused = resolve
      }),
    resume,
    cut,
    forwarded: () => forwarded,
    close() {
      cut()
      server.close()
    },
  }
}

const example = describePageExample('uploads', () => ({ PLINTH_PUBLIC_URL: `http://127.0.0.1:${relay.port}` }))
const relay = await openRelay(example.port)
afterAll(() => relay.close())

/** Runs in a page: resolves once an element matches the selector, or no longer does. */
function until(selector: string, isExpected = true): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${selector}: ${document.body.textContent}`)), 60_000)
    const check = (): void => {
      if ((document.querySelector(selector) !== null) !== isExpected) return
      clearTimeout(timer)
      resolve()
    }
    new MutationObserver(check).observe(document, { subtree: true, childList: true, attributes: true })
    check()
  })
}

/** Runs in a page: chooses a file with content derived from its name and size; returns the hash of its bytes. */
async function choose(name: string, size: number, type: string): Promise<string> {
  const words = new Uint32Array(Math.ceil(size / 4))
  let state = size + name.length
  for (let at = 0; at < words.length; at++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    words[at] = state
  }
  const bytes = new Uint8Array(words.buffer, 0, size)
  const input = document.getElementById('choose') as HTMLInputElement
  const chosen = new DataTransfer()
  chosen.items.add(new File([bytes], name, { type, lastModified: 1_700_000_000_000 }))
  input.files = chosen.files
  input.dispatchEvent(new Event('change'))
  const hash = new Uint8Array(await crypto.subtle.digest(`SHA-${256}`, bytes))
  return [...hash].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Runs in a page: draws an image of 800 × 800 pixels and chooses it. */
async function choosePicture(name: string): Promise<void> {
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = 800
  const pen = canvas.getContext('2d') as CanvasRenderingContext2D
  pen.fillStyle = 'rebeccapurple'
  pen.fillRect(100, 100, 500, 500)
  const blob = await new Promise<Blob>((resolve) => canvas.toBlob((made) => resolve(made as Blob), 'image/png'))
  const chosen = new DataTransfer()
  chosen.items.add(new File([blob], name, { type: 'image/png' }))
  const input = document.getElementById('choose') as HTMLInputElement
  input.files = chosen.files
  input.dispatchEvent(new Event('change'))
}

/** Runs in a page: clicks the button with this label. */
async function press(within: string, label: string): Promise<void> {
  const buttons = [...document.querySelectorAll<HTMLButtonElement>(`${within} button`)]
  const found = buttons.find(({ textContent }) => textContent === label)
  if (!found) throw new Error(`no button ${label} in ${within}`)
  found.click()
}

/** Runs in a page. */
async function linkOf(within: string): Promise<string> {
  return document.querySelector<HTMLAnchorElement>(`${within} a`)?.href ?? ''
}

/** Runs in a page: the uploads that the page remembers, with the URL that the client has stored. */
async function readPending(): Promise<{ location: string; sent: number }[]> {
  const valuesOf = (part: string) =>
    Object.keys(localStorage).flatMap((id) => (id.includes(part) ? [localStorage.getItem(id) ?? ''] : []))
  const [location = ''] = valuesOf(':upload:')
  return valuesOf('drawer.upload.').map((text) => ({ location, sent: JSON.parse(text).sent }))
}

/** Runs in a page. */
async function tokenOf(url: string): Promise<string> {
  return JSON.parse(localStorage.getItem(`plinth:${url}`) ?? '').accessToken
}

/** Runs in a page: the names of the stored files. */
async function readNames(): Promise<string[]> {
  return [...document.querySelectorAll('.file strong')].map(({ textContent }) => textContent ?? '')
}

/** Runs in a page: resolves with the width and height of an image once it is loaded. */
function sidesOf(selector: string): Promise<[number, number]> {
  const image = document.querySelector(selector) as HTMLImageElement
  return image.decode().then(() => [image.naturalWidth, image.naturalHeight])
}

const file = (name: string): string => `[data-file=${JSON.stringify(name)}]`
const line = (name: string, state = ''): string =>
  `[data-upload=${JSON.stringify(name)}]${state && `[data-state=${state}]`}`

async function download(browser: Chromium, name: string): Promise<Response> {
  await browser.run(press, file(name), 'Link')
  await browser.run(until, `${file(name)} a`)
  return fetch(await browser.run(linkOf, file(name)))
}

const sha256 = async (response: Response): Promise<string> =>
  createHash('sha256')
    .update(new Uint8Array(await response.arrayBuffer()))
    .digest('hex')

describeInBrowser('the uploads example', 'the page', (chromium) => {
  let ann: Chromium

  beforeAll(async () => {
    ann = await openChromium(chromium)
    await ann.open(`${example.demo('PAGE')}/`)
    await ann.run(until, '[data-state=open] #choose:enabled')
  })

  afterAll(() => ann?.close())

  /** Starts an upload and pauses it in the third chunk. */
  async function beginAndPause(name: string): Promise<string> {
    const paused = relay.pauseAfter(pauseAtBytes)
    const hash = await ann.run(choose, name, fileBytes, 'video/mp4')
    await paused
    expect(await ann.run(readPending)).toMatchObject([{ sent: storedBytes }])
    return hash
  }

  /**
   * Expects the complete file, resumed rather than restarted. One chunk may be sent twice: the server may still be
   * writing the interrupted one when the offset is queried, and then refuses the next chunk at that offset.
   */
  async function expectResumed(name: string, hash: string): Promise<void> {
    await ann.run(until, file(name))
    await ann.run(until, line(name), false)
    expect(relay.forwarded()).toBeLessThan(fileBytes - storedBytes + chunkBytes + MiB)
    const answer = await download(ann, name)
    expect(answer.headers.get('content-type')).toBe('video/mp4')
    expect(await sha256(answer)).toBe(hash)
    expect(await ann.run(readPending)).toEqual([])
  }

  test('[STORE-TUS-1] [STORE-10] an upload resumes after the server is killed and restarted', async () => {
    const hash = await beginAndPause('killed.mp4')
    await example.kill()
    relay.cut()
    await example.start()
    await expectResumed('killed.mp4', hash)
  })

  test('[STORE-TUS-3] an upload resumes after the connection is cut', async () => {
    const hash = await beginAndPause('cut.mp4')
    relay.cut()
    await expectResumed('cut.mp4', hash)
  })

  test('an upload resumes after the page is closed, once the same file is chosen again', async () => {
    const hash = await beginAndPause('closed.mp4')
    await ann.open('about:blank')
    relay.cut()
    await ann.open(`${example.demo('PAGE')}/`)
    await ann.run(until, line('closed.mp4', 'interrupted'))
    await ann.run(until, '#choose:enabled')
    expect(await ann.run(choose, 'closed.mp4', fileBytes, 'video/mp4')).toBe(hash)
    await expectResumed('closed.mp4', hash)
  })

  test('an upload can be paused, resumed and canceled', async () => {
    await beginAndPause('paused.mp4')
    await ann.run(press, line('paused.mp4'), 'Pause')
    await ann.run(until, line('paused.mp4', 'paused'))
    relay.resume()
    const paused = relay.pauseAfter(MiB)
    await ann.run(press, line('paused.mp4'), 'Resume')
    await ann.run(until, line('paused.mp4', 'sending'))
    await paused
    const [pending] = await ann.run(readPending)
    await ann.run(press, line('paused.mp4'), 'Cancel')
    relay.resume()
    await ann.run(until, line('paused.mp4'), false)
    const token = await ann.run(tokenOf, example.demo('API'))
    const headers = { Authorization: `Bearer ${token}`, 'Tus-Resumable': '1.0.0' }
    expect((await fetch(`${example.demo('API')}${pending?.location}`, { method: 'HEAD', headers })).status).toBe(404)
    expect(await ann.run(readPending)).toEqual([])
    expect(await ann.run(readNames)).not.toContain('paused.mp4')
  })

  test('images are shown as thumbnails, and links to deleted files return 404', async () => {
    await ann.run(choosePicture, 'square.png')
    await ann.run(until, `${file('square.png')} img`)
    expect(await ann.run(sidesOf, `${file('square.png')} img`)).toEqual([320, 240])
    const answer = await download(ann, 'square.png')
    const { url } = answer
    expect(answer.headers.get('content-type')).toBe('image/png')
    await ann.run(press, file('square.png'), 'Delete')
    await ann.run(until, file('square.png'), false)
    expect((await fetch(url)).status).toBe(404)
  })

  test('several files upload concurrently, with names that look like markup, and one empty', async () => {
    const names = ['<img src=x onerror=alert(1)>.txt', 'Größe 100%?#.txt', "it's & so on.txt", 'none.txt']
    const hashes = await Promise.all(
      names.map((name) => ann.run(choose, name, name === 'none.txt' ? 0 : 5000, 'text/plain')),
    )
    for (const [index, name] of names.entries()) {
      await ann.run(until, file(name))
      expect(await sha256(await download(ann, name))).toBe(hashes[index] as string)
    }
    expect(await ann.run(readNames)).toEqual(expect.arrayContaining(names))
  })

  test('[STORE-LIST-2] each user has a separate drawer', async () => {
    const omar = await openChromium(chromium)
    try {
      await omar.open(`${example.demo('PAGE')}/`)
      await omar.run(until, '[data-state=open] #choose:enabled')
      expect(await omar.run(readNames)).toEqual([])
      expect(await ann.run(readNames)).not.toEqual([])
    } finally {
      await omar.close()
    }
  })
})
