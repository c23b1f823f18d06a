/** Identifiers that need to be unique but not secret. */

const hex = (bytes: number): string => {
  let text = ''
  // Hermes has no `crypto`; these identifiers only have to be unique.
  for (let i = 0; i < bytes * 2; i++) text += ((Math.random() * 16) | 0).toString(16)
  return text
}

/** A random identifier of 32 hexadecimal digits. */
export const randomId = (): string => {
  const { crypto } = globalThis as { crypto?: Crypto }
  return crypto?.getRandomValues
    ? Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
    : hex(16)
}

/** A record id in order of creation: UUID version 7. */
export const recordId = (): string => {
  const time = Date.now().toString(16).padStart(12, '0')
  const random = randomId()
  const variant = ((Number.parseInt(random[3] as string, 16) & 3) | 8).toString(16)
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-${variant}${random.slice(4, 7)}-${random.slice(7, 19)}`
}
