/**
 * The program of a function host: loads the application's code and runs functions for the server. Ends with the server;
 * an error that no function catches ends it, because the code may be in any state.
 */
import { dirname, join } from 'node:path'
import { findLocation } from '../config/sections/functions/location.ts'
import { createOutboundFetch } from '../engines/fetch/outbound-fetch.ts'
import { LoadError } from '../engines/hosts/hosts.ts'
import type { ToHost } from '../engines/hosts/protocol.ts'
import { exit, send } from './channel.ts'
import { loadCode } from './load-code.ts'
import { captureConsole } from './log-lines.ts'
import { createMailTemplates } from './mail-templates.ts'
import { createRelayedFetch } from './relayed-fetch.ts'
import { createRun, type HostedRun, type RunParts } from './run.ts'
import { answer } from './server-requests.ts'

const runs = new Map<string, HostedRun>()
let parts: RunParts | null = null

async function load({ entry, url, networks, fetchRelay, sources }: ToHost & { type: 'load' }): Promise<void> {
  try {
    const loaded = await loadCode(entry, sources)
    const outboundFetch =
      fetchRelay === null ? createOutboundFetch({ allow: networks, anyPort: true }) : createRelayedFetch(fetchRelay)
    const mailTemplates = createMailTemplates(join(dirname(entry), 'mail'))
    parts = { functions: loaded.functions, url, outboundFetch, mailTemplates }
    send({ type: 'loaded', manifest: loaded.manifest, sources: loaded.sources })
  } catch (error) {
    if (!(error instanceof LoadError)) throw error
    const { message, location, files } = error
    send({ type: 'load-failed', message, location, files })
  }
}

process.on('message', (message: ToHost) => {
  switch (message.type) {
    case 'load':
      void load(message)
      return
    case 'invoke': {
      const { id } = message
      if (!parts) throw new Error('No code is loaded')
      const run = createRun(message, parts, () => runs.delete(id))
      runs.set(id, run)
      if (message.mayStart) run.start()
      else send({ type: 'ready', id })
      return
    }
    case 'start':
      runs.get(message.id)?.start()
      return
    case 'drop':
      runs.delete(message.id)
      return
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
})
process.on('disconnect', () => exit(0))

/** Reports why the process ends, then ends it. */
function end(reason: string, error: unknown): never {
  send({
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
send({ type: 'up' })
