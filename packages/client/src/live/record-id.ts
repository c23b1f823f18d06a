/** Record ids made by the client. */
import { randomId } from '../core/ids.ts'

/** A UUID of version 7, as the server makes them: in order of creation. */
export function createRecordId(): string {
  const time = Date.now().toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomId().slice(15)}`
}
