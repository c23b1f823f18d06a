/**
 * The prebuilt requests of a job, sent in a cycle. Where a response contains a value that the next request must send,
 * such as a refresh token, the request is rebuilt with it.
 */
import { hash } from '../setup/data.ts'

/** Expected response; everything but the status is checked in sampled responses only. */
export interface Expectation {
  readonly status: number
  readonly items?: number
  readonly total?: number
  readonly includes?: string
  /** Length of the body, checked in every response, whose content is then not checked: bytes of a file. */
  readonly bodyBytes?: number
}

export interface LoadRequest {
  /** The complete request. ASCII, so that characters are bytes. */
  readonly text: string
  readonly expect: Expectation
  /** For a request too long for a job: `fillerBytes` of this length after the text, then the end. */
  readonly filler?: { readonly bytes: number; readonly end: string }
}

export interface RequestCycle {
  /** Returns the index of the next request. */
  next(): number
  bytesOf(index: number): Uint8Array
  textOf(index: number): string
  expectationOf(index: number): Expectation
  /** Takes the renewed field from a response; false when it is missing. */
  renew(index: number, answer: Buffer): boolean
  /** The current texts of all requests. */
  texts(): string[]
}

/** Incompressible bytes: random within each 64 KiB, the same in every process. */
export function fillerBytes(count: number): Buffer {
  const block = Buffer.alloc(64 * 1024)
  for (let at = 0; at < block.length; at += 4) block.writeUInt32LE(hash(at), at)
  return Buffer.alloc(count, block)
}

/** `renewed` is the JSON field that `renew` updates. Without it requests stay unchanged. */
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
      const index = upcoming
      upcoming = index + 1 === buffers.length ? 0 : index + 1
      return index
    },
    bytesOf: (index) => buffers[index] as Buffer,
    textOf: (index) => texts[index] as string,
    expectationOf: (index) => (requests[index] as LoadRequest).expect,
    renew(index, answer) {
      if (renewed === undefined) return true
      const text = renewRequest(texts[index] as string, renewed, answer.toString('latin1'))
      if (text === null) return false
      texts[index] = text
      buffers[index] = Buffer.from(text, 'latin1')
      return true
    },
    texts: () => [...texts],
  }
}

/**
 * Replaces the value of a field in the request with the one in the response. Both bodies are JSON objects in which the
 * field is an ASCII string without escapes, as tokens are. Null when one of them lacks it.
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

/** Searches instead of parsing, to keep the load generator cheap. */
function fieldOf(body: string, field: string): string | null {
  const start = body.indexOf(`"${field}":"`)
  if (start < 0) return null
  const from = start + field.length + 4
  return body.slice(from, body.indexOf('"', from))
}
