/** The header `Topic` of web push (RFC 8030): what replaces a waiting message. */
import { createHash } from 'node:crypto'
import { webPushTopicCharsMax } from '../../limits/push.ts'

/** A collapse id as the header may hold it; one of other characters, or a longer one, as its hash. */
export const webTopicOf = (collapseId: string): string =>
  /^[\w-]+$/.test(collapseId) && collapseId.length <= webPushTopicCharsMax
    ? collapseId
    : createHash('sha256').update(collapseId).digest('base64url').slice(0, webPushTopicCharsMax)
