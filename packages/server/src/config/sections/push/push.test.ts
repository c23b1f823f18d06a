import { describe, expect, test } from 'bun:test'
import { createECDH, generateKeyPairSync } from 'node:crypto'
import { findMistakes, parseConfig } from '../../validate.ts'

const encoding = {
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
} as const
const { privateKey: rsa } = generateKeyPairSync('rsa', { modulusLength: 2048, ...encoding })
const { privateKey: ec } = generateKeyPairSync('ec', { namedCurve: 'P-256', ...encoding })
const account = (more: object = {}): string =>
  JSON.stringify({ client_email: 'a@b.example', private_key: rsa, project_id: 'demo', ...more })

function newVapid() {
  const ecdh = createECDH('prime256v1')
  const publicKey = ecdh.generateKeys('base64url')
  // Leading zeros are left out by some.
  const privateKey = Buffer.from(ecdh.getPrivateKey('hex').padStart(64, '0'), 'hex').toString('base64url')
  return { subject: 'mailto:ops@example.com', publicKey, privateKey }
}

const mistakesOf = (push: unknown): readonly string[] => findMistakes({ push }, 'root')
const parse = (push: unknown) => parseConfig({ push }, { mode: 'release', rootKey: 'root' })

describe('push.fcm', () => {
  test('[PUSH-FCM-9] endpoints default to those of Google, and the project to that of the service account', () => {
    const { push } = parse({ fcm: { serviceAccount: account({ private_key_id: 'k' }) } }).config
    expect(push).toMatchObject({ vapid: null, fcm: { projectId: 'demo', clientEmail: 'a@b.example', keyId: 'k' } })
    expect(push.fcm?.endpoints).toEqual({
      token: 'https://oauth2.googleapis.com/token',
      send: 'https://fcm.googleapis.com/v1/projects/demo/messages:send',
      topics: 'https://iid.googleapis.com/iid/v1',
    })
    expect(JSON.stringify(push)).not.toContain(rsa.split('\n')[1] as string)
  })

  test('[PUSH-9] without a service account nothing is configured, and a warning says so', () => {
    const { config, warnings } = parse({ fcm: { projectId: 'demo', serviceAccount: undefined } })
    expect(config.push).toEqual({ fcm: null, vapid: null })
    expect(warnings).toEqual(['push.fcm.serviceAccount is not set: nothing is sent in this way'])
  })

  test.each([
    [{ serviceAccount: '{' }, 'push.fcm.serviceAccount: is not JSON'],
    [{ serviceAccount: 'no/such/file.json' }, 'push.fcm.serviceAccount: must be the JSON of a service account, or the'],
    [{ serviceAccount: '{"client_email":"a"}' }, 'push.fcm.serviceAccount: has no client_email and private_key'],
    [
      { serviceAccount: account({ private_key: 'hush' }) },
      'push.fcm.serviceAccount: has a private_key that is not an RSA',
    ],
    [{ serviceAccount: account({ private_key: ec }) }, 'push.fcm.serviceAccount: has a private_key that is not an RSA'],
    [{ serviceAccount: account({ project_id: undefined }) }, 'push.fcm.projectId: is missing'],
    [{ serviceAccount: account(), projectId: '../x' }, 'push.fcm.projectId: is not the id of a Firebase project'],
    [
      { serviceAccount: account(), endpoints: { send: 'http://example.com' } },
      'push.fcm.endpoints.send: must be an https',
    ],
    [
      { serviceAccount: account(), endpoints: { sent: '' } },
      'push.fcm.endpoints.sent: is not known here. Did you mean',
    ],
    [{ key: 'x' }, 'push.fcm.key: is not known here'],
  ])('[PUSH-FCM-9] errors name the option and never quote a key: %#', (fcm, message) => {
    const mistakes = mistakesOf({ fcm })
    expect(mistakes[0]).toStartWith(message)
    expect(mistakes).toHaveLength(1)
    for (const secret of ['hush', rsa, ec]) expect(mistakes.join()).not.toContain(secret)
  })
})

describe('push.vapid', () => {
  test('[PUSH-WEB-6] a pair of keys that belong together', () => {
    const vapid = newVapid()
    expect(mistakesOf({ vapid })).toEqual([])
    expect(parse({ vapid }).config.push.vapid).toMatchObject({ subject: vapid.subject, publicKey: vapid.publicKey })
    expect(parse({ vapid: { ...vapid, privateKey: undefined } }).config.push.vapid).toBeNull()
  })

  test.each([
    [{ publicKey: newVapid().publicKey }, 'push.vapid.publicKey: is not the one that belongs to the private key'],
    [{ publicKey: 'abc' }, 'push.vapid.publicKey: must be a public key'],
    [{ privateKey: 'hush' }, 'push.vapid.privateKey: must be a private key'],
    [{ privateKey: Buffer.alloc(32).toString('base64url') }, 'push.vapid.publicKey: is not the one'],
    [{ subject: 'ops@example.com' }, 'push.vapid.subject: must be "mailto:"'],
    [{ subject: 'mailto:a@b\r\nX-Injected: 1' }, 'push.vapid.subject: must be "mailto:"'],
    [{ localServices: ['http://127.0.0.1:1/x'] }, 'push.vapid.localServices[0]: must be an origin'],
    [{ localServices: ['ftp://a'] }, 'push.vapid.localServices[0]: must be an origin'],
  ])('[PUSH-WEB-6] %o is a mistake', (wrong, message) => {
    const mistakes = mistakesOf({ vapid: { ...newVapid(), ...wrong } })
    expect(mistakes[0]).toStartWith(message)
    expect(mistakes.join()).not.toContain('hush')
  })
})
