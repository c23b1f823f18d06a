/**
 * The requests of a job, one after the other and from the start again, ready to be sent. Where the answer to a request
 * holds what the next one of its kind must say, as a refresh token does, the request is made anew from it.
 */
import { hash } from '../setup/data.ts'

/** What an answer must be; everything but the status is looked at in sampled answers only. */
export interface Expectation {
  readonly status: number
  readonly items?: number
  readonly total?: number
  readonly includes?: string
  /** Of every answer, whose body is then not looked at otherwise: bytes of a file. */
  readonly bodyBytes?: number
}

export interface LoadRequest {
  /** The whole request as sent. ASCII, so that characters are bytes. */
  readonly text: string
  readonly expect: Expectation
  /** Of a request that is too long to be sent here: so many bytes of `fillerBytes` after the text, then the end. */
  readonly filler?: { readonly bytes: number; readonly end: string }
}

export interface RequestCycle {
  /** The place of the request whose turn it is. */
  next(): number
  bytesOf(place: number): Uint8Array
  textOf(place: number): string
  expectationOf(place: number): Expectation
  /** Takes over what an answer said; false when it did not say it. */
  renew(place: number, answer: Buffer): boolean
  /** All requests as they would be sent now. */
  texts(): string[]
}

/** What cannot be made smaller: bytes without a pattern within each 64 KiB, the same in every process. */
export function fillerBytes(count: number): Buffer {
  const block = Buffer.alloc(64 * 1024)
  for (let at = 0; at < block.length; at += 4) block.writeUInt32LE(hash(at), at)
  return Buffer.alloc(count, block)
}

/** `renewed` is the field of JSON bodies that `renew` is about. Without it requests stay as they are. */
export function createRequestCycle(requests: readonly LoadRequest[], renewed?: string): RequestCycle {
  const texts = requests.map(({ text }) => text)
  const buffers = requests.map(({ text, filler }) =>
    filler === undefined
      ? Buffer.from(text, 'latin1')
      : Buffer.concat([Buffer.from(text, 'latin1'), fillerBytes(filler.bytes), Buffer.from(filler.end, 'latin1')]),
  )
  let upcoming = 0
  return {
    next() {
      const place = upcoming
      upcoming = place + 1 === buffers.length ? 0 : place + 1
      return place
    },
    bytesOf: (place) => buffers[place] as Buffer,
    textOf: (place) => texts[place] as string,
    expectationOf: (place) => (requests[place] as LoadRequest).expect,
    renew(place, answer) {
      if (renewed === undefined) return true
      const text = renewRequest(texts[place] as string, renewed, answer.toString('latin1'))
      if (text === null) return false
      texts[place] = text
      buffers[place] = Buffer.from(text, 'latin1')
      return true
    },
    texts: () => [...texts],
  }
}

/**
 * The request with the answer's value of a field in the place of its own. Both bodies are JSON objects in which the
 * field is a text of ASCII without escapes, as tokens are. Null when one of them lacks it.
 */
export function renewRequest(text: string, field: string, answer: string): string | null {
  const value = fieldOf(answer, field)
  const headEnd = text.indexOf('\r\n\r\n') + 4
  const body = text.slice(headEnd)
  const old = fieldOf(body, field)
  if (value === null || old === null) return null
  const newBody = body.replace(`"${old}"`, () => `"${value}"`)
  return text.slice(0, headEnd).replace(/\r\nContent-Length: \d+/, `\r\nContent-Length: ${newBody.length}`) + newBody
}

/** Looked for rather than parsed: a body holds more than is needed, and the load generator must cost little. */
function fieldOf(body: string, field: string): string | null {
  const start = body.indexOf(`"${field}":"`)
  if (start < 0) return null
  const from = start + field.length + 4
  return body.slice(from, body.indexOf('"', from))
}
