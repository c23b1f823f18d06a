/**
 * The drawer does what its README says, in a real browser: uploads that go on after the server was killed, the
 * connection was cut and the page was left, byte for byte. What is on the way is held at a known byte by a relay, so
 * that nothing here depends on how fast the machine is. The browser is Chromium; where there is none this says so, and
 * the README is run all the same.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { connect, createServer, type Socket } from 'node:net'
import { Transform } from 'node:stream'
import { type Chromium, describeInBrowser, openChromium } from '../harness/chromium.ts'
import { describePageExample } from '../harness/page-example.ts'

const MiB = 1024 * 1024
/** The page sends pieces of 8 MiB: five, of which two are there when the third is held in its middle. */
const fileBytes = 40 * MiB
const holdAtBytes = 20 * MiB
const keptBytes = 16 * MiB
const pieceBytes = 8 * MiB

/** Between the browser and the server: a network that can be held and cut. */
interface Relay {
  readonly port: number
  /** Lets so many bytes more through to the server, then none; resolves once it holds some back. */
  hold(bytes: number): Promise<void>
  /** Lets everything through again, and counts it from zero. */
  release(): void
  /** Breaks every connection, and lets everything through again. */
  cut(): void
  /** Bytes to the server since the last release. */
  passed(): number
  close(): void
}

