/** A frame of a WebSocket as the message it holds. */
import { jsonDepthMax } from '../../limits/api.ts'
import { isDeeperThan, type JsonObject } from '../input/body.ts'

/** The JSON object in a text frame of at most `bytesMax` bytes; null for anything else. */
export function parseMessage(data: string | Uint8Array, bytesMax: number): JsonObject | null {
  if (typeof data !== 'string' || Buffer.byteLength(data) > bytesMax || isDeeperThan(jsonDepthMax, data)) return null
  try {
    const value: unknown = JSON.parse(data)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? (value as JsonObject) : null
  } catch {
    return null
  }
}
