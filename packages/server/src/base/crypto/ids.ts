/** Identifiers: UUID version 7 (RFC 9562), strictly increasing within a process whatever the clock does. */
import { type Clock, systemClock } from '../clock.ts'

const hex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
const hexOf = (byte: number): string => hex[byte & 255] as string

/** The 12 bits after the version are a counter within one millisecond; it starts low to leave room. */
const sequenceMax = 0xfff
const sequenceStartMask = 0x3ff
const randomPoolBytes = 4096

/**
 * Creates a generator of UUID v7 texts (36 characters, lower case). Later ids sort after earlier ones as text: a
 * millisecond that runs out of sequence numbers, or a clock that steps back, borrows from the future instead of
 * repeating.
 */
export function createUuid7(clock: Clock = systemClock): () => string {
  const pool = new Uint8Array(randomPoolBytes)
  let used = randomPoolBytes
  let lastMs = 0
  let sequence = 0

  const random = (): number => {
    if (used === randomPoolBytes) {
      crypto.getRandomValues(pool)
      used = 0
    }
    return pool[used++] as number
  }

  return () => {
    const nowMs = clock.now()
    if (nowMs > lastMs) {
      lastMs = nowMs
      sequence = ((random() << 8) | random()) & sequenceStartMask
    } else if (sequence === sequenceMax) {
      lastMs += 1
      sequence = 0
    } else sequence += 1

    const high = Math.floor(lastMs / 0x10000)
    const time = `${hexOf(high >>> 24)}${hexOf(high >>> 16)}${hexOf(high >>> 8)}${hexOf(high)}`
    const timeLow = `${hexOf(lastMs >>> 8)}${hexOf(lastMs)}`
    const counted = `${hexOf(0x70 | (sequence >>> 8))}${hexOf(sequence)}`
    const variant = `${hexOf(0x80 | (random() & 0x3f))}${hexOf(random())}`
    let node = ''
    for (let byte = 0; byte < 6; byte++) node += hexOf(random())
    return `${time}-${timeLow}-${counted}-${variant}-${node}`
  }
}
