/** Raw HTTP over a socket, for paths and bodies that an HTTP client would normalize or refuse to send. */
import { connect, type Socket } from 'node:net'

export interface RawAnswer {
  readonly status: number
  readonly head: string
  readonly text: string
}

/** Sends the bytes unchanged and reads until the server closes; the request should contain `Connection: close`. */
export const sendRaw = (url: string, bytes: string | Uint8Array): Promise<RawAnswer> => readAnswer(openRaw(url, bytes))

/** Sends the beginning of a request. `finish` sends the rest; `abort` resets the connection. */
export function openRawRequest(
  url: string,
  beginning: string,
): { readonly answer: Promise<RawAnswer>; finish(rest: string): Promise<RawAnswer>; abort(): void } {
  const socket = openRaw(url, beginning)
  const answer = readAnswer(socket)
  return {
    answer,
    finish(rest) {
      socket.write(rest)
      return answer
    },
    abort: () => void socket.resetAndDestroy(),
  }
}

function openRaw(url: string, bytes: string | Uint8Array): Socket {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname, () => socket.write(bytes))
  return socket
}

function readAnswer(socket: Socket): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
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

/** Sends a request without a body whose path is transmitted byte for byte. */
export const sendRawPath = (url: string, method: string, path: string, headers: readonly string[] = []) =>
  sendRaw(url, [`${method} ${path} HTTP/1.1`, 'Host: localhost', 'Connection: close', ...headers, '', ''].join('\r\n'))
