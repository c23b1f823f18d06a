/** Turns notifications on and off for this browser. The service worker shows the messages. */
import { auth, createClient, push } from 'plinth-client'
import { find, make } from '../../page-dom.ts'
import type config from '../plinth.config.ts'

const plinth = createClient<typeof config>(process.env.PLINTH_URL as string, [auth, push])
const [on, off] = [find<HTMLButtonElement>('on'), find<HTMLButtonElement>('off')]

function show(text: string, isOn = false): void {
  find('state').textContent = text
  document.body.dataset.state = isOn ? 'on' : 'off'
  on.hidden = isOn
  off.hidden = !isOn
}

/** Visitors are anonymous users. */
async function turnOn(): Promise<void> {
  if (!(await plinth.auth.ready)) await plinth.auth.signInAnonymously()
  await plinth.push.register({ serviceWorker: '/worker.js' })
  show('Notifications are on.', true)
}

async function turnOff(): Promise<void> {
  await plinth.push.unregister()
  show('Notifications are off.')
}

const orShowError = (work: () => Promise<void>) => () => work().catch((error: Error) => show(`Error: ${error.message}`))
on.onclick = orShowError(turnOn)
off.onclick = orShowError(turnOff)
on.disabled = false

/** The worker posts each message that it has shown. */
navigator.serviceWorker.addEventListener('message', ({ data }) => {
  find('shown').append(make('li', {}, `${data.title}: ${data.body}`))
})

// Registers an existing subscription again, in case the server has removed the device.
const worker = await navigator.serviceWorker.getRegistration()
if (await worker?.pushManager.getSubscription()) await orShowError(turnOn)()
