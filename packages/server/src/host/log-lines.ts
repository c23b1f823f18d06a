/** Log lines of functions, bounded: what exceeds the rate is dropped and counted. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { inspect } from 'node:util'
import type { HostLogLevel } from '../engines/hosts/hosts.ts'
import { functionLogCharsMax, functionLogLinesPerSecond } from '../limits/functions.ts'
import { sendNow } from './channel.ts'

/** The invocation whose code runs. */
export const currentInvocation = new AsyncLocalStorage<string>()

let budget = functionLogLinesPerSecond
let dropped = 0
let refilledMs = performance.now()

/** Whether a line may be sent. */
function admit(): boolean {
  const nowMs = performance.now()
  budget = Math.min(functionLogLinesPerSecond, budget + ((nowMs - refilledMs) / 1000) * functionLogLinesPerSecond)
  refilledMs = nowMs
  if (budget < 1) {
    dropped++
    return false
  }
  budget--
  if (dropped > 0) {
    sendNow({ type: 'logs-dropped', count: dropped })
    dropped = 0
  }
  return true
}

// A flood that has ended leaves a count behind.
setInterval(() => {
  if (dropped > 0 && budget >= 0 && admit()) budget++
}, 1000).unref()

const bounded = (text: string): string =>
  text.length > functionLogCharsMax ? `${text.slice(0, functionLogCharsMax)}…` : text

/** The fields as JSON; those that JSON cannot express, or that are too large, as text. */
function plainFields(fields: object): object {
  try {
    const text = JSON.stringify(fields)
    if (text.length <= functionLogCharsMax) return JSON.parse(text)
    return { fields: bounded(text) }
  } catch {
    return { fields: bounded(inspect(fields)) }
  }
}

export function log(id: string, level: HostLogLevel, message: string, fields?: object): void {
  if (!admit()) return
  const text = bounded(String(message))
  sendNow(
    fields === undefined
      ? { type: 'log', id, level, message: text }
      : { type: 'log', id, level, message: text, fields: plainFields(fields) },
  )
}

const levels = { debug: 'debug', log: 'info', info: 'info', warn: 'warn', error: 'error', trace: 'debug' } as const

/** Sends `console` to the log of the function that calls it. */
export function captureConsole(): void {
  for (const [method, level] of Object.entries(levels))
    Object.assign(console, {
      [method]: (...parts: unknown[]) => {
        const id = currentInvocation.getStore()
        if (id === undefined || !admit()) return
        budget++
        log(id, level, parts.map((part) => (typeof part === 'string' ? part : inspect(part))).join(' '))
      },
    })
}
