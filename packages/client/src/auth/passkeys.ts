/** Passkeys: creates and uses credentials of the browser. */
import { failure } from '../core/error.ts'

/** Asks the browser to create or use a passkey. Rejects with slug `aborted` if the user cancels. */
export async function useCredential(
  method: 'create' | 'get',
  parse: 'parseCreationOptionsFromJSON' | 'parseRequestOptionsFromJSON',
  options: unknown,
): Promise<object> {
  try {
    const publicKey = PublicKeyCredential[parse](options as never)
    const credential = await navigator.credentials[method]({ publicKey } as object)
    return (credential as PublicKeyCredential).toJSON()
  } catch (cause) {
    throw failure('aborted', undefined, cause)
  }
}
