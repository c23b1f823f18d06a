/** Passkeys: creates and uses credentials of the browser. */
import { failure } from '../core/error.ts'

/** Asks the browser to create or use a passkey. Rejects with slug `aborted` if the user cancels. */
export async function useCredential(method: 'create' | 'get', options: unknown): Promise<object> {
  try {
    const kind = method === 'create' ? 'Creation' : 'Request'
    const publicKey = PublicKeyCredential[`parse${kind}OptionsFromJSON`](options as never)
    const credential = await navigator.credentials[method]({ publicKey } as object)
    return (credential as PublicKeyCredential).toJSON()
  } catch (cause) {
    throw failure('aborted', 'No passkey', cause)
  }
}
