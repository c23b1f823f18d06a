/** Record ids made by the client. */

/** A UUID of version 7, as the server makes them: in order of creation. */
export function createRecordId(): string {
  const time = Date.now().toString(16).padStart(12, '0')
  const hex = (length: number, first?: number): string =>
    Array.from({ length }, (_, at) =>
      at === 0 && first ? first + ((Math.random() * 4) | 0) : (Math.random() * 16) | 0,
    )
      .map((digit) => digit.toString(16))
      .join('')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(3)}-${hex(4, 8)}-${hex(12)}`
}
