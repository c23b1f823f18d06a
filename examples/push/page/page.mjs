/**
 * Switches notifications on: an account, a service worker, a subscription with the server's public key, and its
 * registration as a device. What arrives is the worker's.
 */
const { url } = await (await fetch('/settings.json')).json()
const [on, off, state, shown] = ['on', 'off', 'state', 'shown'].map((id) => document.getElementById(id))

/** Calls the API; throws what it says when it refuses. */
async function ask(path, body) {
  const session = JSON.parse(localStorage.getItem('session') ?? 'null')
  const response = await fetch(`${url}/api${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      'Content-Type': 'application/json',
      ...(session ? { Authorization: `Bearer ${session.accessToken}` } : {}),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const answer = await response.json()
  if (!response.ok) throw new Error(answer.message)
  return answer
}

/** Visitors are users without a name; the session is kept, and renewed with each visit. */
async function signIn() {
  const known = JSON.parse(localStorage.getItem('session') ?? 'null')
  localStorage.removeItem('session')
  const session = known && (await ask('/auth/refresh', { refreshToken: known.refreshToken }).catch(() => null))
  localStorage.setItem('session', JSON.stringify(session ?? (await ask('/auth/signin/anonymous', {}))))
}

/** A name for this browser, made up once. */
function deviceId() {
  const known = localStorage.getItem('device') ?? crypto.randomUUID()
  localStorage.setItem('device', known)
  return known
}

function say(text, isOn = false) {
  state.textContent = text
  document.body.dataset.state = isOn ? 'on' : 'off'
  on.hidden = isOn
  off.hidden = !isOn
}

async function switchOn() {
  if ((await Notification.requestPermission()) !== 'granted') return say('The browser does not allow notifications.')
  await signIn()
  const { push } = await ask('/config')
  const worker = await navigator.serviceWorker.register('/worker.mjs')
  await navigator.serviceWorker.ready
  const subscription = await worker.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: push.vapidPublicKey,
  })
  await ask('/push/register', { deviceId: deviceId(), platform: 'web', token: JSON.stringify(subscription) })
  say('Notifications are on.', true)
}

async function switchOff() {
  const worker = await navigator.serviceWorker.getRegistration()
  const subscription = await worker?.pushManager.getSubscription()
  if (subscription) {
    await ask('/push/unregister', { token: JSON.stringify(subscription) })
    await subscription.unsubscribe()
  }
  say('Notifications are off.')
}

const orSay = (work) => () => work().catch((error) => say(`It did not work: ${error.message}`))
on.addEventListener('click', orSay(switchOn))
off.addEventListener('click', orSay(switchOff))
on.disabled = false

/** The worker tells of each message that it has shown. */
navigator.serviceWorker.addEventListener('message', ({ data }) => {
  const item = document.createElement('li')
  item.textContent = `${data.title}: ${data.body}`
  shown.append(item)
})

// A subscription that is still there is registered again, in case the server has forgotten it.
if ((await (await navigator.serviceWorker.getRegistration())?.pushManager.getSubscription()) != null)
  await orSay(switchOn)()
