/** A promise that is settled from outside. */
export interface Deferred<Value> {
  readonly promise: Promise<Value>
  resolve(value: Value): void
  reject(error: unknown): void
}

/** Not awaiting the promise is no mistake: an error of it is also visible elsewhere. */
export function deferred<Value>(): Deferred<Value> {
  let resolve!: Deferred<Value>['resolve']
  let reject!: Deferred<Value>['reject']
  const promise = new Promise<Value>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  promise.catch(() => undefined)
  return { promise, resolve, reject }
}
