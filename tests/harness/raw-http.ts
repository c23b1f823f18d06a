/** HTTP written by hand on a socket: for paths and bodies that a well-behaved client would correct before sending. */
import { connect } from 'node:net'

export interface RawAnswer {
  readonly status: number
  readonly head: string
  readonly text: string
}

/** Sends the bytes as they are and reads until the server closes; the request should ask for `Connection: close`. */
export function sendRaw(url: string, bytes: string | Uint8Array): Promise<RawAnswer> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect(Number(port), hostname, () => socket.write(bytes))
    socket.on('data', (chunk) => chunks.push(Buffer.from(chunk)))
    socket.on('error', (error) => (chunks.length > 0 ? undefined : reject(error)))
    socket.on('close', () => {
      const answer = Buffer.concat(chunks).toString()
      const split = answer.indexOf('\r\n\r\n')
      const head = split < 0 ? answer : answer.slice(0, split)
      resolve({ status: Number(head.split(' ')[1] ?? 0), head, text: split < 0 ? '' : answer.slice(split + 4) })
    })
  })
}

/** A request without a body whose path is sent byte for byte. */
export const sendRawPath = (url: string, method: string, path: string, headers: readonly string[] = []) =>
  sendRaw(url, [`${method} ${path} HTTP/1.1`, 'Host: localhost', 'Connection: close', ...headers, '', ''].join('\r\n'))
