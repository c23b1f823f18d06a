/** A headless Chromium, controlled with its debugging protocol. */
import { describe } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A tab of a browser. */
export interface Tab {
  /** Opens a page; resolves once it has loaded. */
  open(url: string): Promise<void>
  /** Gives the tab the focus, as when its user selects it. */
  focus(): Promise<void>
  /** Runs a function in the page; arguments and result must be JSON. Rejects with the error of the function. */
  run<Args extends readonly unknown[], T>(work: (...args: Args) => Promise<T>, ...args: Args): Promise<T>
  /** Runs a function as in response to a click, which may open popups. */
  click<Args extends readonly unknown[], T>(work: (...args: Args) => Promise<T>, ...args: Args): Promise<T>
  /** Crashes the page's process; what runs in the page never ends. */
  crash(): Promise<void>
}

export interface Chromium extends Tab {
  /** Opens another tab, which shares the storage of its origin with the others. */
  openTab(url: string): Promise<Tab>
  /** Closes the tab or popup at a URL that begins with `url`, as its user would. */
  closeTab(url: string): Promise<void>
  /** Resolves when the next tab or popup has closed. */
  nextClosed(): Promise<void>
  /** Adds a virtual platform authenticator that confirms every request. */
  addAuthenticator(): Promise<void>
  /** Grants pages of the origin permission to show notifications, without a prompt. */
  allowNotifications(origin: string): Promise<void>
  /** Delivers a push message to the service worker of an origin. */
  deliverPush(origin: string, text: string): Promise<void>
  close(): Promise<void>
}

/** Describes tests that need a browser, and prints a notice if none is installed. */
export function describeInBrowser(what: string, title: string, body: (chromium: string) => void): void {
  const chromium = process.env.PLINTH_TEST_CHROMIUM
  if (chromium !== undefined) describe(title, () => body(chromium))
  else console.warn(`\n*** NOT RUN: ${what} in a real browser, because no Chromium is installed here. ***\n`)
}

interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: unknown
  readonly error?: { readonly message: string }
  // biome-ignore lint/suspicious/noExplicitAny: each method of the protocol answers in a form of its own.
  readonly result?: any
}

/** Allows running as root, and disables every request except those of the pages. */
const flags = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** An authenticator of the machine that confirms by itself, as `WebAuthn.addVirtualAuthenticator` takes it. */
export const virtualAuthenticator = {
  protocol: 'ctap2',
  transport: 'internal',
  hasResidentKey: true,
  hasUserVerification: true,
  isUserVerified: true,
  automaticPresenceSimulation: true,
} as const

/** Starts the Chromium at `program`. Must be closed. */
export async function openChromium(program: string): Promise<Chromium> {
  const profile = mkdtempSync(join(tmpdir(), 'plinth-browser-'))
  const child = Bun.spawn(
    [program, ...flags, `--user-data-dir=${profile}`, '--remote-debugging-port=0', 'about:blank'],
    // Temporary files are removed with the profile.
    { env: { ...process.env, TMPDIR: profile }, stdout: 'ignore', stderr: 'pipe' },
  )
  const end = async (): Promise<void> => {
    child.kill('SIGKILL')
    await child.exited
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
  }
  try {
    const { host, url: firstPage } = await findDebugger(child.stderr)
    const connections = [await connect(firstPage)]
    const { send, next } = connections[0] as Connection
    return {
      ...tabOf(connections[0] as Connection),
      async openTab(url) {
        const response = await fetch(`http://${host}/json/new`, { method: 'PUT' })
        const { webSocketDebuggerUrl } = (await response.json()) as Target
        const connection = await connect(webSocketDebuggerUrl)
        connections.push(connection)
        const tab = tabOf(connection)
        await tab.open(url)
        return tab
      },
      async closeTab(start) {
        const found = (await targetsOf(host)).find(({ url }) => url.startsWith(start))
        await fetch(`http://${host}/json/close/${found?.id}`)
      },
      async nextClosed() {
        const closed = next('Target.targetDestroyed')
        await send('Target.setDiscoverTargets', { discover: true, filter: [{ type: 'page' }] })
        await closed
      },
      async addAuthenticator() {
        await send('WebAuthn.enable')
        await send('WebAuthn.addVirtualAuthenticator', {
          options: virtualAuthenticator,
        })
      },
      async allowNotifications(origin) {
        await send('Browser.grantPermissions', { origin, permissions: ['notifications'] })
      },
      async deliverPush(origin, text) {
        const registered = next('ServiceWorker.workerRegistrationUpdated')
        await send('ServiceWorker.enable')
        const { registrations } = (await registered) as {
          registrations: { registrationId: string; scopeURL: string }[]
        }
        await send('ServiceWorker.disable')
        const found = registrations.find(({ scopeURL }) => scopeURL === `${origin}/`)
        if (!found) throw new Error(`no service worker at ${origin}`)
        const { registrationId } = found
        await send('ServiceWorker.enable')
        await send('ServiceWorker.deliverPushMessage', { origin, registrationId, data: text })
        await send('ServiceWorker.disable')
      },
      async close() {
        for (const { disconnect } of connections) disconnect()
        await end()
      },
    }
  } catch (error) {
    await end()
    throw error
  }
}

