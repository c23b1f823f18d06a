/**
 * Turns notifications on: signs in, starts the service worker, subscribes with the public key of the server, and
 * registers the subscription as a device. The service worker receives the messages.
 */
const { url } = await (await fetch('/settings.json')).json()
const [on, off, state, shown] = ['on', 'off', 'state', 'shown'].map((id) => document.getElementById(id))

/** Sends a request to the API; throws an Error with the message of the server. */
async function request(path, body) {
  const session = JSON.parse(localStorage.getItem('session') ?? 'null')
  const response = await fetch(`${url}/api${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      'Content-Type': 'application/json',
      ...(session ? { Authorization: `Bearer ${session.accessToken}` } : {}),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const result = await response.json()
  if (!response.ok) throw new Error(result.message)
  return result
}

/** Visitors are anonymous users; the session is stored, and renewed with each visit. */
async function signIn() {
  const known = JSON.parse(localStorage.getItem('session') ?? 'null')
  localStorage.removeItem('session')
  const session = known && (await request('/auth/refresh', { refreshToken: known.refreshToken }).catch(() => null))
  localStorage.setItem('session', JSON.stringify(session ?? (await request('/auth/signin/anonymous', {}))))
}

/** A random id for this browser, created once. */
function deviceId() {
  const known = localStorage.getItem('device') ?? crypto.randomUUID()
  localStorage.setItem('device', known)
  return known
}

function show(text, isOn = false) {
  state.textContent = text
  document.body.dataset.state = isOn ? 'on' : 'off'
  on.hidden = isOn
  off.hidden = !isOn
}

async function turnOn() {
  if ((await Notification.requestPermission()) !== 'granted') return show('The browser does not allow notifications.')
  await signIn()
  const { push } = await request('/config')
  const worker = await navigator.serviceWorker.register('/worker.mjs')
  await navigator.serviceWorker.ready
  const subscription = await worker.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: push.vapidPublicKey,
  })
  await request('/push/register', { deviceId: deviceId(), platform: 'web', token: JSON.stringify(subscription) })
  show('Notifications are on.', true)
}

async function turnOff() {
  const worker = await navigator.serviceWorker.getRegistration()
  const subscription = await worker?.pushManager.getSubscription()
  if (subscription) {
    await request('/push/unregister', { token: JSON.stringify(subscription) })
    await subscription.unsubscribe()
  }
  show('Notifications are off.')
}

const orShowError = (work) => () => work().catch((error) => show(`Error: ${error.message}`))
on.addEventListener('click', orShowError(turnOn))
off.addEventListener('click', orShowError(turnOff))
on.disabled = false

/** The worker posts each message that it has shown. */
navigator.serviceWorker.addEventListener('message', ({ data }) => {
  const item = document.createElement('li')
  item.textContent = `${data.title}: ${data.body}`
  shown.append(item)
})

// Registers an existing subscription again, in case the server has removed the device.
if ((await (await navigator.serviceWorker.getRegistration())?.pushManager.getSubscription()) != null)
  await orShowError(turnOn)()
