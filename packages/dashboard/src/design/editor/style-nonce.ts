/** The nonce that the server wrote into the page, for styles that libraries add. */
export const styleNonce: string = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? ''
