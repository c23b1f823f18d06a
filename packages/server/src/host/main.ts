/**
 * The program of a function host: loads the application's code and runs functions for the server. Ends with the server;
 * an error that no function catches ends it, because the code may be in any state.
 */
import { dirname, join } from 'node:path'
import { findLocation } from '../config/sections/functions/location.ts'
import { createOutboundFetch } from '../engines/fetch/outbound-fetch.ts'
import { openClaims } from '../engines/hosts/claims.ts'
import { LoadError } from '../engines/hosts/hosts.ts'
import type { Packet } from '../engines/hosts/outbox.ts'
import { decodeToHost, type ToHost } from '../engines/hosts/protocol.ts'
import { endWithParent } from '../engines/processes/end-with-parent.ts'
import { exit, send, sendNow } from './channel.ts'
import { loadCode } from './load-code.ts'
import { captureConsole } from './log-lines.ts'
import { createMailTemplates } from './mail-templates.ts'
import { createRelayedFetch } from './relayed-fetch.ts'
import { createRun, type HostedRun, prepareInputFor, type RunParts } from './run.ts'
import { answer } from './server-requests.ts'

// Before code is loaded, which may never return. Code is loaded for a server that has lived until then.
endWithParent()
const claims = openClaims()
const runs = new Map<string, HostedRun>()
/** Invocations that were received and have not ended. */
let unfinished = 0
let parts: RunParts | null = null

async function load({ entry, url, networks, fetchRelay, sources }: ToHost & { type: 'load' }): Promise<void> {
  try {
    const loaded = await loadCode(entry, sources)
    const outboundFetch =
      fetchRelay === null ? createOutboundFetch({ allow: networks, anyPort: true }) : createRelayedFetch(fetchRelay)
    const mailTemplates = createMailTemplates(join(dirname(entry), 'mail'))
    const { functions } = loaded
    parts = { functions, url, outboundFetch, mailTemplates, prepareInput: prepareInputFor(functions) }
    send({ type: 'loaded', manifest: loaded.manifest, sources: loaded.sources })
  } catch (error) {
    if (!(error instanceof LoadError)) throw error
    const { message, location, files } = error
    send({ type: 'load-failed', message, location, files })
  }
}

function receive(message: ToHost): void {
  switch (message.type) {
    case 'load':
      void load(message)
      return
    case 'invoke': {
      if (!parts) throw new Error('No code is loaded')
      if (!claims.claim(message.claim)) {
        unfinished -= 1
        return
      }
      const { id } = message
      const run = createRun(message, parts, {
        onStep: (step) => claims.note(message.claim, step),
        isAlone: () => unfinished === 1,
        onEnd() {
          runs.delete(id)
          unfinished -= 1
        },
      })
      runs.set(id, run)
      run.start()
      return
    }
    case 'abort':
      runs.get(message.id)?.abort(message.reason)
      return
    case 'pull':
      runs.get(message.id)?.pull()
      return
    case 'response':
      answer(message.request, message.response)
      return
    case 'ping':
      send({ type: 'pong' })
  }
}

process.on('message', (packet: Packet<ToHost>) => {
  let hasBegun = false
  const messages = decodeToHost(packet)
  for (const { type } of messages) if (type === 'invoke') unfinished += 1
  for (const message of messages) {
    // A function reaches its own code in a microtask. The next one is not claimed before that, so that an endless loop
    // has claimed nothing but itself.
    if (message.type === 'invoke' && hasBegun) setImmediate(receive, message)
    else receive(message)
    hasBegun ||= message.type === 'invoke'
  }
})
process.on('disconnect', () => exit(0))

/** Reports why the process ends, then ends it. */
function end(reason: string, error: unknown): never {
  sendNow({
    type: 'ending',
    reason: reason.slice(0, 8192),
    location: findLocation(error instanceof Error ? error.stack : ''),
  })
  return exit(1)
}

const describe = (error: unknown): string =>
  error instanceof Error ? `${error.name}: ${error.message}` : String(error)
process.on('uncaughtException', (error) => end(`an error was not caught: ${describe(error)}`, error))
process.on('unhandledRejection', (error) => end(`a rejected promise was not handled: ${describe(error)}`, error))
process.exit = (code) => end(`the code called process.exit(${code ?? ''})`, new Error('exit'))

// Frames of the client and of packages stand above those of the application.
Error.stackTraceLimit = 50
captureConsole()
sendNow({ type: 'up' })
