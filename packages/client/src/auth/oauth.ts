/**
 * Sign-in through a provider, in a redirect or a popup. Tokens in the URL are accepted only in a tab that has started
 * a sign-in, so that a link cannot sign a user in to another person's account.
 */
import { failure, PlinthError } from '../core/error.ts'
import { randomId } from '../core/ids.ts'
import type { SignedIn } from './session.ts'

/** Key of the tab's `sessionStorage` for the sign-in that it has started: a channel name for popups, or empty. */
const flowKey = 'plinth:oauth'

/** How often an opener checks whether its popup is closed, in milliseconds. */
const popupPollMs = 500

const pageUrl = (): string => location.href.replace(/#.*/, '')

/** Where a flow starts, and whether its popup or this page goes there. */
export interface Flow {
  /** Given the page to return to, the URL that the browser opens. */
  readonly start: (redirectUrl: string) => string | Promise<string>
  readonly redirectUrl?: string | undefined
  readonly popup?: boolean | undefined
}

/** Runs a flow. Resolves with the fragment that a popup receives; a redirect leaves the page and never resolves. */
export async function runFlow({ start, redirectUrl = pageUrl(), popup }: Flow): Promise<string> {
  if (popup) return openPopup(start(redirectUrl))
  const url = await start(redirectUrl)
  sessionStorage.setItem(flowKey, 'redirect')
  location.assign(url)
  return new Promise(() => undefined)
}

/** The popup is opened before anything is awaited, since browsers allow popups only in response to a click. */
async function openPopup(url: string | Promise<string>): Promise<string> {
  const channel = new BroadcastChannel(`${flowKey}:${randomId()}`)
  // A popup starts with a copy of this tab's storage.
  sessionStorage.setItem(flowKey, channel.name)
  const popup = open('', '_blank', 'popup,width=480,height=640')
  sessionStorage.removeItem(flowKey)
  let poll: ReturnType<typeof setInterval> | undefined
  try {
    if (popup) popup.location = await url
    return await new Promise<string>((resolve, reject) => {
      channel.onmessage = ({ data }) => resolve(String(data))
      poll = setInterval(() => {
        if (!popup || popup.closed) reject(failure('aborted', 'The popup was closed or blocked'))
      }, popupPollMs)
    })
  } catch (error) {
    popup?.close()
    throw error
  } finally {
    clearInterval(poll)
    channel.close()
  }
}

/**
 * The fragment with which a provider's sign-in returned to this page; null where there is none. A popup passes it to
 * its opener and closes.
 */
export function takeFragment(): string | null {
  const flow = sessionStorage.getItem(flowKey)
  const fragment = location.hash.slice(1)
  if (!flow || !/(?:^|&)(?:accessToken|mfaTicket|linkTicket|error)=/.test(fragment)) return null
  sessionStorage.removeItem(flowKey)
  history.replaceState(history.state, '', pageUrl())
  if (flow === 'redirect') return fragment
  const channel = new BroadcastChannel(flow)
  channel.postMessage(fragment)
  channel.close()
  close()
  return null
}

/** What a fragment contains: tokens, or a ticket. Throws the error that it states. */
export function parseFragment(fragment: string): Partial<SignedIn> & { mfaTicket?: string; linkTicket?: string } {
  const { error, message, ...members } = Object.fromEntries(new URLSearchParams(fragment)) as Record<string, string>
  if (error) throw new PlinthError({ slug: error, message: message ?? error })
  return members as never
}
