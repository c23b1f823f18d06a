/** Sessions of applications that a server renders: in cookies, which only that server writes. */
export { type CookieAttributes, type CookieJar, type CookieOptions, cookieStorage, requestCookies } from './cookies.ts'
export { handleSession, pageStorage } from './session-endpoint.ts'
