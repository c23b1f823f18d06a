/**
 * Sign-in through a provider, in a redirect or a popup. Tokens in the URL are accepted only in a tab that has started
 * a sign-in, so that a link cannot sign a user in to another person's account.
 */
import { delay } from '../core/deadline.ts'
import { failure, PlinthError } from '../core/error.ts'
import { randomId } from '../core/ids.ts'
import type { SessionKeeper } from './session.ts'

/** Key of the tab's `sessionStorage` for the sign-in that it has started. */
const flowKey = 'plinth:oauth'

/** How often an opener checks its popup, in milliseconds. */
const popupPollMs = 30
/** After which a popup that its opener can't close closes itself, in milliseconds. */
const popupCloseMs = 1_000

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
  sessionStorage.setItem(flowKey, '1')
  location.assign(url)
  return new Promise(() => undefined)
}

/** The popup is opened before anything is awaited, since browsers allow popups only in response to a click. */
async function openPopup(url: string | Promise<string>): Promise<string> {
  const flow = randomId()
  const channel = new BroadcastChannel(flow)
  let fragment: string | undefined
  channel.onmessage = ({ data }) => {
    fragment = data
  }
  // A popup begins with a copy of this storage, from which the page that it returns to knows the channel.
  sessionStorage.setItem(flowKey, flow)
  const popup = open('', '_blank', 'popup,width=480,height=640')
  sessionStorage.removeItem(flowKey)
  try {
    if (popup) popup.location = await url
    while (!fragment) {
      // A popup that a provider has isolated from its opener seems to be closed, but keeps the focus.
      if (!popup || (popup.closed && document.hasFocus())) throw failure('aborted')
      await delay(popupPollMs)
    }
    return fragment
  } finally {
    channel.close()
    popup?.close()
  }
}

/** The fragment with which a provider's sign-in returned to this page. In a popup, its opener receives it. */
export function takeFragment(): string | undefined {
  const { hash } = location
  const flow = sessionStorage.getItem(flowKey)
  if (!flow || !/(Token|Ticket|error)=/.test(hash)) return undefined
  sessionStorage.removeItem(flowKey)
  history.replaceState(history.state, '', pageUrl())
  if (flow === '1') return hash
  new BroadcastChannel(flow).postMessage(hash)
  setTimeout(close, popupCloseMs)
  return undefined
}

/**
 * Completes a flow with its fragment: starts the session, or links the provider to the signed-in user. Resolves with
 * the session or the identity; rejects with the error that the fragment states.
 */
export async function finishFlow(keeper: SessionKeeper, fragment: string): Promise<object> {
  const members: Record<string, string> = Object.fromEntries(new URLSearchParams(fragment.slice(1)))
  const { linkTicket, refreshToken = '', mfaTicket: ticket, error = ticket && 'mfa-required', message } = members
  const data = ticket && { ticket, factors: ['totp'] }
  if (error) throw new PlinthError({ status: data ? 401 : 0, slug: error, message, data })
  if (linkTicket) return (await keeper.asUser<{ identity: object }>('POST', 'identities', { linkTicket })).identity
  // The fragment does not contain the user. A refresh also replaces its tokens, which were in a URL.
  return keeper.start(keeper.publicly('refresh', { refreshToken }))
}