async function openRelay(target: number): Promise<Relay> {
  const sockets = new Set<Socket>()
  let allowed = Number.POSITIVE_INFINITY
  let passed = 0
  let waiting: (() => void)[] = []
  let onHeld = (): void => {}

  const createGate = (): Transform =>
    new Transform({
      transform(chunk: Buffer, _encoding, done) {
        const pass = (): void => {
          passed += chunk.length
          done(null, chunk)
        }
        if (passed + chunk.length <= allowed) return pass()
        waiting.push(pass)
        onHeld()
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

  const release = (): void => {
    allowed = Number.POSITIVE_INFINITY
    passed = 0
    const held = waiting
    waiting = []
    for (const pass of held) pass()
  }
  const cut = (): void => {
    waiting = []
    for (const socket of sockets) socket.destroy()
    release()
  }
  return {
    port,
    hold: (bytes) =>
      new Promise((resolve) => {
        allowed = passed + bytes
        onHeld = resolve
      }),
    release,
    cut,
    passed: () => passed,
    close() {
      cut()
      server.close()
    },
  }
}

const example = describePageExample('uploads', () => ({ PLINTH_PUBLIC_URL: `http://127.0.0.1:${relay.port}` }))
const relay = await openRelay(example.port)
afterAll(() => relay.close())

/** Runs in a page: resolves once it shows something a selector finds, or no longer does. */
function until(selector: string, isThere = true): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${selector}: ${document.body.textContent}`)), 60_000)
    const look = (): void => {
      if ((document.querySelector(selector) !== null) !== isThere) return
      clearTimeout(timer)
      resolve()
    }
    new MutationObserver(look).observe(document, { subtree: true, childList: true, attributes: true })
    look()
  })
}

/** Runs in a page: chooses a file that is the same for the same name and size; gives a hash of its bytes. */
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

/** Runs in a page: a picture of 800 × 800 pixels, drawn there. */
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

/** Runs in a page: presses the button with a word on it. */
async function press(within: string, word: string): Promise<void> {
  const buttons = [...document.querySelectorAll<HTMLButtonElement>(`${within} button`)]
  const found = buttons.find(({ textContent }) => textContent === word)
  if (!found) throw new Error(`no ${word} in ${within}`)
  found.click()
}

/** Runs in a page. */
async function linkOf(within: string): Promise<string> {
  return document.querySelector<HTMLAnchorElement>(`${within} a`)?.href ?? ''
}

/** Runs in a page. */
async function readKept(): Promise<{ location: string; sent: number }[]> {
  const ids = Object.keys(localStorage).filter((id) => id.startsWith('drawer.upload.'))
  return ids.map((id) => JSON.parse(localStorage.getItem(id) ?? ''))
}

/** Runs in a page: what is in the drawer. */
async function readNames(): Promise<string[]> {
  return [...document.querySelectorAll('.file strong')].map(({ textContent }) => textContent ?? '')
}

/** Runs in a page: resolves with the sides of a picture once it is loaded. */
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

describeInBrowser('the drawer', 'the page', (chromium) => {
  let ann: Chromium

  beforeAll(async () => {
    ann = await openChromium(chromium)
    await ann.open(`${example.demo('PAGE')}/`)
    await ann.run(until, '[data-state=open] #choose:enabled')
  })

  afterAll(() => ann?.close())

  /** Begins an upload and holds it in its third piece. */
  async function beginAndHold(name: string): Promise<string> {
    const held = relay.hold(holdAtBytes)
    const hash = await ann.run(choose, name, fileBytes, 'video/mp4')
    await held
    expect(await ann.run(readKept)).toMatchObject([{ sent: keptBytes }])
    return hash
  }

  /**
   * It is there, byte for byte, and went on from where it was. One piece may be sent twice: the server can still be
   * writing the broken one when it is asked how much it has, and refuses a second piece for the same place.
   */
  async function endsWhole(name: string, hash: string): Promise<void> {
    await ann.run(until, file(name))
    await ann.run(until, line(name), false)
    expect(relay.passed()).toBeLessThan(fileBytes - keptBytes + pieceBytes + MiB)
    const answer = await download(ann, name)
    expect(answer.headers.get('content-type')).toBe('video/mp4')
    expect(await sha256(answer)).toBe(hash)
    expect(await ann.run(readKept)).toEqual([])
  }

  test('[STORE-TUS-1] [STORE-10] an upload goes on after the server was killed and came back', async () => {
    const hash = await beginAndHold('killed.mp4')
    await example.kill()
    await ann.run(until, line('killed.mp4', 'waiting'))
    relay.cut()
    await example.start()
    await endsWhole('killed.mp4', hash)
  })

  test('[STORE-TUS-3] an upload goes on after the connection was cut', async () => {
    const hash = await beginAndHold('cut.mp4')
    relay.cut()
    await endsWhole('cut.mp4', hash)
  })

  test('an upload goes on after the page was left, once the same file is chosen again', async () => {
    const hash = await beginAndHold('left.mp4')
    await ann.open('about:blank')
    relay.cut()
    await ann.open(`${example.demo('PAGE')}/`)
    await ann.run(until, line('left.mp4', 'left'))
    await ann.run(until, '#choose:enabled')
    expect(await ann.run(choose, 'left.mp4', fileBytes, 'video/mp4')).toBe(hash)
    await endsWhole('left.mp4', hash)
  })

  test('an upload can be paused, gone on with, and given up', async () => {
    await beginAndHold('paused.mp4')
    await ann.run(press, line('paused.mp4'), 'Pause')
    await ann.run(until, line('paused.mp4', 'paused'))
    relay.release()
    const held = relay.hold(MiB)
    await ann.run(press, line('paused.mp4'), 'Go on')
    await ann.run(until, line('paused.mp4', 'sending'))
    await held
    const [kept] = await ann.run(readKept)
    await ann.run(press, line('paused.mp4'), 'Give up')
    relay.release()
    await ann.run(until, line('paused.mp4'), false)
    const token = await ann.run(async () => JSON.parse(localStorage.getItem('drawer.session') ?? '').accessToken)
    const headers = { Authorization: `Bearer ${token}`, 'Tus-Resumable': '1.0.0' }
    expect((await fetch(`${example.demo('API')}${kept?.location}`, { method: 'HEAD', headers })).status).toBe(404)
    expect(await ann.run(readKept)).toEqual([])
    expect(await ann.run(readNames)).not.toContain('paused.mp4')
  })

  test('pictures are shown small, and are gone when they are deleted', async () => {
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

  test('many files at once, with names that are markup to a careless page, and an empty one', async () => {
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

  test('[STORE-LIST-2] somebody else has a drawer of their own', async () => {
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
