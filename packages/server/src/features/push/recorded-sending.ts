/** Records messages instead of sending them: for tests, without providers and without devices. */
import type { Payload } from './message.ts'
import type { Sending } from './sending.ts'

/** What the endpoints need of `Sending`. */
export type Sender = Pick<Sending, 'counts' | 'toUser' | 'toUsers' | 'toToken' | 'toTopic' | 'idle'>

/** A recorded message: its recipient and the payload. */
export type RecordedPush = Payload & { readonly userId?: string; readonly token?: string; readonly topic?: string }

export type PushRecorder = (message: RecordedPush) => void

export function createRecordedSending(record: PushRecorder): Sender {
  const counts = { sent: 0, failed: 0, removed: 0 }
  const recordAll = (messages: readonly RecordedPush[]) => {
    for (const message of messages) record(message)
    counts.sent += messages.length
    return { sent: messages.length, failed: 0 }
  }
  return {
    counts,
    toUser: async (userId, payload) => recordAll([{ userId, ...payload }]),
    toUsers: async (userIds, payload) => recordAll([...new Set(userIds)].map((userId) => ({ userId, ...payload }))),
    toToken: async (token, _, payload) => recordAll([{ token, ...payload }]),
    async toTopic(topic, payload) {
      recordAll([{ topic, ...payload }])
    },
    idle: async () => {},
  }
}