type Connection = Awaited<ReturnType<typeof connect>>

function tabOf({ send, next }: Connection): Tab {
  const evaluate = async <Args extends readonly unknown[], T>(
    work: (...args: Args) => Promise<T>,
    args: Args,
    userGesture: boolean,
  ): Promise<T> => {
    const expression = `(${work})(...${JSON.stringify(args)})`
    const options = { awaitPromise: true, returnByValue: true, userGesture }
    const answer = await send('Runtime.evaluate', { expression, ...options })
    if (answer.exceptionDetails) throw new Error(JSON.stringify(answer.exceptionDetails.exception))
    return answer.result.value
  }
  return {
    async open(url) {
      await send('Page.enable')
      const loaded = next('Page.loadEventFired')
      await send('Page.navigate', { url })
      await loaded
    },
    focus: () => send('Page.bringToFront'),
    run: (work, ...args) => evaluate(work, args, false),
    click: (work, ...args) => evaluate(work, args, true),
    async crash() {
      await send('Inspector.enable')
      const crashed = next('Inspector.targetCrashed')
      void send('Page.crash')
      await crashed
    },
  }
}

interface Target {
  readonly id: string
  readonly url: string
  readonly type: string
  readonly webSocketDebuggerUrl: string
}

const targetsOf = async (host: string): Promise<readonly Target[]> =>
  ((await (await fetch(`http://${host}/json/list`)).json()) as Target[]).filter(({ type }) => type === 'page')

/** The debugger's address and the URL of the first page, from the output of Chromium. */
async function findDebugger(stderr: AsyncIterable<Uint8Array>): Promise<{ host: string; url: string }> {
  let text = ''
  for await (const chunk of stderr) {
    text += Buffer.from(chunk).toString()
    const [, host] = /ws:\/\/([^/]+)\/devtools/.exec(text) ?? []
    if (host === undefined) continue
    const [page] = await targetsOf(host)
    if (page) return { host, url: page.webSocketDebuggerUrl }
  }
  throw new Error(`Chromium did not start: ${text}`)
}

/** The debugging protocol: numbered calls, their responses, and events. */
async function connect(url: string) {
  const socket = new WebSocket(url)
  const waiting = new Map<number, { resolve: (result: Message['result']) => void; reject: (error: Error) => void }>()
  const events = new Map<string, (params: unknown) => void>()
  let calls = 0
  socket.onmessage = ({ data }) => {
    const { id, method, params, error, result } = JSON.parse(String(data)) as Message
    if (method !== undefined) events.get(method)?.(params)
    const call = id === undefined ? undefined : waiting.get(id)
    if (!call) return
    if (error) call.reject(new Error(error.message))
    else call.resolve(result)
  }
  await new Promise<void>((resolve, reject) => {
    socket.onopen = () => resolve()
    socket.onerror = () => reject(new Error(`no connection to ${url}`))
  })
  return {
    send: (method: string, params: object = {}): Promise<Message['result']> =>
      new Promise((resolve, reject) => {
        const id = ++calls
        waiting.set(id, { resolve, reject })
        socket.send(JSON.stringify({ id, method, params }))
      }),
    next: (event: string) => new Promise<unknown>((resolve) => void events.set(event, resolve)),
    disconnect: () => socket.close(),
  }
}
