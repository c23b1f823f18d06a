/** Who may ask each endpoint about users. */
import { type Access, anyone, judged } from '../resources/endpoint-access.ts'

const signedIn = { kind: 'user', scope: null } as const
const administrator = { kind: 'service', scope: 'auth:admin:*:write' } as const
const userReader = { kind: 'service', scope: 'auth:admin:*:read' } as const

export const usersAccess: Readonly<Record<string, Access>> = {
  'users.jwks': { ...anyone, send: (client) => client.get('/api/auth/jwks.json') },

  'admin.listUsers': { ...userReader, send: (client) => client.get('/api/auth/admin/users') },
  'admin.getUser': { ...userReader, ...judged('GET', '/api/auth/admin/users/none') },
  'admin.createUser': { ...administrator, ...judged('POST', '/api/auth/admin/users') },
  'admin.updateUser': { ...administrator, ...judged('PATCH', '/api/auth/admin/users/none') },
  'admin.deleteUser': { ...administrator, ...judged('DELETE', '/api/auth/admin/users/none') },
  'admin.getCredentials': { ...userReader, ...judged('GET', '/api/auth/admin/users/none/credentials') },
  'admin.endSession': { ...administrator, ...judged('DELETE', '/api/auth/admin/users/none/sessions/none') },
  'admin.inviteUser': { ...administrator, ...judged('POST', '/api/auth/admin/invitations') },
  'admin.setClaims': { ...administrator, ...judged('PUT', '/api/auth/admin/users/none/claims') },
  'admin.revokeSessions': { ...administrator, ...judged('POST', '/api/auth/admin/users/none/revoke') },
  'admin.removeFactors': { ...administrator, ...judged('DELETE', '/api/auth/admin/users/none/mfa') },
  'admin.importUsers': { ...administrator, ...judged('POST', '/api/auth/admin/users/import') },
  'admin.listKeys': { ...userReader, send: (client) => client.get('/api/auth/admin/keys') },
  'admin.rotateKeys': { ...administrator, send: (client) => client.post('/api/auth/admin/keys/rotate', undefined) },
  'admin.listAdministrators': {
    kind: 'service',
    scope: 'dashboard:admins:*:read',
    send: (client) => client.get('/api/auth/admin/administrators'),
  },
  'admin.setDashboardRole': {
    kind: 'service',
    scope: 'dashboard:admins:*:write',
    ...judged('PUT', '/api/auth/admin/users/none/dashboard-role'),
  },
  'users.setUp': { ...anyone, ...judged('POST', '/api/auth/setup') },
  'users.setupPage': { ...anyone, send: (client) => client.get('/setup') },
  'users.signUp': { ...anyone, ...judged('POST', '/api/auth/signup') },
  'users.signIn': { ...anyone, ...judged('POST', '/api/auth/signin') },
  'users.signInAnonymously': { ...anyone, send: (client) => client.post('/api/auth/signin/anonymous', undefined) },
  'users.refresh': { ...anyone, ...judged('POST', '/api/auth/refresh') },
  'users.signOut': { ...anyone, ...judged('POST', '/api/auth/signout') },
  'users.me': { ...signedIn, send: (client) => client.get('/api/auth/me') },
  'users.changeProfile': { ...signedIn, send: (client) => client.patch('/api/auth/profile', {}) },
  'users.changePassword': { ...signedIn, ...judged('POST', '/api/auth/change-password') },
  'users.listSessions': { ...signedIn, send: (client) => client.get('/api/auth/sessions') },
  'users.endSession': { ...signedIn, ...judged('DELETE', '/api/auth/sessions/none') },

  // An unknown provider: every caller gets 404.
  'oauth.start': { ...anyone, send: (client) => client.get('/api/auth/oauth/none'), isJudgedByBody: true },
  'oauth.callback': { ...anyone, send: (client) => client.get('/api/auth/oauth/none/callback'), isJudgedByBody: true },
  'oauth.callbackForm': { ...anyone, ...judged('POST', '/api/auth/oauth/none/callback') },
  'oauth.link': { ...signedIn, ...judged('POST', '/api/auth/oauth/none/link') },
  'identities.list': { ...signedIn, send: (client) => client.get('/api/auth/identities') },
  'identities.link': { ...signedIn, ...judged('POST', '/api/auth/identities') },
  'identities.unlink': { ...signedIn, ...judged('DELETE', '/api/auth/identities/none') },

  'users.requestMagicLink': { ...anyone, ...judged('POST', '/api/auth/signin/magic-link') },
  'users.verifyMagicLink': { ...anyone, ...judged('POST', '/api/auth/verify-magic-link') },
  'users.requestEmailCode': { ...anyone, ...judged('POST', '/api/auth/signin/email-otp') },
  'users.verifyEmailCode': { ...anyone, ...judged('POST', '/api/auth/verify-email-otp') },
  'users.requestPasswordReset': { ...anyone, ...judged('POST', '/api/auth/request-password-reset') },
  'users.resetPassword': { ...anyone, ...judged('POST', '/api/auth/reset-password') },
  'users.requestEmailVerification': {
    ...signedIn,
    send: (client) => client.post('/api/auth/request-email-verification', undefined),
  },
  'users.verifyEmail': { ...anyone, ...judged('POST', '/api/auth/verify-email') },
  'users.changeEmail': { ...signedIn, ...judged('POST', '/api/auth/change-email') },
  'users.verifyEmailChange': { ...anyone, ...judged('POST', '/api/auth/verify-email-change') },

  'mfa.enrollTotp': { ...signedIn, send: (client) => client.post('/api/auth/mfa/totp/enroll', undefined) },
  'mfa.verifyTotp': { ...signedIn, ...judged('POST', '/api/auth/mfa/totp/verify') },
  'mfa.removeTotp': { ...signedIn, ...judged('DELETE', '/api/auth/mfa/totp') },
  'mfa.listFactors': { ...signedIn, send: (client) => client.get('/api/auth/mfa/factors') },
  'mfa.verify': { ...anyone, ...judged('POST', '/api/auth/mfa/verify') },
  'mfa.recover': { ...anyone, ...judged('POST', '/api/auth/mfa/recovery') },
  'passkeys.registerOptions': {
    ...signedIn,
    send: (client) => client.post('/api/auth/passkeys/register-options', undefined),
  },
  'passkeys.register': { ...signedIn, ...judged('POST', '/api/auth/passkeys/register') },
  'passkeys.authOptions': { ...anyone, send: (client) => client.post('/api/auth/passkeys/auth-options', {}) },
  'passkeys.authenticate': { ...anyone, ...judged('POST', '/api/auth/passkeys/authenticate') },
  'passkeys.list': { ...signedIn, send: (client) => client.get('/api/auth/passkeys') },
  'passkeys.delete': {
    ...signedIn,
    // An unknown id: authorized callers get 404.
    send: (client) => client.delete('/api/auth/passkeys/none'),
    isJudgedByBody: true,
  },
}
